"""One commit on a new branch of git, made beside the working tree: neither it nor the index is touched."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.redaction import redact


class Branch:
    """A branch ``name`` that is to begin at HEAD in the repository around ``root``.

    Raises EnvdslError: ``app-git`` where there is no repository with a commit, ``app-branch-name``,
    ``app-branch-exists``.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self.name = name
        self.start = self._git("rev-parse", "--verify", "HEAD^{commit}")
        try:
            self._git("check-ref-format", "--branch", name)
        except EnvdslError as error:
            raise EnvdslError.of(
                "app-branch-name", f"`{name}` is no name for a branch", exit_status=ExitStatus.USAGE
            ) from error
        if self._git("for-each-ref", "--format=%(refname)", f"refs/heads/{name}"):
            raise EnvdslError.of(
                "app-branch-exists",
                f"there is a branch `{name}` already",
                hint=f"delete it (`git branch -D {name}`), or choose another name",
                exit_status=ExitStatus.USAGE,
            )

    def changed(self, paths: Iterable[Path]) -> tuple[str, ...]:
        """Those of ``paths`` that differ from HEAD in the index or the working tree, or that git does not know."""
        named = [self._relative(path) for path in paths]
        if not named:
            return ()
        status = self._git("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--", *named)
        return tuple(sorted(line[3:] for line in status.split("\0") if line))

    def commit(self, files: Mapping[Path, bytes], message: str) -> str:
        """Make the branch with one commit on HEAD that gives ``files`` these contents; returns the commit.

        Author and committer are those that git is configured with; hooks are not run.
        """
        with tempfile.TemporaryDirectory(prefix="envdsl-index-") as directory:
            index = {"GIT_INDEX_FILE": str(Path(directory) / "index")}
            self._git("read-tree", self.start, environment=index)
            prefix = self._git("rev-parse", "--show-prefix")
            for path, content in sorted(files.items()):
                name = self._relative(path)
                blob = self._git("hash-object", "-w", "--stdin", "--path", name, stdin=content)
                entry = f"100644,{blob},{prefix}{name}"
                self._git("update-index", "--add", "--cacheinfo", entry, environment=index)
            tree = self._git("write-tree", environment=index)
        commit = self._git("commit-tree", tree, "-p", self.start, "-F", "-", stdin=message.encode())
        # The empty old value: nobody else made the branch meanwhile.
        self._git("update-ref", "-m", "envdsl update", f"refs/heads/{self.name}", commit, "")
        return commit

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()

    def _git(self, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None) -> str:
        try:
            done = subprocess.run(
                ["git", "-C", self._root, "--literal-pathspecs", *arguments],
                input=stdin,
                capture_output=True,
                check=False,
                env={**os.environ, **(environment or {})},
            )
        except FileNotFoundError:
            raise _failed("there is no git on this machine") from None
        if done.returncode != 0:
            said = redact(done.stderr.decode(errors="replace")).strip().splitlines()
            raise _failed(f"`git {arguments[0]}` failed: {' '.join(said) or 'it says nothing'}")
        return done.stdout.decode(errors="surrogateescape").rstrip("\n")


def _failed(message: str) -> EnvdslError:
    return EnvdslError.of(
        "app-git",
        message,
        hint="--branch needs a git repository with a commit, and a name and e-mail address that git knows",
        exit_status=ExitStatus.ENVIRONMENT,
    )

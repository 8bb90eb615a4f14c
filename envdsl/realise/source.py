"""Sources: directories of the project that a layer puts on the search path, copied into the store by content.

What is copied is what a colleague's checkout would have, too: no bytecode, no version control, no caches and
environments of tools, and no store. Symbolic links stay links where they lead to something inside the
directory; one that leads out of it would mean something else on every machine, and is refused.
"""

# ruff: noqa: PTH115

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import SourceTree
from envdsl.realise.writer import TreeWriter
from envdsl.store.treehash import Entry, Listing, hash_file, hash_link

IGNORED_DIRECTORIES = frozenset(
    {
        "__pycache__",
        ".git",
        ".hg",
        ".svn",
        ".jj",
        ".venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".hypothesis",
        ".ipynb_checkpoints",
        "node_modules",
    }
)
IGNORED_SUFFIXES = (".pyc", ".pyo", ".swp", "~")
IGNORED_FILES = frozenset({".git", ".DS_Store"})  # `.git` is a file in worktrees and submodules
# What only a virtual environment or a store has; either may stand in a source directory under any name.
_FOREIGN_MARKS = ("pyvenv.cfg", "envdsl.db")
_BLOCK = 1 << 20


@contextmanager
def _readable(place: str) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise EnvdslError.of(
            "source-unreadable", f"{place} cannot be read: {error.strerror}", hint="make it readable, or move it away"
        ) from error


def tree_hash(directory: Path) -> str:
    """The tree hash of ``directory`` as it would be copied: what its derivation is made from.

    Raises what :func:`listing` raises.
    """
    return listing(directory).tree_hash()


def listing(directory: Path) -> Listing:
    """What would be copied of ``directory``, read and hashed.

    Raises EnvdslError ``source-missing``, ``source-link``, ``source-special-file`` or ``source-unreadable``.
    """
    entries = []
    for place, relative, mode in _members(directory):
        with _readable(place):
            if stat.S_ISLNK(mode):
                entries.append(Entry(relative, "symlink", False, *hash_link(os.fsencode(place))))
            else:
                entries.append(Entry(relative, "file", bool(mode & stat.S_IXUSR), *hash_file(os.fsencode(place))))
    return Listing(entries)


def copy_source(directory: Path, source: SourceTree, root: Path) -> Listing:
    """Copy ``directory`` into the empty directory ``root`` as the output of ``source``.

    Raises what :func:`tree_hash` raises, and ``source-changed`` where the directory is not what its derivation
    says any more.
    """
    writer = TreeWriter(root)
    for place, relative, mode in _members(directory):
        with _readable(place):
            if stat.S_ISLNK(mode):
                writer.symlink(relative, os.readlink(place))
            else:
                writer.stream(relative, _content(place), executable=bool(mode & stat.S_IXUSR))
    writer.seal()
    copied = Listing(writer.entries)
    if copied.tree_hash() != source.tree_hash:
        raise EnvdslError.of(
            "source-changed",
            f"the source directory {source.path} changed while it was being built from",
            hint="run the command again",
        )
    return copied


def _members(root: Path) -> Iterator[tuple[str, str, int]]:
    """Every file and link to copy: its place, its path below ``root``, its mode."""
    if not root.is_dir():
        raise EnvdslError.of(
            "source-missing",
            f"the source directory {root} does not exist",
            hint="sources are directories, relative to the layer file that names them",
        )
    pending = [(str(root), "")]
    while pending:
        directory, prefix = pending.pop()
        with _readable(directory), os.scandir(directory) as scanned:
            members = sorted(scanned, key=lambda member: member.name)
        for member in members:
            path = prefix + member.name
            mode = member.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if member.name not in IGNORED_DIRECTORIES and not _is_foreign(member.path):
                    pending.append((member.path, path + "/"))
            elif member.name in IGNORED_FILES or member.name.endswith(IGNORED_SUFFIXES):
                continue
            elif stat.S_ISLNK(mode):
                _check_link(member.path, path, root)
                yield member.path, path, mode
            elif stat.S_ISREG(mode):
                yield member.path, path, mode
            else:
                raise EnvdslError.of(
                    "source-special-file",
                    f"{member.path} is a device, socket or pipe; a source holds files, directories and links",
                    hint="remove it, or name a directory without it",
                )


def _is_foreign(directory: str) -> bool:
    return any(os.path.lexists(f"{directory}/{mark}") for mark in _FOREIGN_MARKS)


def _check_link(place: str, path: str, root: Path) -> None:
    target = os.readlink(place)
    depth = len(PurePosixPath(path).parts) - 1
    escapes = not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(root))
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        # Out and back in again by the directory's own name would not survive the copy.
        escapes = escapes or part == "/" or depth < 0
    if escapes:
        raise EnvdslError.of(
            "source-link",
            f"{place} is a symbolic link to {target}, which is outside of the source directory {root}",
            hint="replace it by what it points to, or by a relative link that stays inside",
        )


def _content(place: str) -> Iterator[bytes]:
    with Path(place).open("rb") as file:
        while block := file.read(_BLOCK):
            yield block

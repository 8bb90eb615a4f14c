"""``envdsl fmt``: layer files in their canonical form."""

from __future__ import annotations

import difflib
import os
import posixpath
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.syntax.tree import File


@dataclass(frozen=True, slots=True)
class Formatted:
    """One text and its canonical form; ``after`` is None where errors forbid one, which ``diagnostics`` holds."""

    path: str
    before: str
    after: str | None
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def changes(self) -> bool:
        return self.after is not None and self.after != self.before

    def diff(self) -> str:
        """What changes, as a unified diff; empty where nothing does."""
        if self.after is None:
            return ""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            f"a/{self.path}",
            f"b/{self.path}",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def to_json(self) -> dict[str, Any]:
        status = "error" if self.after is None else "changed" if self.changes else "unchanged"
        return {"path": self.path, "status": status, "diff": self.diff()}


def format_text(path: str, data: bytes) -> Formatted:
    """The canonical form of a text that is called ``path`` in messages."""
    from envdsl.syntax.decode import decode
    from envdsl.syntax.printer import format_file

    before = data.decode("utf-8", errors="replace")
    try:
        return Formatted(path, before, format_file(decode(path, data)))
    except EnvdslError as error:
        return Formatted(path, before, None, error.diagnostics)


def format_files(files: Iterable[Path], *, write: bool) -> list[Formatted]:
    """Each file's canonical form; with ``write`` those that change are replaced, a file with errors is left alone."""
    found = []
    for file in files:
        formatted = format_text(file.as_posix(), file.read_bytes())
        if write and formatted.changes and formatted.after is not None:
            replace(file, formatted.after.encode("utf-8"))
        found.append(formatted)
    return found


def chosen_files(project: Project, paths: Sequence[Path]) -> list[Path]:
    """The files of ``paths``, of which directories stand for the layer files in them; without any, all of the project.

    Raises :class:`EnvdslError` where there is none.
    """
    if paths:
        return [file for path in paths for file in (sorted(path.rglob("*.layer")) if path.is_dir() else [path])]
    if project.is_curated:
        raise EnvdslError.of(
            "app-no-project",
            "there is no project here, and no file is named",
            hint="name the files to format, or `-` for standard input; `envdsl init` begins a project here",
            exit_status=ExitStatus.USAGE,
        )
    root = project.config.root
    return [_shown(root / path) for path in _with_imports(root, project.layer_files)]


def _shown(path: Path) -> Path:
    """``path`` relative to the working directory where it lies below that."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _with_imports(root: Path, paths: Sequence[str]) -> list[str]:
    """``paths`` and the files of the project that they import. What cannot be read imports nothing."""
    from envdsl.syntax.decode import decode
    from envdsl.syntax.parser import parse_file

    found = dict.fromkeys(paths)
    pending = list(paths)
    for path in pending:
        try:
            parsed = parse_file(decode(path, (root / path).read_bytes()))
        except (EnvdslError, OSError):
            continue
        for imported in imported_paths(path, parsed):
            if imported not in found and not imported.startswith("../") and (root / imported).is_file():
                found[imported] = None
                pending.append(imported)
    return sorted(found)


def imported_paths(path: str, parsed: File) -> list[str]:
    """The files that the file at ``path`` imports, as POSIX paths from the same root."""
    from envdsl.syntax import tree

    found = []
    pending = list(parsed.declarations)
    for declaration in pending:
        if isinstance(declaration, tree.Import):
            found.append(posixpath.normpath(posixpath.join(posixpath.dirname(path), declaration.path.text)))
        elif isinstance(declaration, tree.For):
            pending += declaration.declarations
    return found


def replace(path: Path, content: bytes) -> None:
    """Make ``content`` the file at ``path``, or the one that a symbolic link there leads to; its mode stays.

    Whoever reads it meanwhile sees the old file or the new one, and so does the next one after a crash.
    """
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

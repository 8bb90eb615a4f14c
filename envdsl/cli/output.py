"""How results, messages and diagnostics look: for a person, for CI, and as JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from envdsl.errors import Diagnostic, ExitStatus
from envdsl.model.span import Span

_STYLES = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "hint": "\x1b[36m", "dim": "\x1b[2m", "bold": "\x1b[1m"}
_RESET = "\x1b[0m"

_quiet = False
_verbose = False
_json = False


def configure(*, quiet: bool, verbose: bool, as_json: bool) -> None:
    """Set for this process what the options of the command asked for."""
    global _quiet, _verbose, _json
    _quiet, _verbose, _json = quiet, verbose, as_json


def is_quiet() -> bool:
    return _quiet


def is_verbose() -> bool:
    return _verbose


def is_json() -> bool:
    return _json


def colours(stream: IO[str]) -> bool:
    """Whether ``stream`` is a terminal that may be coloured (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


class ReaderLeft(Exception):  # noqa: N818 (no error: `envdsl ls | head`)
    """Whoever read our results has gone. Not a BrokenPipeError, which click would take for a failure."""


def result(text: str) -> None:
    """A result for stdout, as it is. Raises :class:`ReaderLeft`."""
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def result_json(value: Any) -> None:
    """A result for machines: one JSON document on stdout."""
    result(json.dumps(value, indent=2, ensure_ascii=False))


def write_json(file: Path, value: Any) -> None:
    """What :func:`result_json` prints, to ``file``, which is never there in part. Raises OSError."""
    new = file.with_name(f".{file.name}.new")
    with new.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


def message(text: str) -> None:
    """A message for a person, on stderr; ``--quiet`` silences it."""
    if not _quiet:
        print(text, file=sys.stderr)


def report(diagnostics: Iterable[Diagnostic]) -> None:
    """Diagnostics on stderr; with ``--json`` one JSON document instead of text."""
    found = list(diagnostics)
    if _json:
        json.dump({"diagnostics": [to_json(item) for item in found]}, sys.stderr, ensure_ascii=False)
        sys.stderr.write("\n")
        return
    colour = colours(sys.stderr)
    for diagnostic in found:
        if diagnostic.severity == "error" or not _quiet:
            print(render(diagnostic, colour=colour), file=sys.stderr)


def render(diagnostic: Diagnostic, *, colour: bool = False) -> str:
    """One diagnostic as text: message, place, the marked source line, the trail and the hint."""

    def style(name: str, text: str) -> str:
        return f"{_STYLES[name]}{text}{_RESET}" if colour else text

    severity = diagnostic.severity
    lines = [f"{style(severity, f'{severity}[{diagnostic.code}]')}: {style('bold', diagnostic.message)}"]
    if diagnostic.span is not None:
        lines += _excerpt(diagnostic.span, lambda marks: style(severity, marks))
    for note in diagnostic.trail:
        place = f" ({note.span})" if note.span is not None else ""
        lines.append(style("dim", f"  = {note.message}{place}"))
    if diagnostic.hint:
        lines.append(f"  = {style('hint', 'hint')}: {diagnostic.hint}")
    return "\n".join(lines)


def _excerpt(span: Span, mark: Any) -> list[str]:
    from rich.cells import cell_len

    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    text = span.source.line(line)
    last = end_column if end_line == line else len(text) + 1
    marked = text[column - 1 : last - 1]
    shown, lead, carets = text, text[: column - 1], max(1, cell_len(marked))
    if len(text) > 160:  # a minified line: a window around the mark says more
        start = max(0, column - 41)
        shown, lead = text[start : start + 120], text[start : column - 1]
        carets = min(carets, 120 - len(lead))
    indent = "".join(character if character == "\t" else " " * cell_len(character) for character in lead)
    number = str(line)
    gutter = " " * len(number)
    return [
        f" {gutter}--> {span}",
        f" {gutter} |",
        f" {number} | {shown}",
        f" {gutter} | {indent}{mark('^' * carets)}",
    ]


def to_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic for machines; lines and columns count from 1, the end is exclusive."""
    value: dict[str, Any] = {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "place": _place(diagnostic.span),
        "trail": [{"message": note.message, "place": _place(note.span)} for note in diagnostic.trail],
        "hint": diagnostic.hint,
    }
    if diagnostic.details:
        value["details"] = dict(diagnostic.details)
    return value


def _place(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.path,
        "line": line,
        "column": column,
        "end-line": end_line,
        "end-column": end_column,
        "text": span.source.line(line)[:1000],
    }


def to_github(diagnostic: Diagnostic) -> str:
    """A workflow command of GitHub Actions that annotates the line."""
    properties = {"title": diagnostic.code}
    if diagnostic.span is not None:
        place = _place(diagnostic.span)
        assert place is not None
        properties |= {
            "file": place["file"],
            "line": str(place["line"]),
            "endLine": str(place["end-line"]),
            "col": str(place["column"]),
            "endColumn": str(place["end-column"]),
        }
    text = diagnostic.message + (f"\nhint: {diagnostic.hint}" if diagnostic.hint else "")
    listed = ",".join(f"{key}={_escape(value, ':,')}" for key, value in properties.items())
    return f"::{diagnostic.severity} {listed}::{_escape(text)}"


def _escape(text: str, also: str = "") -> str:
    for character in "%\r\n" + also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Columns of plain text, two spaces apart; the columns in ``right`` are aligned to the right."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(widths[column]) if column in right else cell.ljust(widths[column])
            for column, cell in enumerate(row)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def count(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(count: int) -> str:
    """Bytes for a person, in powers of 1024."""
    value = float(count)
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def of_os_error(error: OSError) -> Diagnostic:
    """What the operating system refused, as a diagnostic."""
    import errno

    hints = {
        errno.ENOSPC: "free some space, or run `envdsl gc`; nothing valid was lost",
        errno.EACCES: "check who owns the store and the project",
        errno.EROFS: "the file system is mounted read-only",
        errno.EMFILE: "raise the limit of open files (ulimit -n)",
    }
    where = f" ({error.filename})" if error.filename else ""
    return Diagnostic(
        "environment-os-error",
        f"{error.strerror or error}{where}",
        hint=hints.get(error.errno or 0),
        exit_status=ExitStatus.ENVIRONMENT,
    )


def of_defect(error: Exception) -> Diagnostic:
    """An error that envdsl should have turned into a diagnostic and did not: a defect of envdsl."""
    import traceback

    if _verbose:
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Diagnostic(
        "internal-defect",
        f"{type(error).__name__}: {error} (at {os.path.basename(frame.filename)}:{frame.lineno})",  # noqa: PTH119
        hint="this is a defect of envdsl: please report it, with the output of the same command and --verbose",
    )

"""``envdsl fmt``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.formatting import Formatted
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples:\n  envdsl fmt\n  envdsl fmt --check --diff\n  envdsl fmt layers.d/office.layer\n"
    "  envdsl fmt - < draft.layer"
)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, allow_dash=True, path_type=Path), metavar="[FILE]...")
@click.option("--check", is_flag=True, help="Change nothing; name the files that would change, and exit with 1.")
@click.option("--diff", is_flag=True, help="Change nothing; show what would change.")
@as_json
@common
def fmt(project: Project, paths: tuple[Path, ...], check: bool, diff: bool, as_json: bool) -> int:
    """Write layer files in their one canonical form.

    FILEs are layer files or directories; without one, all layer files of the project and what they import are
    formatted. `-` reads standard input and writes standard output. What a file means never changes; one with errors is
    left alone, and the errors are shown.
    """
    from envdsl.app import formatting

    if Path("-") in paths:
        if len(paths) > 1:
            raise click.UsageError("`-` goes with no other file")
        found = [formatting.format_text("<stdin>", sys.stdin.buffer.read())]
        if not (check or diff or as_json) and found[0].after:
            output.result(found[0].after)
    else:
        files = formatting.chosen_files(project, paths)
        found = formatting.format_files(files, write=not (check or diff))
    return _show(found, check=check, diff=diff, as_json=as_json, written=Path("-") not in paths)


def _show(found: list[Formatted], *, check: bool, diff: bool, as_json: bool, written: bool) -> int:
    diagnostics = [diagnostic for formatted in found for diagnostic in formatted.diagnostics]
    changed = [formatted for formatted in found if formatted.changes]
    if as_json:
        output.result_json(
            {
                "files": [formatted.to_json() for formatted in found],
                "diagnostics": [output.to_json(item) for item in diagnostics],
            }
        )
    else:
        if diff:
            for formatted in changed:
                output.result(formatted.diff())
        elif check or written:
            for formatted in changed:
                output.result(formatted.path)
        output.report(diagnostics)
    if written or check:
        what = "would change" if check or diff else "changed"
        output.message(f"{output.count(len(found), 'file')}: {len(changed)} {what}")
    return ExitStatus.FAILED if diagnostics or (check and changed) else ExitStatus.OK

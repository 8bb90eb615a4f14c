"""``envdsl gc`` and ``envdsl verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(epilog="\b\nExamples:\n  envdsl gc --dry-run\n  envdsl gc --json")
@click.option("--dry-run", "-n", is_flag=True, help="List what would go, and the bytes that it would free.")
@as_json
@common
def gc(project: Project, dry_run: bool, as_json: bool) -> None:
    """Delete what no root needs.

    Roots are `current`, the projects' locked layers, sessions, running sandboxes and running builds.
    """
    from envdsl.app.collecting import collect

    collected = collect(project, dry_run=dry_run)
    if as_json:
        output.result_json(
            {
                "dry-run": collected.dry_run,
                "paths": [path.path for path in collected.paths],
                "rubbish": list(collected.rubbish),
                "freed": collected.freed,
                "alive": collected.alive,
            }
        )
        return
    gone = [*(path.path for path in collected.paths), *collected.rubbish]
    for path in gone:
        output.result(path)
    verb = "would free" if dry_run else "freed"
    output.message(f"{len(gone)} paths, {verb} {output.size(collected.freed)}; {collected.alive} paths stay")


@click.command(epilog="\b\nExample:\n  envdsl verify --json")
@as_json
@common
def verify(project: Project, as_json: bool) -> int:
    """Recompute the tree hash of every path in the store and name every difference."""
    from envdsl.app.collecting import verify as run

    verified = run(project)
    if as_json:
        output.result_json(
            {
                "paths": verified.paths,
                "bytes": verified.bytes,
                "findings": [
                    {
                        "path": finding.path,
                        "member": finding.member,
                        "problem": finding.problem.value,
                        "expected": finding.expected,
                        "found": finding.found,
                    }
                    for finding in verified.findings
                ],
            }
        )
    else:
        for finding in verified.findings:
            output.result(str(finding))
    output.message(
        f"{verified.paths} paths ({output.size(verified.bytes)}) checked, {len(verified.findings)} differences"
    )
    return ExitStatus.FAILED if verified.findings else ExitStatus.OK

"""``envdsl gc``, ``why-alive`` and ``verify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.ages import age
from envdsl.cli.options import as_json, common, complete_layers, looks, offline
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project


def _size(text: str) -> int:
    from envdsl.sandbox.limits import parse_size

    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    epilog="\b\nExamples:\n  envdsl gc --dry-run\n  envdsl gc --free 10G\n  envdsl gc --older-than 14d --keep-last 3"
)
@click.option("--dry-run", "-n", is_flag=True, help="List what would go, and the bytes that it would free.")
@click.option("--free", type=_size, metavar="SIZE", help="Stop when that much is freed, the longest unused first.")
@click.option("--older-than", type=age, metavar="AGE", help="Only what was not used for that long (14d, 12h).")
@click.option("--keep-last", type=click.IntRange(min=0), default=0, metavar="N", help="Keep N layers of each name.")
@click.option("--drop-missing", is_flag=True, help="Projects that are not there now are gone, not only after a week.")
@as_json
@common
def gc(
    project: Project,
    dry_run: bool,
    free: int | None,
    older_than: float | None,
    keep_last: int,
    drop_missing: bool,
    as_json: bool,
) -> None:
    """Delete what no root needs.

    Roots are `current`, the projects' locked layers, sessions, running sandboxes and running builds; `envdsl
    why-alive` names those of a path. A path is used when it is built, bound into a session, looked up by a build, a
    root, or needed by one that is.
    """
    from envdsl.app.collecting import collect

    collected = collect(
        project, dry_run=dry_run, free=free, older_than=older_than, keep_last=keep_last, drop_missing=drop_missing
    )
    if as_json:
        output.result_json(
            {
                "dry-run": collected.dry_run,
                "paths": [path.path for path in collected.paths],
                "rubbish": list(collected.rubbish),
                "freed": collected.freed,
                "alive": collected.alive,
                "kept": collected.kept,
            }
        )
        return
    gone = [*(path.path for path in collected.paths), *collected.rubbish]
    for path in gone:
        output.result(path)
    verb = "would free" if dry_run else "freed"
    stay = collected.alive + collected.kept
    kept = f", {collected.kept} of them garbage" if collected.kept else ""
    output.message(
        f"{output.count(len(gone), 'path')}, {verb} {output.size(collected.freed)}; "
        f"{output.count(stay, 'path')} {'stays' if stay == 1 else 'stay'}{kept}"
    )
    if free is not None and collected.freed < free:
        output.message(f"that is less than the {output.size(free)} that were asked for: nothing else is garbage")


@click.command(
    "why-alive",
    epilog="\b\nExamples:\n  envdsl why-alive office\n  envdsl why-alive store/unpacked/*-numpy-2.1.0 --json",
)
@click.argument("path", shell_complete=complete_layers)
@as_json
@common
@looks
def why_alive(project: Project, path: str, as_json: bool) -> int:
    """Say what keeps a path of the store from gc: each root, and the references that lead from it to the path.

    PATH is a path (of the store, or a place on disk), a layer's name or id, or a key; the beginning of an id or key
    will do. Exit status 1: nothing keeps it.
    """
    from envdsl.app.collecting import why_alive as ask

    reasons = ask(project, path)
    if as_json:
        output.result_json(
            {
                "path": reasons.path,
                "key": reasons.key,
                "roots": [{"root": chain.root, "chain": list(chain.paths)} for chain in reasons.chains],
            }
        )
    else:
        for chain in reasons.chains:
            output.result(
                f"{chain.root}\n" + "".join(f"  {'  ' * depth}{item}\n" for depth, item in enumerate(chain.paths))
            )
    if not reasons.chains:
        output.message(f"nothing keeps {reasons.path}: `envdsl gc` deletes it")
    return ExitStatus.OK if reasons.chains else ExitStatus.FAILED


@click.command(epilog="\b\nExamples:\n  envdsl verify --json\n  envdsl verify --repair")
@click.option("--repair", is_flag=True, help="Build again what differs, and put it in place of what is there.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Processes that hash.  [default: the processors]")
@offline
@as_json
@common
@looks
def verify(project: Project, repair: bool, jobs: int | None, offline: bool, as_json: bool) -> int:
    """Read everything in the store again, and name every difference, the layers and the sessions that it touches.

    With --repair, what differs is built again, from the wheelhouse where that is whole and else from the index, and
    takes the place of what is there by a rename: running sandboxes keep what they have.
    """
    from envdsl.app.verifying import verify as run

    report = run(project, repair=repair, jobs=jobs, offline=offline)
    if as_json:
        output.result_json(report.to_json())
    else:
        for finding in report.verified.findings:
            output.result(str(finding))
        for line in report.lines():
            output.message(line)
    output.report(diagnostic for error in report.failures.values() for diagnostic in error.diagnostics)
    verified = report.verified
    checked = f"{output.count(verified.paths, 'path')} ({output.size(verified.bytes)}) checked"
    repaired = f", {output.count(len(report.repaired), 'path')} repaired" if repair else ""
    output.message(f"{checked}, {output.count(len(verified.findings), 'difference')}{repaired}")
    if report.sound:
        return ExitStatus.OK
    if not repair:
        output.message("`envdsl verify --repair` builds what differs again")
    return max([ExitStatus.FAILED, *(error.exit_status for error in report.failures.values())])

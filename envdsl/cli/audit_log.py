"""``envdsl audit-log``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.control import controlled, opened
from envdsl.cli.options import as_json, common, complete_sessions
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.app.project import Project
    from envdsl.policy.access import Principal


@click.group("audit-log")
def audit_log() -> None:
    """The audit log: who asked, decided, built and bound what, each event chained to the one before."""


@audit_log.command(epilog="\b\nExamples:\n  envdsl audit-log show --session report-7\n  envdsl audit-log show --json")
@click.option("--session", metavar="SESSION", help="Of one session.", shell_complete=complete_sessions)
@click.option("--subject", metavar="ID", help="Of one request or token.")
@click.option("--before", type=click.IntRange(min=2), metavar="NUMBER", help="Older than this event.")
@click.option("--limit", "-n", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@as_json
@controlled
def show(
    plane: ControlPlane,
    principal: Principal,
    session: str | None,
    subject: str | None,
    before: int | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the latest events, the newest first."""
    from envdsl.app.control import auditing
    from envdsl.state.chain import to_json

    found = auditing.newest(plane, principal, limit=limit, session=session, subject=subject, before=before)
    if as_json:
        output.result_json({"events": [to_json(event) for event in found]})
        return
    for event in found:
        concerns = " ".join(filter(None, (event.session, event.subject)))
        when = event.at.astimezone().isoformat(sep=" ", timespec="seconds")
        output.result(f"{event.number}\t{when}\t{event.actor}\t{event.action}\t{concerns}")


@audit_log.command(
    epilog="\b\nExamples:\n  envdsl audit-log verify\n  envdsl audit-log verify --anchor seal-report-7.json\n"
    "  envdsl audit-log verify --export audit.jsonl"
)
@click.option("--from", "first", type=click.IntRange(min=1), default=1, metavar="NUMBER", help="Begin there.")
@click.option("--to", "last", type=click.IntRange(min=1), metavar="NUMBER", help="End there.  [default: the last]")
@click.option(
    "--anchor",
    metavar="ANCHOR",
    help="What was written down earlier: NUMBER:HASH, or the file of a seal or an export. The log must still have it.",
)
@click.option(
    "--export",
    "exported",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Verify an export instead of the database.",
)
@as_json
@common
def verify(
    project: Project, first: int, last: int | None, anchor: str | None, exported: Path | None, as_json: bool
) -> int:
    """Say whether the chain of events holds; name the first event where it does not.

    The chain shows every event that was changed, removed or put in between, but not events that were cut off its end:
    those miss an --anchor. Prints the last event as NUMBER:HASH, to keep elsewhere as an anchor. Exit status 1 for a
    chain that does not hold.
    """
    from envdsl.app.control import auditing

    if exported is not None:
        if anchor is not None or last is not None or first != 1:
            raise click.UsageError("--export verifies a whole file, without --from, --to and --anchor")
        found = auditing.verify_export(exported)
    else:
        known = auditing.read_anchor(anchor) if anchor is not None else None
        with opened(project) as (plane, principal):
            found = auditing.verify(plane, principal, first=first, last=last, anchor=known)
    if as_json:
        output.result_json(found.to_json())
    elif found.broken is not None:
        output.result(f"broken\t{found.broken.number}\t{found.broken.problem}")
    else:
        output.result(f"sound\t{found.head.number}:{found.head.hash}")
        output.message(f"{output.count(found.events, 'event')} verified")
    return int(ExitStatus.OK if found.broken is None else ExitStatus.FAILED)


@audit_log.command(epilog="\b\nExample:\n  envdsl audit-log export --output audit.jsonl")
@click.option("--from", "first", type=click.IntRange(min=1), default=1, metavar="NUMBER", help="Begin there.")
@click.option("--to", "last", type=click.IntRange(min=1), metavar="NUMBER", help="End there.  [default: the last]")
@click.option(
    "--output", "-o", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="[default: stdout]"
)
@as_json
@controlled
def export(
    plane: ControlPlane, principal: Principal, first: int, last: int | None, file: Path | None, as_json: bool
) -> None:
    """Write the events, oldest first, a line of JSON for each.

    Anybody can verify such a copy: the hash of an event is the blake3 of the rest of its line in canonical form. Its
    last line is an anchor for `audit-log verify`.
    """
    from envdsl.app.control import auditing

    lines = auditing.export(plane, principal, first=first, last=last)
    if file is None:
        for line in lines:
            output.result(line)
        return
    report = {"file": str(file), "events": _write(file, lines)}
    if as_json:
        output.result_json(report)
    else:
        output.result(f"{report['file']}\t{report['events']}")


def _write(file: Path, lines: Iterator[str]) -> int:
    """Written beside it and renamed: never half an export under its name."""
    new = file.with_name(f".{file.name}.new")
    count = 0
    with new.open("w", encoding="utf-8") as stream:
        for line in lines:
            stream.write(f"{line}\n")
            count += 1
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    return count

"""``envdsl session`` and ``envdsl run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.control import controlled
from envdsl.cli.options import as_json, common, complete_layers, complete_sessions, looks
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.app.project import Project
    from envdsl.policy.access import Principal
    from envdsl.session.difference import Difference


@click.group()
def session() -> None:
    """Sessions: named bindings to exact layers, each with its manifest."""


@session.command(epilog="\b\nExample:\n  envdsl session create report-7 --layer office --layer data --workspace ./work")
@click.argument("name")
@click.option(
    "--layer",
    "-l",
    "layers",
    multiple=True,
    required=True,
    metavar="LAYER",
    help="A layer's name or id: one base or iso, then any x.",
    shell_complete=complete_layers,
)
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory at /workspace.  [default: memory, gone with each run]",
)
@click.option("--owner", metavar="NAME", help="Who decides on its requests.  [default: whoever creates it]")
@as_json
@common
def create(
    project: Project, name: str, layers: tuple[str, ...], workspace: Path | None, owner: str | None, as_json: bool
) -> None:
    """Bind NAME to layers; what is not built yet is built first.

    Prints the session's directory, which holds manifest.json, bwrap.args and the script `run`. Where requests are in
    use, the session's history begins with this binding.
    """
    from envdsl.app import sessions
    from envdsl.cli import control

    if owner is None and not control.exists(project):
        created = sessions.create(project, name, layers, workspace)
    else:
        with control.opened(project) as (plane, principal):
            from envdsl.app.control import binding

            binding.check_owner(principal, owner)
            created = sessions.create(project, name, layers, workspace)
            binding.created(plane, principal, name, owner=owner)
    if as_json:
        output.result(created.manifest.to_json())
    else:
        output.result(str(created.directory))


@session.command(epilog="\b\nExample:\n  envdsl session show report-7 --json")
@click.argument("name", shell_complete=complete_sessions)
@as_json
@common
@looks
def show(project: Project, name: str, as_json: bool) -> None:
    """Show what a session is bound to."""
    from envdsl.app import sessions

    found = sessions.show(project, name)
    if as_json:
        output.result(found.manifest.to_json())
    else:
        output.result(output.table(sessions.rows(found)))


@session.command("list", epilog="\b\nExample:\n  envdsl session list --json")
@as_json
@common
@looks
def list_(project: Project, as_json: bool) -> None:
    """List the sessions of the store."""
    from envdsl.app import sessions

    found = sessions.listing(project)
    if as_json:
        sessions_ = [
            {
                "name": item.name,
                "directory": str(item.directory),
                "layers": [{"name": layer.name, "id": str(layer.id)} for layer in item.manifest.layers],
            }
            for item in found
        ]
        output.result_json({"sessions": sessions_})
        return
    for item in found:
        bound = " ".join(layer.name for layer in item.manifest.layers)
        output.result(f"{item.name}\t{bound}\t{item.directory}")


@session.command(
    epilog="\b\nExamples:\n  envdsl session rebase report-7 --dry-run\n  envdsl session rebase report-7 --to office-2 "
    "--add plots --drop data"
)
@click.argument("name", shell_complete=complete_sessions)
@click.option("--to", "base", metavar="BASE", help="Another base or iso layer.  [default: the same name, as it is now]")
@click.option("--add", multiple=True, metavar="LAYER", help="An x layer to add.", shell_complete=complete_layers)
@click.option("--drop", multiple=True, metavar="LAYER", help="An x layer to drop.")
@click.option("--workspace", type=click.Path(file_okay=False, path_type=Path), help="Another directory at /workspace.")
@click.option("--dry-run", "-n", is_flag=True, help="Show what would change; nothing is built or written.")
@click.option("--expect", metavar="DIGEST", help="Only if it changes what `--dry-run` showed, whose digest this is.")
@as_json
@common
def rebase(
    project: Project,
    name: str,
    base: str | None,
    add: tuple[str, ...],
    drop: tuple[str, ...],
    workspace: Path | None,
    dry_run: bool,
    expect: str | None,
    as_json: bool,
) -> None:
    """Bind a session to its layers as they are locked now. Nothing but this, and what is asked for, changes a session.

    What was asked for in the session is resolved again on its new base; where that fails, nothing changes. A sandbox
    that runs keeps what it started with.
    """
    from envdsl.app import sessions
    from envdsl.cli import control

    if control.exists(project):
        with control.opened(project) as (plane, principal):
            from envdsl.app.control import binding

            change = binding.rebase(
                plane,
                principal,
                name,
                base,
                add=add,
                drop=drop,
                workspace=workspace,
                dry_run=dry_run,
                expected=expect,
            )
    else:
        planned = sessions.Change(base, add, drop, workspace)
        change = sessions.rebase(project, name, planned, dry_run=dry_run, expected=expect)
    _show_change(name, change, as_json=as_json, dry_run=dry_run)


@session.command(epilog="\b\nExamples:\n  envdsl session undo report-7\n  envdsl session undo report-7 --to 3")
@click.argument("name", shell_complete=complete_sessions)
@click.option("--to", "number", type=click.IntRange(min=1), metavar="NUMBER", help="A binding of `session history`.")
@click.option("--dry-run", "-n", is_flag=True, help="Show what would change; nothing is written.")
@as_json
@controlled
def undo(
    plane: ControlPlane, principal: Principal, name: str, number: int | None, dry_run: bool, as_json: bool
) -> None:
    """Bind a session to what it had before. An undo can be undone."""
    from envdsl.app.control import binding

    change = binding.undo(plane, principal, name, number=number, dry_run=dry_run)
    _show_change(name, change, as_json=as_json, dry_run=dry_run)


@session.command(epilog="\b\nExample:\n  envdsl session history report-7 --json")
@click.argument("name", shell_complete=complete_sessions)
@as_json
@controlled
def history(plane: ControlPlane, principal: Principal, name: str, as_json: bool) -> None:
    """What a session has been bound to, the newest first, and who or what led to it."""
    from envdsl.app.control import authorising, binding
    from envdsl.policy.access import Action

    authorising.require(plane, principal, Action.SEE_SESSION, name)
    found = binding.history(plane, name)
    if as_json:
        rows = [
            {
                "number": row.number,
                "at": row.at.isoformat(),
                "cause": row.cause,
                "request": row.request,
                "actor": row.actor,
                "layers": [dict(layer) for layer in row.layers],
                "manifest": row.manifest,
            }
            for row in found
        ]
        output.result_json({"session": name, "bindings": rows})
        return
    for row in found:
        layers = " ".join(str(layer["name"]) for layer in row.layers)
        when = row.at.astimezone().isoformat(sep=" ", timespec="minutes")
        output.result(f"{row.number}\t{when}\t{row.cause}\t{row.actor}\t{layers}")


@session.command(epilog="\b\nExample:\n  envdsl session seal report-7 --output report-7.seal.json")
@click.argument("name", shell_complete=complete_sessions)
@click.option(
    "--output", "-o", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="[default: stdout]"
)
@controlled
def seal(plane: ControlPlane, principal: Principal, name: str, file: Path | None) -> None:
    """Write down what a session consists of and who decided that, as one JSON document signed with the store's key.

    It names the last event of the audit log: kept elsewhere, it shows later whether the log was cut off.
    """
    from envdsl.app.control import sealing

    document = sealing.seal(plane, principal, name)
    if file is None:
        output.result_json(document)
    else:
        sealing.write(document, file)
        output.result(str(file))
    output.message(f"signed with the key {document['signer']}")


@session.command("verify-seal", epilog="\b\nExample:\n  envdsl session verify-seal report-7.seal.json")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--trust",
    "trusted",
    multiple=True,
    metavar="KEY",
    help="Who may have signed it: 64 hexadecimal digits or a PEM file.  [default: the store's key]",
)
@as_json
@controlled
def verify_seal(plane: ControlPlane, _principal: Principal, file: Path, trusted: tuple[str, ...], as_json: bool) -> int:
    """Say whether a seal is what a trusted key has signed, and whether the audit log still has what it had then.

    Exit status 3 for a signature that is wrong or of another key, 1 for a log that is another.
    """
    from envdsl.app.control import sealing

    found = sealing.check(file, trusted=trusted, plane=plane)
    broken = found.broken
    if as_json:
        output.result_json(found.to_json())
    elif broken is None:
        output.result(f"sound\t{found.session}\t{found.sealed}\t{found.signer}")
    else:
        output.result(f"broken\t{broken.number}\t{broken.problem}")
    return int(ExitStatus.OK if broken is None else ExitStatus.FAILED)


@session.command(epilog="\b\nExample:\n  envdsl session remove report-7")
@click.argument("name", shell_complete=complete_sessions)
@common
def remove(project: Project, name: str) -> None:
    """Remove a session with its cache; its layers stay until `gc` finds nobody else needs them."""
    from envdsl.app import sessions
    from envdsl.cli import control

    sessions.remove(project, name)
    if control.exists(project):
        with control.opened(project) as (plane, principal):
            from envdsl.app.control import binding

            binding.removed(plane, principal, name)


def _show_change(name: str, change: Difference, *, as_json: bool, dry_run: bool) -> None:
    if as_json:
        output.result_json({"session": name, "dry-run": dry_run, "digest": change.digest, "changes": change.lines()})
        return
    for line in change.lines():
        output.result(line)
    if not change.lines():
        output.message("nothing changes")
    elif dry_run:
        output.message(f"digest {change.digest}")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="\b\nExamples:\n  envdsl run report-7 -- python3 make_report.py\n"
    "  envdsl run --timeout 60 --memory 2G report-7 -- python3 -c 'import numpy'",
)
@click.option("--timeout", type=float, metavar="SECONDS", help="End the whole process tree then; exit status 124.")
@click.option("--memory", metavar="SIZE", help="At most this much memory: 512M, 2G.")
@click.option("--cpus", type=float, help="At most this many processors' time: 0.5, 2.")
@click.option("--pids", type=click.IntRange(min=1), help="At most this many processes and threads.")
@click.option("--env", "-e", "environment", multiple=True, metavar="NAME=VALUE", help="Set a variable.")
@click.option(
    "--mount", "-m", "mounts", multiple=True, metavar="SOURCE:TARGET[:rw]", help="Mount a host path, read-only."
)
@click.argument("name", metavar="SESSION", shell_complete=complete_sessions)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, required=True, metavar="-- COMMAND...")
@common
def run(
    project: Project,
    name: str,
    command: tuple[str, ...],
    timeout: float | None,
    memory: str | None,
    cpus: float | None,
    pids: int | None,
    environment: tuple[str, ...],
    mounts: tuple[str, ...],
) -> int:
    """Run COMMAND in the sandbox of SESSION; its exit status is passed through.

    The sandbox has no network. Only /workspace and the session's cache outlive a run.
    """
    from envdsl.app import sessions

    if command[0] == "--":
        command = command[1:]
    elif command[0].startswith("-"):
        raise click.UsageError(
            f"{command[0]} stands after SESSION, where the command begins. Options of `run` stand before SESSION; "
            f"a command of that name stands after --."
        )
    return sessions.run(
        project,
        name,
        command,
        timeout=timeout,
        memory=memory,
        cpus=cpus,
        pids=pids,
        environment=environment,
        mounts=mounts,
    )

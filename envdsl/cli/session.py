"""``envdsl session`` and ``envdsl run``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, complete_layers, complete_sessions

if TYPE_CHECKING:
    from envdsl.app.project import Project


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
@as_json
@common
def create(project: Project, name: str, layers: tuple[str, ...], workspace: Path | None, as_json: bool) -> None:
    """Bind NAME to layers; what is not built yet is built first.

    Prints the session's directory, which holds manifest.json, bwrap.args and the script `run`.
    """
    from envdsl.app import sessions

    created = sessions.create(project, name, layers, workspace)
    if as_json:
        output.result(created.manifest.to_json())
    else:
        output.result(str(created.directory))


@session.command()
@click.argument("name", shell_complete=complete_sessions)
@as_json
@common
def show(project: Project, name: str, as_json: bool) -> None:
    """Show what a session is bound to."""
    from envdsl.app import sessions

    found = sessions.show(project, name)
    if as_json:
        output.result(found.manifest.to_json())
    else:
        output.result(output.table(sessions.rows(found)))


@session.command("list")
@as_json
@common
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


@session.command(epilog="\b\nExample:\n  envdsl session rebase report-7 --dry-run")
@click.argument("name", shell_complete=complete_sessions)
@click.option("--to", "base", metavar="BASE", help="Another base or iso layer.  [default: the same name, as it is now]")
@click.option("--dry-run", "-n", is_flag=True, help="Show what would change.")
@as_json
@common
def rebase(project: Project, name: str, base: str | None, dry_run: bool, as_json: bool) -> None:
    """Bind a session to its layers as they are locked now. Nothing else ever changes a session.

    A sandbox that runs keeps what it started with.
    """
    from envdsl.app import sessions

    change = sessions.rebase(project, name, base=base, dry_run=dry_run)
    if as_json:
        output.result_json({"session": name, "dry-run": dry_run, "changes": change.lines()})
        return
    for line in change.lines():
        output.result(line)
    if not change.lines():
        output.message("nothing changes")


@session.command()
@click.argument("name", shell_complete=complete_sessions)
@common
def remove(project: Project, name: str) -> None:
    """Remove a session with its cache; its layers stay until `gc` finds nobody else needs them."""
    from envdsl.app import sessions

    sessions.remove(project, name)


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

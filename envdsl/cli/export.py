"""``envdsl export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, complete_layers, offline

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples:\n  envdsl export office --format requirements > requirements.txt\n"
    "  envdsl export data --format pylock --dir ./out     with the wheelhouse beside it\n"
    "  envdsl export report-7 --format venv --dir ./venv"
)
@click.argument("subject", metavar="LAYER|SESSION", shell_complete=complete_layers)
@click.option(
    "--format",
    "style",
    type=click.Choice(["pylock", "requirements", "constraints", "venv"]),
    default="pylock",
    show_default=True,
    help="pylock is PEP 751; constraints are versions alone.",
)
@click.option(
    "--dir",
    "target",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write here, with the wheels beside; of venv, the environment.",
)
@click.option("--all-platforms", is_flag=True, help="Wheels of every locked platform, not this one's.")
@offline
@as_json
@common
def export(
    project: Project,
    subject: str,
    style: str,
    target: Path | None,
    all_platforms: bool,
    offline: bool,
    as_json: bool,
) -> None:
    """Take a layer with its base, or a session, to an installer that knows nothing of envdsl.

    Without --dir the file is printed. A virtual environment is made from the very wheels, with the managed interpreter.
    """
    from envdsl.app import exporting

    if style == "venv" and target is None:
        raise click.UsageError("an environment needs a place: --dir DIRECTORY")
    done = exporting.export(project, subject, style, directory=target, all_platforms=all_platforms, offline=offline)
    if as_json:
        place = str(done.directory) if done.directory is not None else None
        output.result_json({"format": style, "directory": place, "files": list(done.files), "text": done.text})
    elif done.directory is None:
        output.result(done.text)
    else:
        for name in done.files or (".",):
            output.result(str(done.directory / name))

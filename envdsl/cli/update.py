"""``envdsl update``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, layer_arguments

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples:\n  envdsl update                             upgrade all locks, say what that means\n"
    "  envdsl update office --branch update-office\n"
    "  envdsl update --branch update-locks --message-file message.txt && git push origin update-locks"
)
@layer_arguments
@click.option(
    "--branch", metavar="NAME", help="Put the new locks into one commit on a new branch of git, begun at HEAD."
)
@click.option(
    "--message-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the message here, too. Nothing is written where nothing is to be updated.",
)
@as_json
@common
def update(
    project: Project, layers: tuple[str, ...], branch: str | None, message_file: Path | None, as_json: bool
) -> None:
    """Upgrade the locks of layers (of all without names), as a change that is ready for review.

    The same as `envdsl lock --upgrade`, with a message that says what it means: that of `envdsl diff`. With --branch,
    the working tree and the index of git stay as they are, and the message is that of the commit.
    """
    from envdsl.app import updating
    from envdsl.cli import difference
    from envdsl.cli.lock import show

    found = updating.update(project, layers, describe=difference.to_text, branch=branch)
    if found.message and message_file is not None:
        message_file.write_text(found.message, encoding="utf-8")
    if as_json:
        output.result_json(
            {
                "locks": [outcome.to_json() for outcome in found.outcomes],
                "diff": difference.to_json(found.comparison),
                "message": found.message or None,
                "branch": found.branch if found.commit else None,
                "commit": found.commit,
            }
        )
    else:
        for outcome in found.outcomes:
            if outcome.status != "unchanged" or outcome.held_back:
                show(outcome)
    if not found.message:
        output.message("nothing to update")
    elif found.commit is not None:
        output.message(f"branch {found.branch}: {found.commit[:12]} {found.message.splitlines()[0]}")

"""``envdsl diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import common

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples:\n  envdsl diff                                what my changes mean, against HEAD\n"
    "  envdsl diff origin/main --format markdown  a comment for a pull request\n"
    "  envdsl diff office-py311 office-py312\n  envdsl diff session:report-7 office"
)
@click.argument("before", default="HEAD", metavar="[A]")
@click.argument("after", required=False, metavar="[B]")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "markdown", "json"]),
    default="text",
    show_default=True,
    help="Markdown is made for a pull request.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--fetch", is_flag=True, help="Get wheels that changed, to tell licences and import names.")
@click.option("--exit-code", is_flag=True, help="Exit with 1 where there are differences.")
@common
def diff(
    project: Project, before: str, after: str | None, style: str, as_json: bool, fetch: bool, exit_code: bool
) -> int:
    """Say what changed between A and B: layers, lock files, sessions or git revisions.

    A is HEAD by default, B the working tree. A package that has the same version and file name but another hash is
    an alarm, and ends with exit status 1.
    """
    from envdsl.app import comparing
    from envdsl.cli import difference
    from envdsl.lock.difference import Kind

    found = comparing.compare(project, before, after, fetch=fetch)
    if as_json or style == "json":
        output.result_json(difference.to_json(found))
    elif text := difference.to_markdown(found) if style == "markdown" else difference.to_text(found):
        output.result(text)
    if not found.layers and style == "text":
        output.message(f"nothing differs between {found.before} and {found.after}")
    alarm = any(layer.of_kind(Kind.REPINNED) for layer in found.layers)
    return int(alarm or (exit_code and bool(found.layers)))

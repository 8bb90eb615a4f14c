"""``envdsl catalog``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, complete_sessions
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.group()
def catalog() -> None:
    """Which packages sessions may have, which never, and when a person decides (layers.d/catalog.toml)."""


@catalog.command(epilog="\b\nExamples:\n  envdsl catalog check\n  envdsl catalog check --json")
@as_json
@common
def check(project: Project, as_json: bool) -> int:
    """Read the catalog and report all that is wrong with it, with places.

    `envdsl check` does so, too. With --json the findings are the result and go to stdout.
    """
    from envdsl.app.control import catalogue

    report = catalogue.check(project)
    errors = sum(item.severity == "error" for item in report.diagnostics)
    if as_json:
        output.result_json({**report.to_json(), "diagnostics": [output.to_json(item) for item in report.diagnostics]})
    else:
        output.report(report.diagnostics)
    if errors:
        output.message(f"{output.count(errors, 'error')} in {report.file}")
        return ExitStatus.FAILED
    if report.catalog is None:
        output.message(f"there is no {report.file}: a person decides on every request")
        return ExitStatus.OK
    found = report.catalog
    counts = (
        f"{len(found.listed)} allowed, {len(found.rules.deny)} denied, {output.count(len(found.groups), 'group')}, "
        f"{output.count(len(found.sessions), 'override')}"
    )
    output.message(f"{report.file}: {counts}: no errors")
    return ExitStatus.OK


@catalog.command(
    epilog="\b\nExamples:\n  envdsl catalog explain 'pandas>=2'\n"
    "  envdsl catalog explain torch==2.9 --session research-7 --json"
)
@click.argument("package", metavar="REQUIREMENT")
@click.option(
    "--session",
    metavar="ID",
    help="For the session of this name, which need not exist.",
    shell_complete=complete_sessions,
)
@as_json
@common
def explain(project: Project, package: str, session: str | None, as_json: bool) -> None:
    """Say what the catalog makes of a package, and which of its lines say so.

    REQUIREMENT is a name, with versions as `env request` takes them: `pandas==2.3.1` asks about that one, `pandas>=2`
    about the package.
    """
    from envdsl.app.control import catalogue

    found = catalogue.explain(project, package, session)
    if as_json:
        output.result_json(catalogue.described(found, session))
        return
    for line in catalogue.lines(found):
        output.result(line)

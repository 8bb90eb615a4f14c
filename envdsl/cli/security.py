"""``envdsl sbom`` and ``envdsl audit``: what is inside, and what is known to be wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import common, complete_layers, layer_arguments, offline

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(epilog="\b\nExamples:\n  envdsl sbom office --output office.cdx.json\n  envdsl sbom report-7")
@click.argument("subject", metavar="LAYER|SESSION", shell_complete=complete_layers)
@click.option("--platform", metavar="TAG", help="Whose wheels are meant.  [default: this machine's]")
@click.option(
    "--output", "-o", "file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="[default: stdout]"
)
@offline
@common
def sbom(project: Project, subject: str, platform: str | None, file: Path | None, offline: bool) -> None:
    """Print the bill of materials of a layer with its base, or of a session: CycloneDX 1.6 as JSON.

    Hashes and versions are the lock's; licences are what the wheels state. The same locks give the same bytes.
    """
    from envdsl.cli.control import extra
    from envdsl.model.names import Platform

    try:
        chosen = Platform.parse(platform) if platform else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--platform") from error
    with extra("sbom", "bills of materials are written by the library of CycloneDX"):
        import cyclonedx  # noqa: F401 # asked for here so that its absence is said in words

        from envdsl.app import sbom as bills
    bill = bills.sbom(project, subject, platform=chosen, offline=offline)
    if file is None:
        output.result_json(bill)
    else:
        output.write_json(file, bill)
        output.result(str(file))


@click.command(
    epilog="\b\nExamples:\n  envdsl audit\n  envdsl audit office --database osv-pypi.zip\n"
    "  envdsl audit --format sarif > audit.sarif      for code scanning in CI"
)
@layer_arguments
@click.option(
    "--database",
    type=click.Path(exists=True, path_type=Path),
    help="A directory or zip of OSV records.  [default: what envdsl.toml names]",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="sarif: for code scanning.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@offline
@common
def audit(
    project: Project, layers: tuple[str, ...], database: Path | None, style: str, as_json: bool, offline: bool
) -> int:
    """Known vulnerabilities of the locked packages of layers (of all without names), and what indexes withdrew.

    Records come from a dump on this machine (`service.vulnerabilities`) or from an OSV API (`audit.endpoint`); of when
    they are is said. `[[audit.ignore]]` leaves one out, with a reason and a date. Exit status 1 where anything counts.
    """
    from envdsl.app import advisories
    from envdsl.cli import audit_report

    found = advisories.audit(project, layers, database=database, offline=offline)
    if as_json or style == "json":
        output.result_json(audit_report.to_json(found))
    elif style == "sarif":
        output.result_json(audit_report.to_sarif(found))
    else:
        if found.findings:
            output.result("\n".join(audit_report.lines(found)))
        output.message(audit_report.summary(found))
    if found.unreadable:
        output.message(f"{output.count(found.unreadable, 'record')} could not be read: what they tell is not known")
    for expired in found.expired:
        output.message(f"no longer ignored: {expired}")
    return 1 if found.counting else 0

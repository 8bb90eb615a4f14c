"""``envdsl build`` and ``envdsl ensure``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, layer_arguments, offline

if TYPE_CHECKING:
    from envdsl.app.building import BuildReport
    from envdsl.app.project import Project

_jobs = click.option("--jobs", "-j", type=click.IntRange(min=1), help="Steps at once.  [default: the processors]")


@click.command(epilog="\b\nExamples:\n  envdsl build\n  envdsl build office data --locked\n  envdsl build --dry-run")
@layer_arguments
@click.option("--locked", is_flag=True, help="For CI: every lock of the project must be current, asked for or not.")
@click.option("--dry-run", "-n", is_flag=True, help="Print what would be built.")
@_jobs
@offline
@as_json
@common
def build(
    project: Project,
    layers: tuple[str, ...],
    locked: bool,
    dry_run: bool,
    jobs: int | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Build what is missing and print each layer's name, id and path (tab-separated).

    A layer whose lock is missing or stale is refused: `envdsl lock` comes first. Nothing of a wheel is
    executed; the imports of `probe` run in the sandbox once the layer stands.
    """
    from envdsl.app import building

    if dry_run:
        project.looks_only = True
        steps = building.missing(project, layers, locked=locked)
        if as_json:
            output.result_json({"missing": [step.to_json() for step in steps]})
        else:
            for step in steps:
                output.result(f"{step.kind}\t{step.id}\t{step.title}")
            output.message(f"{output.count(len(steps), 'step')} to do" if steps else "nothing to do")
        return
    _show(building.build(project, layers, locked=locked, offline=offline, jobs=jobs), as_json)


@click.command(epilog="\b\nExamples:\n  envdsl ensure\n  envdsl ensure office --offline")
@layer_arguments
@_jobs
@offline
@as_json
@common
def ensure(project: Project, layers: tuple[str, ...], jobs: int | None, offline: bool, as_json: bool) -> None:
    """Make the root ready in one go: interpreters, locks where missing, layers, `current`, probes.

    Without a LAYER, everything that this machine can have an interpreter for is made. Idempotent.
    """
    from envdsl.app import building

    _show(building.ensure(project, layers, offline=offline, jobs=jobs), as_json)


def _show(report: BuildReport, as_json: bool) -> None:
    from envdsl.quick import render

    if report.answers or as_json:
        output.result(render(report.answers, as_json=as_json, built=report.built))
    else:
        output.message("no layer is declared: write one in layers.d/NAME.layer")
    if report.built:
        output.message(f"built {output.count(report.built, 'derivation')} in {report.seconds:.1f} s")

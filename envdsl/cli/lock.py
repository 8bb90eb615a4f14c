"""``envdsl lock``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, layer_arguments, offline
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.locking import LockOutcome
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples:\n  envdsl lock\n  envdsl lock --check\n  envdsl lock office --upgrade-package lxml"
)
@layer_arguments
@click.option("--upgrade", "-U", is_flag=True, help="Move every pin to the newest version that fits.")
@click.option("--upgrade-package", "-P", "packages", multiple=True, metavar="NAME", help="Move the pin of NAME.")
@click.option("--check", is_flag=True, help="Say whether each lock answers its layer file; no network, no change.")
@offline
@as_json
@common
def lock(
    project: Project,
    layers: tuple[str, ...],
    upgrade: bool,
    packages: tuple[str, ...],
    check: bool,
    offline: bool,
    as_json: bool,
) -> int:
    """Resolve layers into lock files (layers.d/pylock.LAYER.toml), or check that locks are current.

    Locking again with nothing changed writes nothing and keeps every pin. The base of an x layer is
    locked before it. --upgrade also says which newer versions the layer's exclude-newer holds back, and until when.
    """
    from envdsl.app import locking

    if check:
        if upgrade or packages:
            raise click.UsageError("--check changes nothing, so it goes with no --upgrade")
        outcomes = locking.check(project, layers)
    else:
        outcomes = locking.lock(project, layers, upgrade=upgrade, upgrade_packages=packages, offline=offline)
    if as_json:
        output.result_json({"locks": [outcome.to_json() for outcome in outcomes]})
    else:
        for outcome in outcomes:
            show(outcome)
    stale = [outcome for outcome in outcomes if outcome.status in ("stale", "missing", "orphaned")]
    if stale:
        verb = "is" if len(stale) == 1 else "are"
        output.message(f"{len(stale)} of {output.count(len(outcomes), 'lock')} {verb} not current: run `envdsl lock`")
        return ExitStatus.FAILED
    return ExitStatus.OK


def show(outcome: LockOutcome) -> None:
    """One lock as text: its status, what came, went and moved, why, and what was held back."""
    output.result(f"{outcome.status}\t{outcome.layer}\t{outcome.path}")
    for sign, names in (("+", outcome.added), ("-", outcome.removed), ("~", outcome.changed)):
        for name in names:
            output.result(f"  {sign} {name}")
    for reason in outcome.reasons:
        output.result(f"  {reason}")
    for item in outcome.held_back:
        until = f"until {item.eligible:%Y-%m-%d %H:%M} UTC" if item.eligible else "while its date stands"
        output.result(f"  held back by exclude-newer {until}: {item.name} {item.version}")

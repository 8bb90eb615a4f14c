"""What ``exclude-newer`` holds back from locks that were just upgraded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from envdsl.errors import Diagnostic, EnvdslError

if TYPE_CHECKING:
    from datetime import datetime

    from envdsl.app.locking import LockOutcome
    from envdsl.app.project import Project
    from envdsl.lock.heldback import HeldBack, Undated
    from envdsl.lock.index import IndexConfiguration

_THREADS = 8


def with_held_back(
    project: Project,
    outcomes: Sequence[LockOutcome],
    configuration: IndexConfiguration,
    *,
    now: datetime,
    names: Collection[str] = (),
) -> tuple[LockOutcome, ...]:
    """``outcomes`` with what ``exclude-newer`` holds back of the packages ``names`` (of all without any).

    An index that cannot be asked any more, or that tells no upload times, is a warning, once.
    """
    from envdsl.lock.heldback import HeldBack, held_back
    from envdsl.lock.pages import Pages

    pages = Pages(configuration)
    work = [
        (layer, package, configuration.restricted(layer.index, layer.span))
        for outcome in outcomes
        if (layer := project.spec.layers[outcome.layer]).exclude_newer is not None
        and (lock := project.lock(layer.name)) is not None
        for package in lock.packages
        if not names or package.name in names
    ]
    if not work:
        return tuple(outcomes)

    def ask(index: int) -> HeldBack | Undated | EnvdslError | None:
        layer, package, sources = work[index]
        try:
            return held_back(layer, package, pages=pages, configuration=sources, now=now)
        except EnvdslError as error:
            return error

    by_layer: dict[str, list[HeldBack]] = {}
    said: set[str] = set()
    with ThreadPoolExecutor(_THREADS) as pool:
        for (layer, _, _), found in zip(work, pool.map(ask, range(len(work))), strict=True):
            if isinstance(found, HeldBack):
                by_layer.setdefault(layer.name, []).append(found)
            elif found is not None and (message := _unknown(found)) not in said:
                said.add(message)
                project.reporter.warn(Diagnostic("app-held-back-unknown", message, severity="warning"))
    return tuple(replace(outcome, held_back=tuple(by_layer.get(outcome.layer, ()))) for outcome in outcomes)


def _unknown(found: Undated | EnvdslError) -> str:
    if isinstance(found, EnvdslError):
        return f"what `exclude-newer` holds back cannot be told: {found}"
    return (
        f"the index {found.source.label} does not say when its files were uploaded (PEP 700), so `exclude-newer` holds "
        "back all of it, and nobody can tell until when"
    )

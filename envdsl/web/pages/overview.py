"""The first page: what waits for a person, what is being built, how the store and the machine are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.policy.access import Action
from envdsl.web.pages import names
from envdsl.web.pages.request_lines import OPEN, WAITING, Line, lines
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.app.control.inventory import Summary
    from envdsl.sandbox.doctor import Finding

_MOST = 20


@dataclass(frozen=True, slots=True)
class OverviewView:
    """``store`` is None for who may not see it; ``complete`` says that all checks were run, not only the quick ones."""

    waiting: Sequence[Line]
    running: Sequence[Line]
    store: Summary | None
    findings: Sequence[Finding]
    complete: bool


def overview(visit: Visit) -> Response:
    return visit.page("overview.html", _view(visit, complete=False))


def health(visit: Visit) -> Response:
    """The same with every check, sandboxes started: takes seconds."""
    return visit.page("overview.html", _view(visit, complete=True))


def _view(visit: Visit, *, complete: bool) -> OverviewView:
    from envdsl.app.control import inventory

    found = lines(visit, statuses=OPEN, limit=200)
    sees_store = visit.may(Action.SEE_STORE)
    return OverviewView(
        waiting=[line for line in found if line.state == WAITING][:_MOST],
        running=[line for line in found if line.state != WAITING][:_MOST],
        store=inventory.summary(visit.plane.project) if sees_store else None,
        findings=_findings(visit, complete) if sees_store else (),
        complete=complete,
    )


def _findings(visit: Visit, complete: bool) -> list[Finding]:
    """All but those on sessions that the visitor may not see."""
    from envdsl.app.doctor import examine

    seen = {f"session {name}" for name in names.visible(visit)}
    found = examine(visit.plane.project, sandboxes=complete)
    return [finding for finding in found if not finding.check.startswith("session ") or finding.check in seen]

"""The audit log, page by page, and whether its chain holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.app.control.auditing import Verification
    from envdsl.state.records import AuditEvent

_PAGE = 50


@dataclass(frozen=True, slots=True)
class AuditView:
    """Events, the newest first; ``older`` is the number that the next page begins before. ``verified`` is set where
    the chain was just verified."""

    events: Sequence[AuditEvent]
    session: str
    older: int | None
    verified: Verification | None = None


def listing(visit: Visit) -> Response:
    return visit.page("audit.html", _view(visit))


def verify(visit: Visit) -> Response:
    from envdsl.app.control import auditing

    return visit.page("audit.html", _view(visit, auditing.verify(visit.plane, visit.principal)))


def _view(visit: Visit, verified: Verification | None = None) -> AuditView:
    from envdsl.app.control import auditing

    session, before = visit.query("session"), visit.query("before")
    found = auditing.newest(
        visit.plane,
        visit.principal,
        limit=_PAGE + 1,
        session=session or None,
        before=int(before) if before.isascii() and before.isdecimal() and len(before) < 19 else None,
    )
    older = found[_PAGE - 1].number if len(found) > _PAGE else None
    return AuditView(found[:_PAGE], session, older, verified)

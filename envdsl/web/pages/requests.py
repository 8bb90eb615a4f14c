"""The queue of requests, and one request: its card, its way so far, and the buttons of who may decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.errors import Diagnostic
from envdsl.policy.access import Action
from envdsl.policy.proposal import Choice
from envdsl.state.records import RequestRecord, Status
from envdsl.web.pages import names
from envdsl.web.pages.request_lines import OPEN, Line, lines, state_of
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.app.control.card import Card
    from envdsl.state.records import AuditEvent

_PAGE = 50
_STATUSES = tuple(status.value for status in Status)


@dataclass(frozen=True, slots=True)
class QueueView:
    """``state`` is ``open``, ``all`` or a status; ``more`` the id that the next page begins before."""

    lines: Sequence[Line]
    state: str
    session: str
    sessions: Sequence[str]
    statuses: Sequence[str]
    more: str | None


@dataclass(frozen=True, slots=True)
class RequestView:
    """``card`` is None where the session is gone. ``events`` are its states so far, the oldest first; ``choices`` what
    the visitor may decide now."""

    record: RequestRecord
    state: str
    title: str
    card: Card | None
    events: Sequence[AuditEvent]
    choices: Sequence[str]
    may_cancel: bool
    may_promote: bool

    @property
    def failure(self) -> Diagnostic | None:
        """Why it failed, as the worker wrote it down."""
        found = self.record.problem
        return Diagnostic(found["code"], found["message"], hint=found.get("hint")) if found else None

    @property
    def moves(self) -> bool:
        """Whether its state may change by itself soon, so that the page looks again."""
        return not self.record.status.ended


def queue(visit: Visit) -> Response:
    state = visit.query("state") or "open"
    statuses = OPEN if state == "open" else {Status(state)} if state in _STATUSES else None
    session = visit.query("session")
    # Of a session that is none of the visitor's there is nothing to see, whether there is such a session or not.
    found = (
        lines(visit, session=session or None, statuses=statuses, before=visit.query("before") or None, limit=_PAGE + 1)
        if not session or visit.may(Action.SEE_SESSION, session)
        else []
    )
    view = QueueView(
        lines=found[:_PAGE],
        state=state,
        session=session,
        sessions=names.visible(visit),
        statuses=_STATUSES,
        more=found[_PAGE - 1].id if len(found) > _PAGE else None,
    )
    return visit.page("requests.html", view)


def request(visit: Visit) -> Response:
    """The page; or nothing (204) for a page that looks again while the state is the one that it has ``seen``."""
    if visit.query("seen") == state_of(visit.asked):
        return Response(status_code=204)
    return visit.page("request.html", _view(visit, visit.asked))


def decide(visit: Visit) -> Response:
    """Decide on what was shown: the form carries the digest of each plan, and another one by now is refused."""
    from envdsl.app.control import deciding

    choice = Choice(visit.choice("choice", [choice.value for choice in Choice]))
    record = deciding.decide(
        visit.plane,
        visit.principal,
        visit.asked.id,
        choice,
        digest=visit.field(f"digest-{choice}") or None,
        comment=visit.field("comment"),
    )
    done = {Choice.APPROVE: "approved", Choice.ISOLATE: "isolated", Choice.DENY: "denied"}[choice]
    return visit.redirect(f"/requests/{record.id}", done=done)


def cancel(visit: Visit) -> Response:
    from envdsl.app.control import asking

    record = asking.cancel(visit.plane, visit.principal, visit.asked.id)
    return visit.redirect(f"/requests/{record.id}", done="cancelled")


def promote(visit: Visit) -> Response:
    from envdsl.app.control import promoting

    promoting.promote(visit.plane, visit.principal, visit.asked.id, name=visit.field("name") or None)
    return visit.redirect(f"/requests/{visit.asked.id}", done="promoted")


def _view(visit: Visit, record: RequestRecord) -> RequestView:
    from envdsl.app.control import auditing
    from envdsl.app.control.card import card

    state = state_of(record)
    session = record.session
    made = card(visit.plane, record) if visit.owner_of(session) is not None else None
    return RequestView(
        record=record,
        state=state,
        title=", ".join(record.requirements) or ", ".join(str(item["filename"]) for item in record.uploads),
        card=made,
        events=auditing.of_request(visit.plane, record),
        choices=made.choices if made is not None and visit.may(Action.DECIDE, session) else (),
        may_cancel=_cancellable(record) and visit.may(Action.CANCEL, session),
        may_promote=record.status is Status.READY and record.layer is not None and visit.may(Action.PROMOTE, session),
    )


def _cancellable(record: RequestRecord) -> bool:
    return not record.status.ended and record.status is not Status.BUILDING

"""Requests as lines of a table, with the state that a person understands."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from envdsl.state.machine import OPEN
from envdsl.state.records import RequestRecord, Status
from envdsl.web.pages.visit import Visit

__all__ = ["OPEN", "RESOLVING", "STATES", "WAITING", "Line", "line", "lines", "state_of"]

# A pending request is one of two things to a person: somebody has to decide, or nobody has to do anything yet.
WAITING = Status.PENDING.value
RESOLVING = "resolving"
STATES = (RESOLVING, *(status.value for status in Status))


@dataclass(frozen=True, slots=True)
class Line:
    """``title`` is what was asked for, ``files`` how many wheels came along, ``state`` one of :data:`STATES`."""

    id: str
    title: str
    files: int
    session: str
    requester: str
    created: datetime
    state: str


def state_of(record: RequestRecord) -> str:
    if record.status is Status.PENDING and record.classification is None:
        return RESOLVING
    return record.status.value


def line(record: RequestRecord) -> Line:
    names = record.requirements or tuple(str(upload["filename"]) for upload in record.uploads)
    return Line(
        id=record.id,
        title=", ".join(names) or record.id,
        files=len(record.uploads),
        session=record.session,
        requester=record.requester,
        created=record.created,
        state=state_of(record),
    )


def lines(
    visit: Visit,
    *,
    session: str | None = None,
    statuses: Collection[Status] | None = None,
    before: str | None = None,
    limit: int = 100,
) -> list[Line]:
    """The requests that the visitor may see, the newest first; ``before`` (an id) begins the next page."""
    from envdsl.app.control import asking

    found = asking.listing(visit.plane, visit.principal, session=session, statuses=statuses, before=before, limit=limit)
    return [line(record) for record in found]

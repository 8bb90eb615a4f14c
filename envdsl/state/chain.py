"""The hash chain of audit events. Pure, and short enough to be written again elsewhere from this description:

The hash of an event is the blake3 of its canonical JSON (:mod:`envdsl.model.canonical`: sorted keys, no spaces, UTF-8)
with the members ``number at actor action session subject data previous``; ``at`` is UTC as
``2026-11-30T21:00:00.000000Z``. ``previous`` is the hash of the event before, 64 zeros for number 1; numbers have no
gap. ``docs/policy.md`` says what the chain proves and what it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.state.records import AuditEvent

GENESIS = "0" * 64
_MOMENT = "%Y-%m-%dT%H:%M:%S.%fZ"


@dataclass(frozen=True, slots=True)
class Anchor:
    """An event that somebody wrote down elsewhere: its number and hash."""

    number: int
    hash: str


@dataclass(frozen=True, slots=True)
class Break:
    """The first number at which a chain does not hold, and why."""

    number: int
    problem: str


def link(
    before: Anchor,
    *,
    at: datetime,
    actor: str,
    action: str,
    session: str | None,
    subject: str | None,
    data: Mapping[str, Any],
) -> AuditEvent:
    """The event that follows ``before``. Raises TypeError where ``data`` has no canonical form (a float)."""
    fields = (before.number + 1, at, actor, action, session, subject, data, before.hash)
    return AuditEvent(*fields, hash=_digest(AuditEvent(*fields, hash="")))


def to_json(event: AuditEvent) -> dict[str, Any]:
    """As exported: what is hashed, and ``hash``."""
    return _hashed(event) | {"hash": event.hash}


def from_json(value: Mapping[str, Any]) -> AuditEvent:
    """Raises KeyError, TypeError or ValueError for what :func:`to_json` never writes."""
    fields = {**value, "at": datetime.strptime(value["at"], _MOMENT).replace(tzinfo=UTC)}
    return AuditEvent(**fields)


def check(events: Iterable[AuditEvent], before: Anchor | None = None) -> Break | None:
    """Whether ``events``, in order, follow ``before`` (None: whatever the first names) and each other."""
    for event in events:
        if before is not None:
            if event.number != before.number + 1:
                return Break(before.number + 1, f"event {before.number + 1} is missing: {event.number} follows")
            if event.previous != before.hash:
                return Break(event.number, f"event {event.number} does not follow event {before.number} as it is now")
        try:
            digest = _digest(event)
        except (TypeError, ValueError):  # a float, half a surrogate pair: never written here
            digest = ""
        if event.hash != digest:
            return Break(event.number, f"event {event.number} was changed: its hash is another")
        before = Anchor(event.number, event.hash)
    return None


def _hashed(event: AuditEvent) -> dict[str, Any]:
    return {
        "number": event.number,
        "at": event.at.astimezone(UTC).strftime(_MOMENT),
        "actor": event.actor,
        "action": event.action,
        "session": event.session,
        "subject": event.subject,
        "data": dict(event.data),
        "previous": event.previous,
    }


def _digest(event: AuditEvent) -> str:
    return blake3_hex(canonical_json(_hashed(event)))

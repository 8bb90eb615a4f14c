"""``webhook_events``: the outbox. What is to be announced is written in the transaction that makes it so, and
delivered afterwards, at least once: the receiver tells a repetition by the event's id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update

from envdsl.state.ids import new_id
from envdsl.state.records import WebhookRecord
from envdsl.state.tables import webhooks

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Undelivered:
    """What of an outbox is still to be delivered: how many events, how many of them failed the last time, and since
    when the oldest waits."""

    count: int
    failing: int
    oldest: datetime | None


class Webhooks:
    """The outbox in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def put(self, store: str, event: str, payload: Mapping[str, Any]) -> WebhookRecord:
        """An event (``request.waiting``) to deliver, from now on."""
        now = self._transaction.now
        record = WebhookRecord(new_id("evt", now), store, event, dict(payload), now, now, 0, None, None)
        values = {column.name: getattr(record, column.name) for column in webhooks.columns}
        self._transaction.write(insert(webhooks).values(values))
        return record

    def due(self, store: str, *, lease_seconds: float, limit: int = 20) -> list[WebhookRecord]:
        """The events to deliver now, oldest first. Nobody else gets them for ``lease_seconds``: time to deliver them
        and say how it went; ``attempts`` counts this one."""
        now = self._transaction.now
        query = (
            select(webhooks)
            .where(webhooks.c.store == store, webhooks.c.due <= now)
            .order_by(webhooks.c.due, webhooks.c.id)
            .limit(limit)
        )
        ids = [row.id for row in self._transaction.read(query)]
        if ids:
            taken = update(webhooks).where(webhooks.c.id.in_(ids))
            lease = now + timedelta(seconds=lease_seconds)
            self._transaction.write(taken.values(due=lease, attempts=webhooks.c.attempts + 1))
        mine = self._transaction.read(select(webhooks).where(webhooks.c.id.in_(ids)).order_by(webhooks.c.id))
        return [WebhookRecord(**row._mapping) for row in mine]

    def delivered(self, event_id: str) -> None:
        self._set(event_id, due=None, delivered=self._transaction.now, problem=None)

    def retry(self, event_id: str, next_at: datetime, problem: str) -> None:
        """It failed, for a reason without credentials; try again at ``next_at``."""
        self._set(event_id, due=next_at, problem=problem)

    def give_up(self, event_id: str, problem: str) -> None:
        """Deliver it no more; its row stays, and says why."""
        self._set(event_id, due=None, problem=problem)

    def count_since(self, store: str, session: str, since: datetime) -> int:
        """How many events about a session were put after ``since``, delivered or not."""
        query = select(func.count()).where(
            webhooks.c.store == store,
            webhooks.c.created > since,
            webhooks.c.payload["session"].as_string() == session,
        )
        return int(self._transaction.read(query).scalar() or 0)

    def waiting(self, store: str) -> int:
        """How many events of a store are still to be delivered."""
        query = select(func.count()).where(webhooks.c.store == store, webhooks.c.due.is_not(None))
        return int(self._transaction.read(query).scalar() or 0)

    def undelivered(self, store: str) -> Undelivered:
        """What of a store is still to be delivered; not what was given up."""
        query = select(
            func.count().label("count"),
            func.count(webhooks.c.problem).label("failing"),
            func.min(webhooks.c.created).label("oldest"),
        ).where(webhooks.c.store == store, webhooks.c.due.is_not(None))
        return Undelivered(**self._transaction.read(query).one()._mapping)

    def _set(self, event_id: str, **values: Any) -> None:
        self._transaction.write(update(webhooks).where(webhooks.c.id == event_id).values(**values))

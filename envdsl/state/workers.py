"""``exec_env_workers``: which workers live. Not in the audit log: a worker acts only through requests."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from envdsl.state.records import WorkerRecord
from envdsl.state.tables import workers

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction

_FORGOTTEN = timedelta(days=1)


class Workers:
    """The workers in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def seen(self, name: str, store: str) -> None:
        """``name`` lives. Those that were not seen for a day are forgotten along the way."""
        now = self._transaction.now
        if self._transaction.write(update(workers).where(workers.c.name == name).values(seen=now)).rowcount:
            return
        self._transaction.write(delete(workers).where(workers.c.seen < now - _FORGOTTEN))
        self._transaction.write(insert(workers).values(name=name, store=store, started=now, seen=now))

    def alive(self, store: str, within_seconds: float) -> list[WorkerRecord]:
        """The workers of a store that were seen within that time, by name."""
        since = self._transaction.now - timedelta(seconds=within_seconds)
        query = select(workers).where(workers.c.store == store, workers.c.seen >= since).order_by(workers.c.name)
        return [WorkerRecord(**row._mapping) for row in self._transaction.read(query)]

    def gone(self, name: str) -> None:
        """``name`` has stopped."""
        self._transaction.write(delete(workers).where(workers.c.name == name))

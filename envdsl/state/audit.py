"""``audit_events``: who did what, when. Rows are only ever added, each chained to the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, insert, select

from envdsl.state import chain
from envdsl.state.chain import GENESIS, Anchor, Break
from envdsl.state.records import AuditEvent
from envdsl.state.tables import audit_events

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction

_BATCH = 1000  # rows that are in memory at a time


class Audit:
    """The audit log in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(
        self,
        *,
        actor: str,
        action: str,
        session: str | None = None,
        subject: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> AuditEvent:
        """Add an event. ``action`` is ``<noun>.<participle>`` (``request.approved``), ``subject`` the id of what it
        concerns, ``data`` JSON without floats. Raises TypeError for a float."""
        event = chain.link(
            self.head(),
            at=self._transaction.now,
            actor=actor,
            action=action,
            session=session,
            subject=subject,
            data=data or {},
        )
        values = {column.name: getattr(event, column.name) for column in audit_events.columns}
        self._transaction.write(insert(audit_events).values(values))
        return event

    def head(self) -> Anchor:
        """Number and hash of the last event; number 0 of an empty log."""
        newest = select(audit_events.c.number, audit_events.c.hash).order_by(audit_events.c.number.desc()).limit(1)
        row = self._transaction.read(newest).first()
        return Anchor(row.number, row.hash) if row is not None else Anchor(0, GENESIS)

    def newest(
        self,
        *,
        limit: int,
        store: str | None = None,
        session: str | None = None,
        subject: str | None = None,
        before: int | None = None,
    ) -> list[AuditEvent]:
        """Up to ``limit`` events, the newest first: of a store, of a session, of a subject, with numbers below
        ``before``."""
        query = select(audit_events).order_by(audit_events.c.number.desc()).limit(limit)
        if store is not None:
            query = query.where(audit_events.c.data["store"].as_string() == store)
        if session is not None:
            query = query.where(audit_events.c.session == session)
        if subject is not None:
            query = query.where(audit_events.c.subject == subject)
        if before is not None:
            query = query.where(audit_events.c.number < before)
        return list(self._events(query))

    def range(self, first: int = 1, last: int | None = None) -> Iterator[AuditEvent]:
        """The events numbered ``first`` to ``last``, oldest first, read as they are asked for."""
        query = select(audit_events).where(audit_events.c.number >= first).order_by(audit_events.c.number)
        if last is not None:
            query = query.where(audit_events.c.number <= last)
        return self._events(query)

    def verify(self, first: int = 1, last: int | None = None, *, anchor: Anchor | None = None) -> Break | None:
        """The first place where the chain from ``first`` to ``last`` does not hold; None where it holds.

        ``anchor`` is an event that was written down earlier (a seal, an export): the log must still have it, which
        the chain alone cannot tell of events that were cut off its end.
        """
        before = Anchor(0, GENESIS)
        if first > 1:
            hash_ = self._hash(first - 1)
            if hash_ is None:
                return Break(first - 1, f"event {first - 1} is missing")
            before = Anchor(first - 1, hash_)
        if (found := chain.check(self.range(first, last), before)) is not None:
            return found
        if last is not None and last >= first and self._hash(last) is None:
            missing = self.head().number + 1
            return Break(missing, f"event {missing} is missing: the log ends before {last}")
        return self._verify_anchor(anchor) if anchor is not None and anchor.number > 0 else None

    def _verify_anchor(self, anchor: Anchor) -> Break | None:
        hash_ = self._hash(anchor.number)
        if hash_ is None:
            missing = self.head().number + 1
            return Break(missing, f"event {missing} is missing: the log once had {anchor.number}, and was cut off")
        if hash_ != anchor.hash:
            return Break(anchor.number, f"event {anchor.number} is not the one that was written down")
        return None

    def _hash(self, number: int) -> str | None:
        query = select(audit_events.c.hash).where(audit_events.c.number == number)
        found: str | None = self._transaction.read(query).scalar()
        return found

    def _events(self, query: Select[Any]) -> Iterator[AuditEvent]:
        for row in self._transaction.read(query.execution_options(yield_per=_BATCH)):
            yield AuditEvent(**row._mapping)

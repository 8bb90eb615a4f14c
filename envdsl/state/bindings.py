"""``exec_env_bindings``: what each session had when. A row is added at each change, none is ever changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, insert, select

from envdsl.state.records import BindingRecord
from envdsl.state.tables import bindings

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction


class Bindings:
    """The history of bindings in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def append(
        self,
        *,
        store: str,
        session: str,
        cause: str,
        actor: str,
        layers: Sequence[Mapping[str, Any]],
        manifest: str,
        request: str | None = None,
    ) -> BindingRecord:
        """Note that ``session`` is bound to ``layers`` from now on, with the audit row ``binding.<cause>``.

        A repetition (same manifest, cause and request as the last one) adds nothing: a worker that died between this
        and its next step may do it again.
        """
        before = self.latest(store, session)
        if before is not None and (before.manifest, before.cause, before.request) == (manifest, cause, request):
            return before
        record = BindingRecord(
            store=store,
            session=session,
            number=before.number + 1 if before is not None else 1,
            cause=cause,
            request=request,
            actor=actor,
            layers=tuple(dict(layer) for layer in layers),
            manifest=manifest,
            at=self._transaction.now,
        )
        values = {column.name: getattr(record, column.name) for column in bindings.columns}
        self._transaction.write(insert(bindings).values(values | {"layers": list(record.layers)}))
        self._transaction.audit.append(
            actor=actor,
            action=f"binding.{cause}",
            session=session,
            subject=request,
            data={
                "store": store,
                "number": record.number,
                "layers": [layer.get("id") for layer in record.layers],
                "manifest": manifest,
            },
        )
        return record

    def latest(self, store: str, session: str) -> BindingRecord | None:
        """What the session has now; None where its history is not known here."""
        found = self.history(store, session, limit=1)
        return found[0] if found else None

    def get(self, store: str, session: str, number: int) -> BindingRecord | None:
        query = select(bindings).where(
            bindings.c.store == store, bindings.c.session == session, bindings.c.number == number
        )
        row = self._transaction.read(query).first()
        return _record(row) if row is not None else None

    def history(self, store: str, session: str, *, limit: int | None = None) -> list[BindingRecord]:
        """What the session had, the newest first."""
        query = (
            select(bindings)
            .where(bindings.c.store == store, bindings.c.session == session)
            .order_by(bindings.c.number.desc())
            .limit(limit)
        )
        return [_record(row) for row in self._transaction.read(query)]


def _record(row: Row[Any]) -> BindingRecord:
    return BindingRecord(**{**row._mapping, "layers": tuple(row.layers)})

"""``exec_env_sessions``: to whom a session belongs, where it is not the user whose directory it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, insert, select, update

from envdsl.state.tables import sessions

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction


class Sessions:
    """Owners of sessions in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def owner(self, store: str, session: str) -> str | None:
        query = select(sessions.c.owner).where(sessions.c.store == store, sessions.c.session == session)
        found: str | None = self._transaction.read(query).scalar()
        return found

    def owned_by(self, store: str, owner: str) -> list[str]:
        """Names of the sessions that were given to ``owner``, sorted."""
        query = select(sessions.c.session).where(sessions.c.store == store, sessions.c.owner == owner)
        return sorted(self._transaction.read(query).scalars())

    def owners(self, store: str) -> dict[str, str]:
        """Session to owner, for all that have a row."""
        query = select(sessions.c.session, sessions.c.owner).where(sessions.c.store == store)
        return {row.session: row.owner for row in self._transaction.read(query)}

    def give(self, store: str, session: str, owner: str, *, actor: str) -> None:
        """Make ``owner`` the session's owner, with the audit row ``session.owned``; nothing where that is so."""
        before = self.owner(store, session)
        if before == owner:
            return
        same = (sessions.c.store == store, sessions.c.session == session)
        if before is None:
            values = {"store": store, "session": session, "owner": owner, "created": self._transaction.now}
            self._transaction.write(insert(sessions).values(values))
        else:
            self._transaction.write(update(sessions).where(*same).values(owner=owner))
        self._audit(store, session, actor, "session.owned", {"owner": owner, "before": before})

    def remove(self, store: str, session: str, *, actor: str) -> None:
        """Forget the owner of a session that was removed; the history of its bindings stays."""
        before = self.owner(store, session)
        if before is None:
            return
        same = (sessions.c.store == store, sessions.c.session == session)
        self._transaction.write(delete(sessions).where(*same))
        self._audit(store, session, actor, "session.removed", {"owner": before})

    def _audit(self, store: str, session: str, actor: str, action: str, data: dict[str, str | None]) -> None:
        self._transaction.audit.append(actor=actor, action=action, session=session, data={"store": store, **data})

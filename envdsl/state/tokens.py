"""``access_tokens``: bearer tokens, of which only digests are kept.

A token is 256 random bits. A plain sha256 of it is as good as the slow hashes that passwords need: there is nothing
to guess from (no word list holds it), and a stolen table cannot be searched, while a slow hash at every request would
be a way to keep the service busy.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, bindparam, insert, select, update

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.state.ids import new_id
from envdsl.state.records import TokenRecord
from envdsl.state.tables import tokens

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction

LETTERS = {"administrator": "d", "agent": "a", "owner": "o", "reader": "r"}
_BY_DIGEST = select(tokens).where(tokens.c.digest == bindparam("digest"), tokens.c.store == bindparam("store"))
_TOKEN = re.compile(r"envdsl_[ador]_[0-9a-f]{64}")
_BYTES = 32
_AT_ONCE = 500  # ids of one statement: a database limits its parameters
USE_RESOLUTION = timedelta(minutes=1)  # to write down every use would make every reader a writer


class Tokens:
    """The tokens in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def create(
        self,
        *,
        store: str,
        role: str,
        name: str,
        actor: str,
        session: str | None = None,
        expires: datetime | None = None,
    ) -> tuple[str, TokenRecord]:
        """A new token (its text is shown once and is nowhere afterwards) and its row, with ``token.created``.

        ``role`` is a key of :data:`LETTERS`; an agent's has a session, the others none. ``name`` is the principal.
        """
        now = self._transaction.now
        text = f"envdsl_{LETTERS[role]}_{secrets.token_hex(_BYTES)}"
        record = TokenRecord(
            id=new_id("tok", now),
            role=role,
            name=name,
            session=session,
            created=now,
            expires=expires,
            revoked=None,
            used=None,
            store=store,
        )
        values = {column.name: getattr(record, column.name) for column in tokens.columns if column.name != "digest"}
        self._transaction.write(insert(tokens).values(**values, digest=_digest(text)))
        self._audit(record, actor, "token.created")
        return text, record

    def find(self, text: str, *, store: str) -> TokenRecord | None:
        """The row of a token that is valid now in ``store``: not revoked, not expired.

        It is looked up by its digest: how long that takes tells of a digest, which does not lead to a token.
        """
        if _TOKEN.fullmatch(text) is None:
            return None
        digest = _digest(text)
        row = self._transaction.read(_BY_DIGEST, {"digest": digest, "store": store}).first()
        if row is None or not hmac.compare_digest(row.digest, digest):
            return None
        return self._valid(_record(row))

    def valid(self, token_id: str, *, store: str) -> TokenRecord | None:
        """The same by the id of a token."""
        row = self._row(token_id, store)
        return self._valid(_record(row)) if row is not None else None

    def is_use_due(self, record: TokenRecord) -> bool:
        """Whether its last use was written down long enough ago to write this one."""
        return record.used is None or self._transaction.now - record.used >= USE_RESOLUTION

    def touch(self, *token_ids: str) -> None:
        """Write down that they are used now."""
        for start in range(0, len(token_ids), _AT_ONCE):
            some = tokens.c.id.in_(token_ids[start : start + _AT_ONCE])
            self._transaction.write(update(tokens).where(some).values(used=self._transaction.now))

    def revoke(self, token_id: str, *, store: str, actor: str) -> TokenRecord:
        """From now on it opens nothing; with ``token.revoked``. A second time changes nothing.

        Raises :class:`EnvdslError` ``state-unknown-token``.
        """
        before = self._get(token_id, store)
        if before.revoked is not None:
            return before
        self._transaction.write(update(tokens).where(tokens.c.id == token_id).values(revoked=self._transaction.now))
        self._audit(before, actor, "token.revoked")
        return self._get(token_id, store)

    def revoke_of_session(self, session: str, *, store: str, actor: str) -> None:
        """Revoke the tokens that open ``session``: they are of this one, not of a later one that is called so, too."""
        query = select(tokens.c.id).where(
            tokens.c.store == store, tokens.c.session == session, tokens.c.revoked.is_(None)
        )
        for token_id in self._transaction.read(query).scalars().all():
            self.revoke(token_id, store=store, actor=actor)

    def list(self, store: str) -> list[TokenRecord]:
        """All tokens of a store, those that are over included, the newest first."""
        query = select(tokens).where(tokens.c.store == store).order_by(tokens.c.id.desc())
        return [_record(row) for row in self._transaction.read(query)]

    def _valid(self, record: TokenRecord) -> TokenRecord | None:
        over = record.expires is not None and record.expires <= self._transaction.now
        return None if over or record.revoked is not None else record

    def _row(self, token_id: str, store: str) -> Row[Any] | None:
        return self._transaction.read(select(tokens).where(tokens.c.id == token_id, tokens.c.store == store)).first()

    def _get(self, token_id: str, store: str) -> TokenRecord:
        row = self._row(token_id, store)
        if row is None:
            raise EnvdslError.of(
                "state-unknown-token",
                f"there is no token {token_id!r}",
                hint="`envdsl token list` shows the ids of those that there are",
                exit_status=ExitStatus.USAGE,
            )
        return _record(row)

    def _audit(self, record: TokenRecord, actor: str, action: str) -> None:
        self._transaction.audit.append(
            actor=actor,
            action=action,
            session=record.session,
            subject=record.id,
            data={
                "store": record.store,
                "role": record.role,
                "name": record.name,
                "expires": record.expires.isoformat() if record.expires else None,
            },
        )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _record(row: Row[Any]) -> TokenRecord:
    return TokenRecord(**{name: value for name, value in row._mapping.items() if name != "digest"})

"""Access tokens: who gets one, who it makes of its bearer, and when it stops."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from envdsl.app.control.authorising import require
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action, Principal, Role

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.state.records import TokenRecord
    from envdsl.state.transaction import Transaction

LONGEST_NAME = 100


def create(
    plane: ControlPlane,
    principal: Principal,
    *,
    role: Role,
    name: str,
    session: str | None = None,
    expires: timedelta | None = None,
) -> tuple[str, TokenRecord]:
    """A token and its row. The text of the token is nowhere afterwards: it is shown once.

    ``name`` is who acts with it: for an owner's the name that sessions belong to. An agent's token opens one
    ``session``, which exists; the others none. Without ``expires`` it is valid until it is revoked.
    Raises :class:`EnvdslError`: ``app-forbidden``, ``app-token-session``, ``app-token-name``,
    ``app-token-expires``, ``session-unknown``.
    """
    require(plane, principal, Action.MANAGE_TOKENS)
    if (role is Role.AGENT) != (session is not None):
        raise _usage(
            "session",
            "an agent's token opens one session" if session is None else f"a token of an {role} is for no session",
            "name it with --session" if session is None else "leave --session out",
        )
    if session is not None:
        plane.owner_of(session)  # raises for one that does not exist
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise _usage(
            "name", f"not a name for a token: {name!r}", f"1 to {LONGEST_NAME} characters, without line breaks"
        )
    if expires is not None and expires <= timedelta(0):
        raise _usage("expires", "the token would have expired when it is made", "name a time such as 7d")
    with plane.state.transaction() as tx:
        return tx.tokens.create(
            store=plane.store_id,
            role=role.value,
            name=name,
            session=session,
            expires=tx.now + expires if expires is not None else None,
            actor=principal.name,
        )


def revoke(plane: ControlPlane, principal: Principal, token_id: str) -> TokenRecord:
    """From now on the token opens nothing. Raises :class:`EnvdslError`: ``app-forbidden``,
    ``state-unknown-token``."""
    require(plane, principal, Action.MANAGE_TOKENS)
    with plane.state.transaction() as tx:
        return tx.tokens.revoke(token_id, store=plane.store_id, actor=principal.name)


def listing(plane: ControlPlane, principal: Principal) -> Sequence[TokenRecord]:
    """All tokens of the store, the newest first. Raises :class:`EnvdslError` ``app-forbidden``."""
    require(plane, principal, Action.MANAGE_TOKENS)
    with plane.state.reading() as tx:
        return tx.tokens.list(plane.store_id)


def find(plane: ControlPlane, text: str) -> TokenRecord | None:
    """The row of a token that is valid now, its use written down (at most once a minute); None for any other text."""
    with plane.state.reading() as tx:
        record = tx.tokens.find(text, store=plane.store_id)
        return _noted(plane, tx, record)


def valid(plane: ControlPlane, token_id: str) -> TokenRecord | None:
    """The same by the id of a token that was checked before (a login)."""
    with plane.state.reading() as tx:
        record = tx.tokens.valid(token_id, store=plane.store_id)
        return _noted(plane, tx, record)


def principal(record: TokenRecord) -> Principal:
    """Who the bearer of a token is."""
    role = Role(record.role)
    name = f"agent:{record.session}" if role is Role.AGENT else record.name
    return Principal(role, name, record.session)


def status(plane: ControlPlane, record: TokenRecord) -> str:
    """``valid``, ``expired`` or ``revoked``."""
    if record.revoked is not None:
        return "revoked"
    return "expired" if record.expires is not None and record.expires <= plane.now() else "valid"


def _noted(plane: ControlPlane, tx: Transaction, record: TokenRecord | None) -> TokenRecord | None:
    if record is not None and tx.tokens.is_use_due(record):
        # A busy database must not keep anybody out: the next use writes it down.
        with contextlib.suppress(EnvdslError), plane.state.transaction() as writing:
            writing.tokens.touch(record.id)
    return record


def _usage(rule: str, message: str, hint: str) -> EnvdslError:
    return EnvdslError.of(f"app-token-{rule}", message, hint=hint, exit_status=ExitStatus.USAGE)

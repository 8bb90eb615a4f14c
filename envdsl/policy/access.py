"""Who may do what. One table, asked by every face."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """The scope of a token, or what peer credentials amount to."""

    AGENT = "agent"  # one session: may ask and see its own
    OWNER = "owner"  # may decide on requests of the sessions that it owns
    ADMINISTRATOR = "administrator"
    READER = "reader"  # sees everything, changes nothing


class Action(StrEnum):
    """What a caller wants to do. Those of the first group concern one session."""

    STATUS = "status"
    REQUEST = "request"
    CANCEL = "cancel"
    DECIDE = "decide"
    REBIND = "rebind"  # rebase, undo, seal
    SEE_SESSION = "see-session"

    SEE_STORE = "see-store"  # layers, catalog, health
    SEE_AUDIT = "see-audit"
    COLLECT = "collect"  # gc
    UPLOAD = "upload"  # check a wheel on the admin page
    MANAGE_TOKENS = "manage-tokens"
    PROMOTE = "promote"


_AGENT = frozenset({Action.STATUS, Action.REQUEST, Action.CANCEL, Action.SEE_SESSION})
_OWNER = _AGENT | {Action.DECIDE, Action.REBIND, Action.PROMOTE}
_READER = frozenset({Action.STATUS, Action.SEE_SESSION, Action.SEE_STORE, Action.SEE_AUDIT})
_ANY_SESSION = frozenset({Action.SEE_STORE, Action.UPLOAD})  # of an owner, without naming a session


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. ``name`` stands in audit rows: a person's name, or ``agent:<session>``. ``session`` is the one
    session of an agent's token, None for the other roles."""

    role: Role
    name: str
    session: str | None = None


def may(principal: Principal, action: Action, *, session: str | None = None, owner: str | None = None) -> bool:
    """Whether ``principal`` may do ``action``; ``session`` and its ``owner`` where it concerns one."""
    match principal.role:
        case Role.ADMINISTRATOR:
            return True
        case Role.READER:
            return action in _READER
        case Role.AGENT:
            return action in _AGENT and session is not None and session == principal.session
        case Role.OWNER:
            if session is None:
                return action in _ANY_SESSION
            return action in _OWNER and owner is not None and owner == principal.name

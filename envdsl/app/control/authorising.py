"""Whether a caller may do what it asks for: the table of :mod:`envdsl.policy.access` with the owners of sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action, Principal, Role, may

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane


def allowed(plane: ControlPlane, principal: Principal, action: Action, session: str | None = None) -> bool:
    """Whether ``principal`` may do ``action``, to ``session`` where it concerns one."""
    owner = plane.owner_of(session) if session is not None and principal.role is Role.OWNER else None
    return may(principal, action, session=session, owner=owner)


def require(plane: ControlPlane, principal: Principal, action: Action, session: str | None = None) -> None:
    """Raises :class:`EnvdslError` ``app-forbidden`` (exit status REFUSED), which does not tell whether there is such a
    session: an agent learns nothing of others."""
    if not allowed(plane, principal, action, session):
        concerning = f" in the session {session}" if session is not None else ""
        raise EnvdslError.of(
            "app-forbidden",
            f"{principal.name} may not {_SPELLED.get(action, action.value)}{concerning}",
            hint=_HINTS.get(action, "an administrator may, or the owner of the session"),
            exit_status=ExitStatus.REFUSED,
        )


def visible(plane: ControlPlane, principal: Principal) -> tuple[str, ...] | None:
    """The sessions whose requests ``principal`` may see; None for all of them."""
    match principal.role:
        case Role.ADMINISTRATOR | Role.READER:
            return None
        case Role.AGENT:
            return (principal.session,) if principal.session is not None else ()
        case Role.OWNER:
            return tuple(session for session, owner in plane.owners().items() if owner == principal.name)


_SPELLED = {
    Action.STATUS: "see what is installed",
    Action.REQUEST: "ask for packages",
    Action.CANCEL: "cancel requests",
    Action.DECIDE: "decide on requests",
    Action.REBIND: "change the binding",
    Action.SEE_SESSION: "see requests and bindings",
    Action.PROMOTE: "promote requests",
    Action.SEE_AUDIT: "read the audit log",
    Action.MANAGE_TOKENS: "manage tokens",
}
_HINTS = {
    Action.DECIDE: "administrators and the session's owner decide, nobody else",
    Action.SEE_AUDIT: "administrators may, and who has a token of a reader",
    Action.MANAGE_TOKENS: "administrators may: root, the owner of the store, and those in `service.administrators`",
}

"""Whether a caller may do something, for API and pages alike: :func:`envdsl.policy.access.may`, and what to say if not.

What a caller may not see does not exist for it: an unknown session, and one that belongs to others, get the same
answer. Blocking: call these in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action, Principal, Role, may

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.state.records import RequestRecord


def require(principal: Principal | None, action: Action) -> Principal:
    """The caller, who may do what concerns no session. Raises ``web-unauthenticated``, ``web-forbidden``."""
    known = authenticated(principal)
    if not may(known, action):
        raise forbidden(known, action)
    return known


def authenticated(principal: Principal | None) -> Principal:
    """The caller, who is not anonymous. Raises ``web-unauthenticated``."""
    if principal is None:
        raise EnvdslError.of(
            "web-unauthenticated",
            "this needs a token: nothing says who you are",
            hint="send `Authorization: Bearer …`, or log in; `envdsl token create` makes a token",
            exit_status=ExitStatus.REFUSED,
        )
    return principal


def require_session(plane: ControlPlane, principal: Principal | None, action: Action, session: str) -> Principal:
    """The caller, who may do ``action`` in ``session``, which exists.

    Raises ``web-unauthenticated``, ``web-unknown-session``, ``web-forbidden``.
    """
    known = authenticated(principal)
    owner = None
    if known.role is Role.OWNER:
        owner = owner_of(plane, session)
    elif not exists(plane, session):  # to the others an owner makes no difference: no need to ask the database
        raise unknown_session(session)
    if not may(known, Action.SEE_SESSION, session=session, owner=owner):
        raise unknown_session(session)
    if not may(known, action, session=session, owner=owner):
        raise forbidden(known, action)
    return known


def require_request(
    plane: ControlPlane, principal: Principal | None, action: Action, identifier: str, session: str | None = None
) -> RequestRecord:
    """The request, in whose session the caller may do ``action``; ``session`` where the caller named that too.

    Raises ``web-unauthenticated``, ``web-unknown-request``, ``web-forbidden``.
    """
    known = authenticated(principal)
    with plane.state.reading() as tx:
        record = tx.requests.find(identifier)
    if record is None or record.store != plane.store_id or session not in (None, record.session):
        raise unknown_request(identifier)
    owner = owner_of(plane, record.session) if known.role is Role.OWNER else None
    if not may(known, Action.SEE_SESSION, session=record.session, owner=owner):
        raise unknown_request(identifier)
    if not may(known, action, session=record.session, owner=owner):
        raise forbidden(known, action)
    return record


def owner_of(plane: ControlPlane, session: str) -> str | None:
    """Who owns the session; None where there is no such session."""
    try:
        return plane.owner_of(session)
    except EnvdslError as error:
        if error.code == "session-unknown":
            return None
        raise


def exists(plane: ControlPlane, session: str) -> bool:
    """Whether there is such a session."""
    from envdsl.model.names import SESSION_NAME
    from envdsl.session.bindings import MANIFEST

    layout = plane.project.store.layout
    return bool(SESSION_NAME.fullmatch(session)) and (layout.sessions / session / MANIFEST).is_file()


def forbidden(principal: Principal, action: Action) -> EnvdslError:
    return EnvdslError.of(
        "web-forbidden",
        f"{principal.name} ({principal.role}) may not do this ({action})",
        hint="docs/policy.md says who may do what",
        exit_status=ExitStatus.REFUSED,
    )


def unknown_session(session: str) -> EnvdslError:
    return EnvdslError.of("web-unknown-session", f"no session `{session}`", exit_status=ExitStatus.USAGE)


def unknown_request(identifier: str) -> EnvdslError:
    return EnvdslError.of("web-unknown-request", f"no request `{identifier}`", exit_status=ExitStatus.USAGE)

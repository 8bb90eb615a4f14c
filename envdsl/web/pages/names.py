"""The sessions that a visitor may see."""

from __future__ import annotations

from envdsl.policy.access import Action
from envdsl.web.pages.visit import Visit


def visible(visit: Visit) -> list[str]:
    """Names of the sessions that the visitor may see, sorted."""
    from envdsl.app import sessions
    from envdsl.app.control import authorising

    found = authorising.visible(visit.plane, visit.principal)
    return sessions.names(visit.plane.project) if found is None else sorted(found)


def where(visit: Visit, action: Action) -> list[str]:
    """Those in which the visitor may do ``action``."""
    return [name for name in visible(visit) if visit.may(action, name)]

"""What a row of the table of pages is, and how a request becomes a call of its view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from envdsl.policy.access import Action
from envdsl.web import authorisation
from envdsl.web.api.endpoint import Concerns
from envdsl.web.pages import preferences
from envdsl.web.pages.visit import Visit
from envdsl.web.threads import in_thread

View = Callable[[Visit], Response]  # in a thread


@dataclass(frozen=True, slots=True)
class Page:
    """One row: method and path, who may (``action`` and what it ``concerns``), and the view that answers.

    ``slow`` says that it takes seconds: it then has a thread that keeps no quick answer waiting.
    """

    method: str
    path: str
    action: Action | None
    concerns: Concerns
    view: View
    slow: bool = False

    @property
    def name(self) -> str:
        """``requests.decide``, for logs and metrics."""
        return f"{self.view.__module__.rpartition('.')[2]}.{self.view.__name__}"

    def route(self) -> Route:
        return Route(self.path, partial(_serve, self), methods=[self.method], name=f"pages.{self.name}")


async def _serve(page: Page, request: Request) -> Response:
    visit = Visit(
        request=request,
        plane=request.app.state.plane,
        principal=authorisation.authenticated(request.state.principal),
        language=preferences.spoken(request),
        form=MappingProxyType({}),
    )
    if page.method == "GET":
        return await in_thread(request, lambda: page.view(_authorise(page, visit)), slow=page.slow)
    # Authorised before the body is read: a stranger sends no upload.
    visit = await in_thread(request, partial(_authorise, page, visit))
    async with request.form(max_files=1, max_fields=50) as form:
        return await in_thread(request, partial(page.view, replace(visit, form=dict(form))), slow=page.slow)


def _authorise(page: Page, visit: Visit) -> Visit:
    """``visit`` if its principal may make it. Raises :class:`EnvdslError` (:mod:`envdsl.web.authorisation`)."""
    if page.action is None:
        return visit
    path = visit.request.path_params
    match page.concerns:
        case Concerns.SESSION:
            authorisation.require_session(visit.plane, visit.principal, page.action, path["session"])
        case Concerns.REQUEST:
            found = authorisation.require_request(visit.plane, visit.principal, page.action, path["request"])
            return replace(visit, record=found)
        case _:
            authorisation.require(visit.principal, page.action)
    return visit

"""What a row of the API's table is, and how a request becomes a call of its handler."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action, Principal
from envdsl.web import authorisation
from envdsl.web.threads import in_thread

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.state.records import RequestRecord

PREFIX = "/api/v1"


class Concerns(Enum):
    """What an endpoint's action concerns, and so what is asked before its handler runs."""

    NOTHING = "nothing"  # open to everybody
    CALLER = "caller"  # anybody who is known; the handler gives what the caller may see
    STORE = "store"  # no session
    SESSION = "session"  # the path's {session}
    REQUEST = "request"  # the session of the path's {request}


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose caller may do what it asks. ``body`` is JSON that fits the endpoint's schema, None without
    one; ``record`` is the request of a path with ``{request}``."""

    plane: ControlPlane
    principal: Principal
    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any = None
    record: RequestRecord | None = None
    accept: str = "*/*"

    @property
    def session(self) -> str:
        return self.path["session"]

    @property
    def request(self) -> RequestRecord:
        assert self.record is not None
        return self.record


Handler = Callable[[Call], Any]  # in a thread; gives JSON, or a Response
Streaming = Callable[[Call, Request], Awaitable[Any]]  # in the event loop, for what waits or streams


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One row: method and path, who may (``action`` and what it ``concerns``), what it takes and gives.

    ``body`` and ``answer`` name components, ``query`` parameters of :mod:`envdsl.web.api.schemas`. ``media`` are
    further media types that it can answer with, ``upload`` that its body is a wheel, ``slow`` that it takes seconds.
    """

    method: str
    path: str
    action: Action | None
    concerns: Concerns
    handler: Handler | Streaming
    summary: str
    answer: str
    body: str | None = None
    query: tuple[str, ...] = ()
    status: int = 200
    media: tuple[str, ...] = ()
    upload: bool = False
    slow: bool = False

    @property
    def name(self) -> str:
        """The operation's id: ``requests.decide``."""
        return f"{self.handler.__module__.rpartition('.')[2]}.{self.handler.__name__.strip('_')}"

    def route(self) -> Route:
        return Route(PREFIX + self.path, partial(_serve, self), methods=[self.method], name=f"api.{self.name}")


async def _serve(endpoint: Endpoint, request: Request) -> Response:
    call = Call(
        plane=request.app.state.plane,
        principal=request.state.principal,
        path=request.path_params,
        query=_query(endpoint, request),
        accept=request.headers.get("accept", "*/*"),
    )
    if inspect.iscoroutinefunction(endpoint.handler):
        call = await in_thread(request, partial(_authorise, endpoint, call))
        call = replace(call, body=await _body(endpoint, request))
        result = await endpoint.handler(call, request)
    elif endpoint.body is None:
        writing = endpoint.method != "GET"
        result = await in_thread(request, partial(_answer, endpoint, call), slow=endpoint.slow, writing=writing)
    else:
        # Authorised first: a stranger learns nothing of what a body should be.
        call = await in_thread(request, partial(_authorise, endpoint, call))
        call = replace(call, body=await _body(endpoint, request))
        result = await in_thread(request, partial(endpoint.handler, call), slow=endpoint.slow, writing=True)
    return result if isinstance(result, Response) else JSONResponse(result, endpoint.status)


def _answer(endpoint: Endpoint, call: Call) -> Any:
    handler: Any = endpoint.handler
    return handler(_authorise(endpoint, call))


def _authorise(endpoint: Endpoint, call: Call) -> Call:
    """``call`` if its principal may make it. Raises :class:`EnvdslError` (:mod:`envdsl.web.authorisation`)."""
    if endpoint.action is None or endpoint.concerns is Concerns.CALLER:
        if endpoint.concerns is not Concerns.NOTHING:
            authorisation.authenticated(call.principal)
        return call
    match endpoint.concerns:
        case Concerns.SESSION:
            authorisation.require_session(call.plane, call.principal, endpoint.action, call.session)
        case Concerns.REQUEST:
            session, identifier = call.path.get("session"), call.path["request"]
            found = authorisation.require_request(call.plane, call.principal, endpoint.action, identifier, session)
            return replace(call, record=found)
        case _:
            authorisation.require(call.principal, endpoint.action)
    return call


def _query(endpoint: Endpoint, request: Request) -> Mapping[str, Any]:
    from envdsl.web.api.schemas import check_query

    return check_query(endpoint.query, request.query_params.multi_items())


async def _body(endpoint: Endpoint, request: Request) -> Any:
    if endpoint.body is None:
        return None
    import json

    from envdsl.web.api.schemas import check

    text = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not text:  # nothing is said: what has to be said is missed below
        check(endpoint.body, {})
        return {}
    if kind != "application/json":
        raise EnvdslError.of(
            "web-media-type",
            f"the body must be application/json, not {kind[:100] or 'without a type'}",
            exit_status=ExitStatus.USAGE,
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EnvdslError.of(
            "web-invalid-body", f"the body is not JSON: {error}", exit_status=ExitStatus.USAGE
        ) from None
    check(endpoint.body, value)
    return value

"""What every request passes before its handler: host, size, identity, forgery, rate. And what every answer gets."""

from __future__ import annotations

import time
import uuid
from collections import Counter

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from envdsl.errors import EnvdslError
from envdsl.policy.access import Role
from envdsl.web import problems
from envdsl.web.forgery import check_forgery, check_host
from envdsl.web.identity import address, identify, too_many
from envdsl.web.logs import log_request
from envdsl.web.metrics import Metrics
from envdsl.web.settings import Settings

# No inline script, no inline style, nothing of other origins; nobody frames it, forms go nowhere else.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
OPEN = ("/healthz", "/static/")  # nobody is identified, nothing is counted


class Observe:
    """The outermost: an id, one line in the log, the metrics, and the headers of every answer."""

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._headers = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if settings.https else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["id"] = uuid.uuid4().hex
        began = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                headers["X-Request-Id"] = state["id"]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except Exception as error:
            response = problems.on_defect(Request(scope), error)
            if status:
                raise  # half an answer is out: all that is left is to cut the connection
            await response(scope, receive, observed)
        finally:
            seconds = time.perf_counter() - began
            route = getattr(scope.get("route"), "path", None) or "(none)"
            self._metrics.observe(scope["method"], route, status, seconds)
            log_request(scope, route, status, seconds)


class Gate:
    """Sets ``request.state``: ``principal`` and ``identity`` (None for an anonymous caller) and ``csrf`` (a string,
    for forms and the header ``X-CSRF-Token``; empty where none is needed)."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._under_way: Counter[str] = Counter()  # requests of agents, by name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, _limited(scope, receive, self._limit(scope)), send)
        request.state.principal = request.state.identity = None
        request.state.csrf = ""
        request.state.counted = None
        try:
            await self._answer(request, scope, send)
        finally:
            if (name := request.state.counted) is not None:
                self._under_way[name] -= 1
                if not self._under_way[name]:
                    del self._under_way[name]

    async def _answer(self, request: Request, scope: Scope, send: Send) -> None:
        receive = request.receive
        if request.method not in ("GET", "HEAD"):
            await request.app.state.threads.admitted()
        try:
            passed = await self._pass(request)
        except EnvdslError as error:
            retry = error.diagnostics[0].details.get("retry-after")
            headers = {"Retry-After": str(retry)} if retry else None
            await problems.answer(request, error, headers)(scope, receive, send)
        except HTTPException as error:
            await problems.on_http_exception(request, error)(scope, receive, send)
        else:
            await self._app(scope, passed, send)

    async def _pass(self, request: Request) -> Receive:
        check_host(request.headers, self._settings)
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self._limit(request.scope):
            raise HTTPException(413)
        if request.scope["path"].startswith(OPEN):
            return request.receive
        identity = await identify(request)
        if identity is not None:
            request.state.identity, request.state.principal = identity, identity.principal
            request.state.csrf = identity.csrf
        who = (identity.principal.role, identity.principal.name) if identity is not None else address(request)
        if wait := request.app.state.rates.take(who):
            raise too_many(wait, "too many requests")
        self._count(request)
        return await check_forgery(request, identity, self._settings)

    def _count(self, request: Request) -> None:
        """One more under way, of an agent: others are people and platforms, who wait for many sessions."""
        principal = request.state.principal
        if principal is None or principal.role is not Role.AGENT:
            return
        key, most = principal.name, self._settings.agents_requests
        if request.method == "POST" and self._limit(request.scope) > self._settings.max_body:
            key, most = f"uploads of {key}", self._settings.agents_uploads
        if self._under_way[key] >= most:
            raise too_many(1, "too many requests at once")
        self._under_way[key] += 1
        request.state.counted = key

    def _limit(self, scope: Scope) -> int:
        """Bytes that a body may have: wheels come to paths that end so."""
        return self._settings.max_upload if scope["path"].endswith(("/upload", "/uploads")) else self._settings.max_body


def _limited(scope: Scope, receive: Receive, most: int) -> Receive:
    """``receive`` that counts: a body sent in chunks announces no length."""
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        count += len(message.get("body", b""))
        if count > most:
            raise HTTPException(413)
        return message

    return counted

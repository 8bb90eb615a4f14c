"""The application: API, MCP endpoint, pages, health and metrics, behind one gate.

For the pages (``envdsl.web.pages.routes.ROUTES: list[BaseRoute]``): ``request.state.principal`` (None: nobody is
known), ``request.state.csrf`` (to be the *first* field, ``csrf``, of every form, or the header ``X-CSRF-Token``) and
``request.app.state.plane``. :class:`EnvdslError` may be raised anywhere; on a path of a page,
``envdsl.web.pages.errors.error_page(request, status, diagnostic)`` renders it, and a GET by nobody is sent to
``/login?next=…``. That page's form posts ``token`` and ``next`` to ``/login`` (here), which sets the cookie and answers
303 to ``next``, or to ``/login?failed=CODE&next=…``. A form that posts to ``/logout`` ends the login. Wheels are to be
posted to ``/upload``: only paths that end so take large bodies.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Route

from envdsl.errors import EnvdslError
from envdsl.web import operations, problems, signing_in
from envdsl.web.api.table import ENDPOINTS
from envdsl.web.crew import Crew
from envdsl.web.gate import Gate, Observe
from envdsl.web.logins import Logins
from envdsl.web.metrics import Metrics
from envdsl.web.model_context import ModelContext
from envdsl.web.rates import Buckets
from envdsl.web.settings import Settings
from envdsl.web.threads import Threads
from envdsl.web.uses import Uses

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane


_LAST_WRITING = 5.0  # seconds


def application(plane: ControlPlane, *, settings: Settings | None = None) -> Starlette:
    """The ASGI application over ``plane``, which stays the caller's to close.

    Its lifespan starts ``settings.workers`` workers and stops them again.
    """
    settings = settings or Settings()
    metrics = Metrics()
    model_context = ModelContext(plane)
    app = Starlette(
        routes=[*model_context.routes(), *routes()],
        middleware=[
            Middleware(Observe, settings=settings, metrics=metrics),
            Middleware(Gate, settings=settings),
        ],
        exception_handlers={
            EnvdslError: problems.on_error,
            HTTPException: problems.on_http_exception,
        },
        lifespan=_lifespan,
    )
    state = app.state
    state.model_context = model_context
    state.plane, state.settings, state.metrics = plane, settings, metrics
    state.logins = Logins(settings, time.monotonic)
    state.rates = Buckets(settings.requests, time.monotonic)
    state.failures = Buckets(settings.failures, time.monotonic)
    state.secret = secrets.token_bytes(32)
    state.threads = Threads(settings)
    state.uses = Uses(plane)
    state.stopping = threading.Event()  # set as soon as the service is told to stop: waits and workers end
    state.crew = Crew(plane, settings, metrics, state.stopping)
    return app


def routes() -> list[BaseRoute]:
    """Every route of the service."""
    from envdsl.web.pages.routes import ROUTES

    return [
        *(endpoint.route() for endpoint in ENDPOINTS),
        Route("/healthz", operations.liveness),
        Route("/metrics", operations.metrics),
        Route("/login", signing_in.login, methods=["POST"]),
        Route("/logout", signing_in.logout, methods=["POST"]),
        *ROUTES,
    ]


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    state = app.state
    state.crew.start()
    writer = threading.Thread(target=state.uses.run, args=(state.stopping,), name="uses", daemon=True)
    writer.start()
    try:
        async with state.model_context.running():
            yield
    finally:
        state.stopping.set()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(state.crew.stop)
            await anyio.to_thread.run_sync(writer.join, _LAST_WRITING)

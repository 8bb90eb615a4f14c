"""The endpoint ``/mcp`` (streamable HTTP of the Model Context Protocol), behind the same gate as everything else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from envdsl.web.authorisation import authenticated

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

PATH = "/mcp"


class ModelContext:
    """The endpoint of one application; without the extra ``envdsl[mcp]`` there is none."""

    def __init__(self, plane: ControlPlane) -> None:
        self._mounted = None
        if find_spec("mcp") is not None:
            from envdsl.mcp.server import mounted

            self._mounted = mounted(plane, PATH)

    def routes(self) -> list[BaseRoute]:
        return [Route(PATH, self)] if self._mounted is not None else []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """What the lifespan of the application holds open."""
        if self._mounted is None:
            yield
            return
        async with self._mounted[1]():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises EnvdslError ``web-unauthenticated``: what the caller may do, the tool asks."""
        authenticated(Request(scope).state.principal)
        assert self._mounted is not None
        await self._mounted[0](scope, receive, send)

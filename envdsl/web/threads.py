"""The control plane blocks; the event loop must not.

Three groups of threads, so that nothing that takes long keeps `status` waiting: quick calls; those that write, which
the database takes one at a time anyway, so that more threads would only contend for the interpreter; slow ones (rebase,
gc, intake of wheels).

Threads of one process share one interpreter, so that groups alone do not do it: a call that writes begins when no quick
one is under way, or has waited long enough. They share it with the event loop, too: of many requests that come in one
moment and may write, it takes up one at a time, so that a look comes between any two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
from starlette.requests import Request

from envdsl.web.settings import Settings

T = TypeVar("T")

_PATIENCE = 0.25  # seconds that a call which writes waits for a lull, whatever else goes on
_PATIENCE_AT_DOOR = 0.025  # the same, before it is even looked at, which takes the event loop less than one
_LOOK = 0.002  # seconds between looks whether there is one


class Threads:
    """How many calls of each kind run at once in one service."""

    def __init__(self, settings: Settings) -> None:
        self.quick = anyio.CapacityLimiter(settings.threads)
        self.writing = anyio.CapacityLimiter(settings.writing_threads)
        self.slow = anyio.CapacityLimiter(settings.slow_threads)
        self._door = anyio.Lock()

    async def admitted(self) -> None:
        """Return when it is this request's turn to be taken up: in the order in which they came, one in each round of
        the event loop. For those that may write."""
        async with self._door:
            await self.lull(_PATIENCE_AT_DOOR)
            await anyio.lowlevel.checkpoint()

    async def lull(self, patience: float) -> None:
        """Return when no quick call is under way, at the latest after ``patience`` seconds."""
        deadline = anyio.current_time() + patience
        while self.quick.borrowed_tokens and anyio.current_time() < deadline:
            await anyio.sleep(_LOOK)


async def in_thread(request: Request, function: Callable[[], T], *, slow: bool = False, writing: bool = False) -> T:
    """Call ``function`` in a thread, as soon as one of its kind is free."""
    threads: Threads = request.app.state.threads
    if not writing:
        return await anyio.to_thread.run_sync(function, limiter=threads.slow if slow else threads.quick)
    async with threads.writing:
        await threads.lull(_PATIENCE)
        return await anyio.to_thread.run_sync(function)  # the place is this task's already

"""The control plane blocks; the event loop must not.

Three groups of threads, so that nothing that takes long keeps `status` waiting: quick calls; those that write, which
the database takes one at a time anyway, so that more threads would only contend for the interpreter; slow ones (rebase,
gc, intake of wheels).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request

from envdsl.web.settings import Settings

T = TypeVar("T")


class Threads:
    """How many calls of each kind run at once in one service."""

    def __init__(self, settings: Settings) -> None:
        self.quick = anyio.CapacityLimiter(settings.threads)
        self.writing = anyio.CapacityLimiter(settings.writing_threads)
        self.slow = anyio.CapacityLimiter(settings.slow_threads)


async def in_thread(request: Request, function: Callable[[], T], *, slow: bool = False, writing: bool = False) -> T:
    """Call ``function`` in a thread, as soon as one of its kind is free."""
    threads: Threads = request.app.state.threads
    limiter = threads.slow if slow else threads.writing if writing else threads.quick
    return await anyio.to_thread.run_sync(function, limiter=limiter)

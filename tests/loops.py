"""Running asynchronous code in tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio


def run(function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """What ``function`` returns, in an event loop and a thread of its own: the browser of other tests keeps a loop
    running in the thread that tests run in."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, function, *arguments).result()

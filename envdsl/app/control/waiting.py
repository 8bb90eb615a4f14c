"""Waiting for a request without holding a thread, for the faces that many may wait at: HTTP and MCP.

:meth:`PythonEnv.wait <envdsl.app.control.python_env.PythonEnv.wait>` does the same for a caller that has a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from envdsl.app.control.python_env import waits_for_person
from envdsl.state.records import RequestRecord

# Seconds between looks: short at first, for what is approved by rule and built from links.
_FIRST, _LONGEST, _GROWTH = 0.05, 1.0, 1.5


async def settled(
    record: RequestRecord,
    seconds: float,
    look: Callable[[RequestRecord], Awaitable[RequestRecord]],
    *,
    for_person: bool,
    stopping: Callable[[], bool] = lambda: False,
) -> RequestRecord:
    """The request once it has ended, at the latest after ``seconds`` or when ``stopping``.

    ``look`` reads it anew. One that waits for a person is given back at once, unless somebody waits ``for_person``. A
    call that is given up leaves its request where it is.
    """
    pause = _FIRST
    with anyio.move_on_after(seconds):
        while not (record.status.ended or stopping() or (waits_for_person(record) and not for_person)):
            await anyio.sleep(pause)
            record = await look(record)
            pause = min(pause * _GROWTH, _LONGEST)
    return record

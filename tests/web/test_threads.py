"""Which call goes first: one that writes waits for a lull between those that only look, but not for ever."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from envdsl.web import threads
from envdsl.web.threads import Threads, in_thread
from tests import loops
from tests.web.conftest import SETTINGS


def request() -> Any:
    return SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(threads=Threads(SETTINGS))))


def test_a_call_that_writes_begins_when_no_quick_one_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PATIENCE", 600)
    order: list[str] = []
    looking, looked = threading.Event(), threading.Event()

    def look() -> None:
        looking.set()
        assert looked.wait(30)
        order.append("look")

    async def main() -> None:
        asked = request()
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, asked, look)
            await anyio.to_thread.run_sync(looking.wait)

            async def write() -> None:
                await in_thread(asked, lambda: order.append("write"), writing=True)

            group.start_soon(write)
            while not asked.app.state.threads.writing.borrowed_tokens:
                await anyio.sleep(0)
            for _ in range(20):  # it looks around, and waits
                await anyio.sleep(threads._LOOK)
            assert order == []
            looked.set()

    loops.run(main)
    assert order == ["look", "write"]


def test_it_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    wrote = threading.Event()

    async def main() -> None:
        asked = request()
        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, asked, lambda: wrote.wait(30))
            while not asked.app.state.threads.quick.borrowed_tokens:
                await anyio.sleep(0)
            await in_thread(asked, wrote.set, writing=True)

    loops.run(main)
    assert wrote.is_set()

"""Which call goes first: one that writes waits for a lull between those that only look, but not for ever."""

from __future__ import annotations

import socket
import struct
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from envdsl.web import threads
from envdsl.web.listening import BACKLOG
from envdsl.web.threads import Threads, in_thread
from tests import loops
from tests.web.conftest import SETTINGS, Service


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


def test_requests_that_may_write_are_taken_up_in_their_order_one_in_a_round_of_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that two hundred who ask in one moment do not hold the event loop, where who looks waits, too."""
    monkeypatch.setattr(threads, "_PATIENCE_AT_DOOR", 600)
    taken_up: list[tuple[int, int]] = []  # who, in which round
    rounds = 0
    looked = threading.Event()

    async def main() -> None:
        asked = request()
        door = asked.app.state.threads

        async def ask(number: int) -> None:
            await door.admitted()
            taken_up.append((number, rounds))

        async with anyio.create_task_group() as group:
            group.start_soon(in_thread, asked, lambda: looked.wait(30))
            while not door.quick.borrowed_tokens:
                await anyio.sleep(0)
            for number in range(20):
                group.start_soon(ask, number)
            for _ in range(20):
                await anyio.sleep(threads._LOOK)
            assert taken_up == [], "somebody is being looked after"
            looked.set()
            nonlocal rounds
            while len(taken_up) < 20:
                rounds += 1
                await anyio.sleep(0)

    loops.run(main)
    assert [number for number, _ in taken_up] == list(range(20))
    assert len({round for _, round in taken_up}) == 20


def test_it_accepts_few_connections_at_a_time_while_the_kernel_keeps_many(service: Service) -> None:
    (listener,) = service.server.servers[1].sockets
    tcp_info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 32)
    *_, most = struct.unpack("8B6I", tcp_info)  # of a socket that listens, `tcpi_sacked` is the length of its queue
    allowed = int(Path("/proc/sys/net/core/somaxconn").read_text())
    assert most == min(BACKLOG, allowed)
    assert service.server.config.backlog < 50

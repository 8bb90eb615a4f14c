"""The workers of a service are processes: they do the work, end with it, and are started again where they die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.app.control import asking, changes
from envdsl.app.control.plane import ControlPlane
from envdsl.web import crew as crews
from envdsl.web.crew import Crew
from envdsl.web.metrics import Metrics
from tests.web.conftest import ADMINISTRATOR, SETTINGS, House, wait_until


@pytest.fixture
def crew(plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crew]:
    """One worker, which has started."""
    monkeypatch.setattr(crews, "_TROUBLE", 0.05)
    crew = Crew(plane, replace(SETTINGS, workers=1, grace=20), Metrics(), threading.Event())
    crew.start()
    wait_until(lambda: crew.alive == 1)
    yield crew
    crew.stop()
    assert crew.alive == 0


def process_of(crew: Crew) -> subprocess.Popen[bytes]:
    (process,) = crew._processes.values()
    return process


def test_work_is_done_in_a_process_that_gives_way_and_who_waits_hears_of_it(
    plane: ControlPlane, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    took: list[tuple[str, float]] = []
    monkeypatch.setattr(crew._metrics, "worked", lambda work, seconds: took.append((work, seconds)))
    assert os.getpriority(os.PRIO_PROCESS, process_of(crew).pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    record = asking.request(plane, ADMINISTRATOR, "hers", ["baz"])
    with changes.watching(record.id) as news:
        assert news.wait(30), "the worker's process tells this one what has changed"
    wait_until(lambda: bool(took))
    assert resolved(plane, record.id)
    ((work, seconds),) = took
    assert work == "resolve"
    assert seconds > 0


def test_a_worker_that_dies_is_followed_by_another_who_takes_up_what_it_had(plane: ControlPlane, crew: Crew) -> None:
    first = process_of(crew)
    first.send_signal(signal.SIGSTOP)
    record = asking.request(plane, ADMINISTRATOR, "hers", ["baz"])
    (name,) = crew._processes
    with plane.state.transaction() as tx:
        assert tx.requests.claim(name, 600, plane.store_id) is not None
    first.kill()
    wait_until(lambda: process_of(crew) is not first and crew.alive == 1)
    wait_until(lambda: resolved(plane, record.id), 60)


def resolved(plane: ControlPlane, identifier: str) -> bool:
    with plane.state.reading() as tx:
        return tx.requests.get(identifier).classification is not None


def test_what_a_worker_holds_when_the_grace_is_over_is_handed_back(plane: ControlPlane) -> None:
    """Issue 4.10: graceful stop, bounded by a timeout."""
    crew = Crew(plane, replace(SETTINGS, workers=1, grace=0.2), Metrics(), threading.Event())
    crew.start()
    wait_until(lambda: crew.alive == 1)
    process_of(crew).send_signal(signal.SIGSTOP)  # it will not end by itself
    record = asking.request(plane, ADMINISTRATOR, "hers", ["foo"])
    (name,) = crew._processes
    with plane.state.transaction() as tx:
        assert tx.requests.claim(name, 600, plane.store_id) is not None
    began = time.monotonic()
    crew.stop()
    assert time.monotonic() - began < 5
    assert process_of(crew).wait(10) == -signal.SIGKILL
    with plane.state.transaction() as tx:
        again = tx.requests.claim("another", 60, plane.store_id)
    assert again is not None
    assert again.id == record.id, "another worker need not wait for the lease to end"


def test_no_worker_outlives_a_service_that_is_killed(house: House, tmp_path: Path) -> None:
    socket = tmp_path / "s"
    place = ["--project", str(house.root), "--store", str(house.store), "--socket", str(socket)]
    service = subprocess.Popen([sys.executable, "-m", "envdsl", "serve", *place], stderr=subprocess.DEVNULL)
    try:
        wait_until(socket.exists)
        wait_until(lambda: bool(children(service.pid)))
        (worker,) = children(service.pid)
        descriptor = os.pidfd_open(worker)
    finally:
        service.kill()
        service.wait()
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        assert poll.poll(30_000), "its worker goes on"
    finally:
        os.close(descriptor)


def children(pid: int) -> list[int]:
    """Of any thread of the process."""
    lists = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(child) for file in lists for child in file.read_text().split()]

"""A worker in this process for as long as no other is alive: what makes commands work without a service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from envdsl.app.control.worker import ALIVE, IDLE, Worker
from envdsl.errors import EnvdslError

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane


@contextmanager
def working(plane: ControlPlane, *, jobs: int | None = None) -> Iterator[None]:
    """While the block lasts, requests are worked on: by the workers that are alive, or by a thread of this process.

    What the thread has in hand when the block ends is finished first; an interrupt does not wait for it, since another
    worker takes it over.
    """
    stop = threading.Event()
    worker = Worker(plane, name=None, jobs=jobs)
    thread = threading.Thread(target=_work, args=(plane, worker, stop), name="worker", daemon=True)
    thread.start()
    try:
        yield
    except KeyboardInterrupt:
        stop.set()
        raise
    finally:
        if not stop.is_set():
            stop.set()
            thread.join()


def _work(plane: ControlPlane, worker: Worker, stop: threading.Event) -> None:
    try:
        while not stop.is_set():
            with suppress(EnvdslError):  # the database is away: whoever waits for an answer says so
                if not others_alive(plane, worker.name) and worker.step():
                    continue
            stop.wait(IDLE / 2)
    finally:
        worker.gone()


def others_alive(plane: ControlPlane, name: str = "") -> bool:
    """Whether a worker but ``name`` showed itself lately."""
    with plane.state.reading() as transaction:
        return any(worker.name != name for worker in transaction.workers.alive(plane.store_id, ALIVE))

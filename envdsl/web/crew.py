"""The workers that run inside the service, each in a thread of its own."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError
from envdsl.state.records import Status
from envdsl.web.metrics import Metrics
from envdsl.web.settings import Settings

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

_LOG = logging.getLogger("envdsl.web.worker")
_TROUBLE = 5.0  # seconds of pause after a worker stopped by itself, such as for an unreachable database


class Crew:
    """``settings.workers`` threads that take requests from the queue until ``stop`` is set."""

    def __init__(self, plane: ControlPlane, settings: Settings, metrics: Metrics, stop: threading.Event) -> None:
        self._plane = plane
        self._settings = settings
        self._metrics = metrics
        self._stop = stop
        self._threads: dict[str, threading.Thread] = {}

    @property
    def alive(self) -> int:
        return len(self._alive())

    def start(self) -> None:
        from envdsl.app.control import webhooks

        if self._settings.workers:
            webhooks.warn_of_secret(self._plane)
        for number in range(1, self._settings.workers + 1):
            name = f"{socket.gethostname()}-{os.getpid()}-{number}"
            # A daemon: a build that does not end within the grace must not hold the process, and the store is whole
            # whenever a writer dies.
            thread = threading.Thread(target=self._work, args=(name,), name=f"worker-{number}", daemon=True)
            thread.start()
            self._threads[name] = thread

    def stop(self) -> None:
        """Let each worker finish what it has in hand, for as long as the settings' grace; hand back what is left then,
        so that another service takes it up at once."""
        self._stop.set()
        deadline = time.monotonic() + self._settings.grace
        for thread in self._threads.values():
            thread.join(max(0, deadline - time.monotonic()))
        if left := self._alive():
            given = self._hand_back(left)
            _LOG.warning("stopped before the work was done", extra={"fields": {"workers": len(left), "given": given}})

    def _alive(self) -> set[str]:
        return {name for name, thread in self._threads.items() if thread.is_alive()}

    def _hand_back(self, workers: set[str]) -> int:
        """Release the leases of ``workers``; whatever they still do for them is refused from now on."""
        count = 0
        try:
            with self._plane.state.transaction() as tx:
                held = tx.requests.list(self._plane.store_id, statuses=[Status.PENDING, Status.BUILDING], limit=1000)
                for record in held:
                    if record.worker in workers:
                        tx.requests.release(record.id, record.worker)
                        count += 1
        except EnvdslError as error:  # the leases run out by themselves
            _LOG.warning("leases were not released", extra={"fields": {"code": error.code}})
        return count

    def _work(self, name: str) -> None:
        from envdsl.app.control.worker import Worker

        while not self._stop.is_set():
            try:
                Worker(self._plane, name=name, took=self._metrics.worked).run(self._stop)
            except EnvdslError as error:
                _LOG.error("worker stopped", extra={"fields": {"code": error.code, "detail": str(error)}})
                self._stop.wait(_TROUBLE)
            except Exception as error:
                _LOG.error("defect in a worker", exc_info=error)
                self._stop.wait(_TROUBLE)

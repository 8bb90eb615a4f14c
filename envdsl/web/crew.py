"""The workers of the service, each in a process of its own (:mod:`envdsl.web.working`).

Work in the service's own process would take the interpreter from its answers. The processes give way to it on a busy
machine, too, end with it, and are started again where they end by themselves.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from envdsl.app.control import changes
from envdsl.errors import EnvdslError
from envdsl.state.records import Status
from envdsl.web.metrics import Metrics
from envdsl.web.settings import Settings
from envdsl.web.working import Assignment

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

_LOG = logging.getLogger("envdsl.web.worker")
_TROUBLE = 5.0  # seconds of pause after a worker ended by itself, such as for an unreachable database
_NICE = 10  # who answers goes before who builds
_MODULE = "envdsl.web.working"


class Crew:
    """``settings.workers`` processes that take requests from the queue until ``stop`` is set."""

    def __init__(self, plane: ControlPlane, settings: Settings, metrics: Metrics, stop: threading.Event) -> None:
        self._plane = plane
        self._settings = settings
        self._metrics = metrics
        self._stop = stop
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._keepers: dict[str, threading.Thread] = {}

    @property
    def alive(self) -> int:
        with self._lock:
            return sum(process.poll() is None for process in self._processes.values())

    def start(self) -> None:
        from envdsl.app.control import webhooks

        if not self._settings.workers:
            return
        webhooks.warn_of_secret(self._plane)
        for number in range(1, self._settings.workers + 1):
            name = f"{socket.gethostname()}-{os.getpid()}-{number}"
            thread = threading.Thread(target=self._keep, args=(name,), name=f"worker-{number}", daemon=True)
            self._keepers[name] = thread
            thread.start()
        threading.Thread(target=self._wake, name="news for workers", daemon=True).start()

    def stop(self) -> None:
        """Let each worker finish what it has in hand, for as long as the settings' grace; hand back what is left then,
        so that another service takes it up at once."""
        self._stop.set()
        with self._lock:
            for process in self._processes.values():
                _end_input(process)
        deadline = time.monotonic() + self._settings.grace
        for thread in self._keepers.values():
            thread.join(max(0, deadline - time.monotonic()))
        left = {name for name, thread in self._keepers.items() if thread.is_alive()}
        if left:
            with self._lock:
                for name in left & self._processes.keys():
                    self._processes[name].kill()  # the store is whole whenever a writer dies
            given = self._hand_back(left)
            _LOG.warning("stopped before the work was done", extra={"fields": {"workers": len(left), "given": given}})

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

    def _keep(self, name: str) -> None:
        """Have a process for the worker ``name`` as long as the service runs, and listen to it."""
        while not self._stop.is_set():
            try:
                process = self._started(name)
            except OSError as error:
                _LOG.error("no worker could be started", extra={"fields": {"worker": name, "detail": str(error)}})
                self._stop.wait(_TROUBLE)
                continue
            assert process.stdout is not None
            for line in process.stdout:
                self._hear(line)
            status = process.wait()
            if not self._stop.is_set():
                _LOG.error("a worker ended", extra={"fields": {"worker": name, "status": status}})
                self._hand_back({name})
                self._stop.wait(_TROUBLE)

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        config = self._plane.project.config
        assignment = Assignment(
            root=str(config.root),
            store=str(config.store),
            curated=self._plane.project.is_curated,
            database=self._plane.state.url.render_as_string(hide_password=False),
            name=name,
            verbose=_LOG.isEnabledFor(logging.DEBUG),
        )
        process = subprocess.Popen(
            # The safe path: nothing from the directory that the service happens to be in.
            [sys.executable, "-P", "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the service, which tells its workers
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
        _write(process, assignment.encode())
        with self._lock:
            self._processes[name] = process
            if self._stop.is_set():  # just now, and nobody else will say it
                _end_input(process)
        return process

    def _hear(self, line: bytes) -> None:
        facts = json.loads(line)
        if "told" in facts:
            changes.tell(*facts["told"])
        else:
            self._metrics.worked(facts["work"], facts["seconds"])

    def _wake(self) -> None:
        """Tell the workers when there is work: they look only twice a second by themselves."""
        with changes.watching(changes.WORK) as news:
            while not self._stop.is_set():
                if news.wait(1):
                    news.clear()
                    with self._lock:
                        for process in self._processes.values():
                            _write(process, b"\n")


def _write(process: subprocess.Popen[bytes], line: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ValueError):  # it has ended, or been told to
        process.stdin.write(line)
        process.stdin.flush()


def _end_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()

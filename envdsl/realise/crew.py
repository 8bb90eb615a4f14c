"""A crew of threads for jobs of very different sizes.

Each thread takes the next job; one that finds no job left helps with the parts that running jobs have shared out.
So the largest wheel of a build is unpacked by all threads together, and nobody waits for it alone.

A job may hold a lock while it waits for its parts: whoever helps holds none, so the parts always get done.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

Item = TypeVar("Item")

_WAKE = 0.25  # seconds


class Cancelled(Exception):  # noqa: N818 (it is no error)
    """The crew was stopped."""


class Crew:
    """``size`` threads that carry out the jobs given to :meth:`run`."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._change = threading.Condition()
        self._jobs: deque[Callable[[], None]] = deque()
        self._groups: list[_Group] = []
        self._running = 0
        self._feeding = False
        self._errors: list[BaseException] = []
        self._stopped = False
        self._ended = 0
        self._blocked: set[int] = set()

    def run(self, jobs: Iterable[Callable[[], None]], *, feed: Callable[[], None] | None = None) -> list[BaseException]:
        """Carry out all jobs in their order; the exceptions of those that failed.

        ``feed`` is called in this thread meanwhile, and may :meth:`add` more of them.
        After a failure no new job begins, and those that run are finished. An exception in the calling thread
        (KeyboardInterrupt, or what ``feed`` raises) stops those that run at their next part, and is raised when they
        have cleaned up.
        """
        self._jobs.extend(jobs)
        self._feeding = feed is not None
        if not self._jobs and not self._feeding:
            return []
        # Daemons, so that one that waits for another process cannot keep an interrupted command alive.
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self._size)]
        # Not Thread.join: one that is interrupted takes its thread for ended (bpo-45274). And not for ever: a
        # signal that comes just before the wait begins would be noticed only after it.
        try:
            for thread in threads:
                thread.start()
            if feed is not None:
                with suppress(Cancelled):
                    feed()
            with self._change:
                self._feeding = False
                self._change.notify_all()
                while self._ended < len(threads):
                    self._change.wait(_WAKE)
        except BaseException:
            with self._change:
                self._stopped = True
                self._feeding = False
                self._jobs.clear()
                self._change.notify_all()
                # A job, once begun, is waited for; a thread that has none ends by itself.
                while self._running > len(self._blocked):
                    self._change.wait()
            raise
        return self._errors

    def add(self, job: Callable[[], None]) -> None:
        """Called while :meth:`run` feeds. Raises Cancelled where a job has failed: no further one begins then."""
        with self._change:
            if self._stopped or self._errors:
                raise Cancelled
            self._jobs.append(job)
            self._change.notify_all()

    def share(self, work: Callable[[Item], Any], parts: Sequence[Item]) -> None:
        """Called by a job: do ``work`` for all ``parts``, with the help of whoever is free.

        Raises the exception of the first part that failed (no further part begins then), or Cancelled.
        """
        group = _Group(work, deque(parts))
        with self._change:
            self._groups.append(group)
            self._change.notify_all()
        try:
            while self._do(group):
                pass
            with self._change:
                while group.active:
                    self._change.wait()
        finally:
            with self._change:
                self._groups.remove(group)
        if group.error is not None:
            raise group.error

    def blocked(self) -> None:
        """Called by a job that is about to wait for another process; :meth:`unblocked` when that is over."""
        with self._change:
            self._blocked.add(threading.get_ident())
            self._change.notify_all()

    def unblocked(self) -> None:
        """Raises Cancelled where the crew was stopped meanwhile."""
        with self._change:
            self._blocked.discard(threading.get_ident())
        self.check()

    def check(self) -> None:
        """Raises Cancelled where the crew was stopped."""
        if self._stopped:
            raise Cancelled

    def _work(self) -> None:
        try:
            while True:
                job, group = self._next()
                if job is not None:
                    self._run(job)
                elif group is not None:
                    self._do(group)
                else:
                    return
        finally:
            with self._change:
                self._ended += 1
                self._change.notify_all()

    def _next(self) -> tuple[Callable[[], None] | None, _Group | None]:
        """A job, or else a group with parts to do; neither when all is done."""
        with self._change:
            while True:
                if self._jobs and not self._stopped:
                    self._running += 1
                    return self._jobs.popleft(), None
                group = next((group for group in self._groups if group.parts), None)
                if group is not None or not (self._running or self._feeding):
                    return None, group
                self._change.wait()

    def _run(self, job: Callable[[], None]) -> None:
        error: BaseException | None = None
        try:
            self.check()
            job()
        except BaseException as caught:
            error = caught
        with self._change:
            self._running -= 1
            if error is not None:
                self._errors.append(error)
                self._jobs.clear()
            self._change.notify_all()

    def _do(self, group: _Group) -> bool:
        """Do one part of a group; False where none is left."""
        with self._change:
            if not group.parts:
                return False
            part = group.parts.popleft()
            group.active += 1
        error: BaseException | None = None
        try:
            self.check()
            group.work(part)
        except BaseException as caught:
            error = caught
        with self._change:
            group.active -= 1
            if error is not None:
                group.parts.clear()
                group.error = group.error or error
            if not group.active:
                self._change.notify_all()
        return True


class _Group:
    """The parts of one job."""

    def __init__(self, work: Callable[[Any], Any], parts: deque[Any]) -> None:
        self.work = work
        self.parts = parts
        self.active = 0
        self.error: BaseException | None = None

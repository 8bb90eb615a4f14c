"""Hashing many files beside other work, in processes.

Threads would do for large files. Most files are small, and a thread that opens, reads and closes one after the other
takes the interpreter away from the one that asks: on two cores, walking a store while two threads hash takes longer
than doing both in turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from contextlib import suppress
from types import TracebackType

from envdsl.store.treehash import hash_file

# Until so much was hashed there is no process but ours: starting one takes as long. A file counts as its bytes and
# what opening it costs.
_ALONE = 16 << 20
_PER_FILE = 1 << 14
_BATCH_BYTES = 4 << 20
_BATCH_FILES = 64
# Answers (about 75 bytes) that wait in a pipe of 64 KiB without stopping who writes them.
_UNREAD = 512


class File:
    """A file to hash: ``place``, and the ``size`` that it seems to have. ``found`` becomes ``b"<blake3> <size>"``, as
    in a record, or the error that kept it from being read."""

    __slots__ = ("found", "place", "size")
    found: bytes | OSError

    def __init__(self, place: bytes, size: int) -> None:
        self.place = place
        self.size = size

    def hash(self) -> None:
        """Hash it here and now."""
        try:
            size, digest = hash_file(self.place, self.size)
            self.found = f"{digest} {size}".encode()
        except OSError as error:
            self.found = error


class Hashing:
    """Hashes what is given to :meth:`add` with ``jobs`` processes, this one included.

    A process that does not start, or dies, is made up for by this one.
    """

    def __init__(self, jobs: int) -> None:
        self._left = _ALONE
        self._vacant = jobs - 1
        self._workers: deque[_Worker] = deque()
        self._batch: list[File] = []
        self._size = 0
        self._sent: deque[tuple[_Worker | None, list[File]]] = deque()
        self._closed = 0  # batches, ever
        self._done = 0

    def __enter__(self) -> Hashing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.close()

    def add(self, file: File) -> None:
        """Have ``file`` hashed, now or later."""
        cost = file.size + _PER_FILE
        if self._left > 0 or not (self._workers or self._vacant):
            self._left -= cost
            file.hash()
            return
        self._batch.append(file)
        self._size += cost
        if self._size >= _BATCH_BYTES or len(self._batch) >= _BATCH_FILES:
            self._send()

    def mark(self) -> int:
        """What :meth:`wait` takes to wait for all files that were added so far."""
        return self._closed + bool(self._batch)

    def wait(self, mark: int) -> None:
        """Return when the files that were added before ``mark`` was given are hashed."""
        if mark > self._closed:
            self._send()
        while self._done < mark:
            self._receive()

    def _send(self) -> None:
        batch, self._batch, self._size = self._batch, [], 0
        self._closed += 1
        worker = self._worker()
        if worker.unread + len(batch) <= _UNREAD:
            worker.send(batch)
            self._sent.append((worker, batch))
            return
        # It has enough to do: help, and take what it has done meanwhile.
        for file in batch:
            file.hash()
        self._sent.append((None, batch))
        while worker.unread + _BATCH_FILES > _UNREAD:
            self._receive()

    def _receive(self) -> None:
        worker, batch = self._sent.popleft()
        if worker is not None:
            worker.receive(batch)
        self._done += 1

    def _worker(self) -> _Worker:
        """The one whose turn it is."""
        if self._vacant:
            self._vacant -= 1
            self._workers.append(_Worker())
        self._workers.rotate()
        return self._workers[0]


class _Worker:
    """One process; answers come in the order of requests. ``unread`` is the number of those that wait."""

    def __init__(self) -> None:
        self.unread = 0
        self._process: subprocess.Popen[bytes] | None = None
        with suppress(OSError):
            self._process = subprocess.Popen(
                # The safe path: nothing from the directory that we happen to be in.
                [sys.executable, "-P", "-m", "envdsl.store.hash_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )

    def send(self, files: list[File]) -> None:
        self.unread += len(files)
        if self._process is not None and self._process.stdin is not None:
            with suppress(BrokenPipeError):  # nothing is answered then
                self._process.stdin.write(b"".join([b"%d %s\0" % (file.size, file.place) for file in files]))
                self._process.stdin.flush()

    def receive(self, files: list[File]) -> None:
        self.unread -= len(files)
        answers = self._process.stdout if self._process is not None else None
        for file in files:
            line = answers.readline() if answers is not None else b""
            if not line.endswith(b"\n"):
                file.hash()
            elif line.startswith(b"!"):
                number = int(line[1:])
                file.found = OSError(number, os.strerror(number))
            else:
                file.found = line[:-1]

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()  # it only reads
            with suppress(BrokenPipeError):
                self._process.communicate()

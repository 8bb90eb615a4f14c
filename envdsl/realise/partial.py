"""A wheel that is arriving: written, hashed and counted in one go."""

from __future__ import annotations

import hashlib
from pathlib import Path

from blake3 import blake3

from envdsl.graph.derivation import WheelFile
from envdsl.reporter import Task

_CHUNK = 1 << 18


class WrongBytesError(Exception):
    """A candidate's bytes are not the wheel's."""


class Partial:
    """A file that grows, hashed as it does. Progress counts each byte of the wheel once, however often it came."""

    def __init__(self, path: Path, expected: int, task: Task) -> None:
        self.path = path
        self.size = 0
        self._expected = expected
        self._task = task
        self._reported = 0
        self._file = path.open("r+b")
        self.sha256 = hashlib.sha256()
        self.blake3 = blake3()
        while chunk := self._file.read(_CHUNK):
            self._count(chunk)

    def append(self, chunk: bytes) -> None:
        if self.size + len(chunk) > self._expected:
            raise WrongBytesError(f"more than {self._expected} bytes")
        self._file.write(chunk)
        self._count(chunk)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.size = 0
        self.sha256 = hashlib.sha256()
        self.blake3 = blake3()

    def verify(self, wheel: WheelFile) -> None:
        """Raises :class:`WrongBytesError`."""
        if self.size != wheel.size or self.sha256.hexdigest() != wheel.sha256:
            raise WrongBytesError(f"sha256 {self.sha256.hexdigest()}, {self.size} bytes")

    def close(self) -> None:
        self._file.close()

    def _count(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self.sha256.update(chunk)
        self.blake3.update(chunk)
        if self.size > self._reported:
            self._task.advance(min(self.size, self._expected) - self._reported)
            self._reported = min(self.size, self._expected)

"""Writing an output: new files with their final modes and times, and the listing of what was written.

Files are sealed as they are made, so that nobody has to walk over them again; directories when all is
written. The digest of each file is computed from the bytes on their way to the disk. Several threads may
write to one tree.
"""

# Calls of os with strings, not pathlib: there are very many of them.
# ruff: noqa: PTH101, PTH102, PTH211

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from blake3 import blake3

from envdsl.store.tree import DIRECTORY_MODE, MTIME, file_mode
from envdsl.store.treehash import Entry

_TIMES = (MTIME * 10**9, MTIME * 10**9)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class TreeWriter:
    """Fills the directory ``root``, which exists and is empty. OSError is left to the caller."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.entries: list[Entry] = []
        self._prefix = f"{root}/"
        self._directories: set[str] = {""}
        self._lock = threading.Lock()

    def write(self, path: str, content: bytes | bytearray, *, executable: bool = False) -> None:
        """Write the file ``path`` (relative, plain: see `zipnames`), creating the directories above it.

        Raises FileExistsError where something stands there.
        """
        descriptor = self._create(path)
        try:
            _write_all(descriptor, content)
            _seal(descriptor, executable)
        finally:
            os.close(descriptor)
        self.entries.append(Entry(path, "file", executable, len(content), blake3(content).hexdigest()))

    def stream(self, path: str, blocks: Iterable[bytes], *, executable: bool = False) -> None:
        """The same for a file of any size, block by block."""
        descriptor = self._create(path)
        hasher = blake3()
        size = 0
        try:
            for block in blocks:
                hasher.update(block)
                size += len(block)
                _write_all(descriptor, block)
            _seal(descriptor, executable)
        finally:
            os.close(descriptor)
        self.entries.append(Entry(path, "file", executable, size, hasher.hexdigest()))

    def symlink(self, path: str, target: str) -> None:
        self.directory(path.rpartition("/")[0])
        place = self._prefix + path
        os.symlink(target, place)
        os.utime(place, ns=_TIMES, follow_symlinks=False)
        encoded = os.fsencode(target)
        self.entries.append(Entry(path, "symlink", False, len(encoded), blake3(encoded).hexdigest()))

    def _create(self, path: str) -> int:
        self.directory(path.rpartition("/")[0])
        return os.open(self._prefix + path, _NEW, 0o600)

    def directory(self, path: str) -> None:
        """Make the directory ``path`` and those above it, unless they exist."""
        if path in self._directories:
            return
        with self._lock:
            self._make(path)

    def _make(self, path: str) -> None:
        if path in self._directories:
            return
        self._make(path.rpartition("/")[0])
        os.mkdir(self._prefix + path, 0o755)
        self._directories.add(path)

    def seal(self) -> None:
        """Give all directories below the root their final modes and times; nothing can be added afterwards."""
        # Children first: changing them changes nothing of their parents' times, but making them did.
        for path in sorted(self._directories - {""}, reverse=True):
            place = self._prefix + path
            os.chmod(place, DIRECTORY_MODE)
            os.utime(place, ns=_TIMES)


def _seal(descriptor: int, executable: bool) -> None:
    os.fchmod(descriptor, file_mode(executable))  # not by open: the umask is the user's
    os.utime(descriptor, ns=_TIMES)


def _write_all(descriptor: int, block: bytes | bytearray) -> None:
    written = os.write(descriptor, block)
    if written < len(block):
        view = memoryview(block)
        while written < len(block):
            written += os.write(descriptor, view[written:])

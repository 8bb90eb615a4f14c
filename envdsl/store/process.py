"""What a running process owns in a store: temporary directories, and leases that hold paths against gc.

All of it stands in one directory, ``tmp/process-<random>/``, with a file ``lock`` on which the process holds a
lock for as long as it lives. Whoever gets that lock knows that the owner is gone, and that the directory is
rubbish. The directory is made while the store's gate is held, so that nobody sees it without its lock.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from envdsl.store.locks import release, try_exclusive
from envdsl.store.tree import remove_tree

_UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")


class ProcessDirectory:
    """The directory of this process below ``tmp``, made when it is first needed."""

    def __init__(self, tmp: Path, gate: Callable[[], AbstractContextManager[None]]) -> None:
        self._tmp = tmp
        self._gate = gate
        self._mutex = threading.Lock()
        self._path: Path | None = None
        self._lock = -1
        self._owner = 0
        self._leases: dict[int, set[str]] = {}  # by descriptor, the keys that each holds

    def temporary(self, label: str) -> Path:
        """A fresh, empty directory."""
        directory = self._unique(_UNFIT.sub("-", label)[:100])
        directory.mkdir(0o755)
        return directory

    def vacant(self, label: str) -> Path:
        """A name that nothing has yet, to rename something to."""
        return self._unique(_UNFIT.sub("-", label)[:100])

    @contextmanager
    def lease(self) -> Iterator[set[str]]:
        """While the block runs, :meth:`protect` holds keys; gives the set in which they gather."""
        path = self._unique("lease")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        keys: set[str] = set()
        with self._mutex:
            self._leases[descriptor] = keys
        try:
            yield keys
        finally:
            with self._mutex:
                del self._leases[descriptor]
            os.close(descriptor)
            path.unlink(missing_ok=True)

    @property
    def leased(self) -> bool:
        return bool(self._leases)

    def protect(self, key: str) -> None:
        """Write ``key`` into every lease that is open. To be called inside the gate."""
        with self._mutex:
            for descriptor, keys in self._leases.items():
                if key not in keys:
                    os.write(descriptor, f"{key}\n".encode())
                    keys.add(key)

    def close(self) -> None:
        """Remove the directory with all that is left in it."""
        if self._path is None or self._owner != os.getpid():
            return
        remove_tree(self._path)
        release(self._lock)
        self._path = None

    def _unique(self, label: str) -> Path:
        return self._directory() / f"{label}-{os.urandom(5).hex()}"

    def _directory(self) -> Path:
        with self._mutex:
            if self._path is None:
                path = self._tmp / f"process-{os.urandom(8).hex()}"
                with self._gate():
                    path.mkdir(0o700)
                    (path / "lock").touch()
                    descriptor = try_exclusive(path / "lock")
                assert descriptor is not None, "nobody else knows the lock yet"
                self._path, self._lock, self._owner = path, descriptor, os.getpid()
            return self._path


def leased_keys(tmp: Path) -> set[str]:
    """The keys that the leases of all living processes hold. To be called with the gate held alone; a lease that
    ends meanwhile may be missed."""
    keys: set[str] = set()
    for directory in _process_directories(tmp):
        if not _is_dead(directory):
            for lease in _leases(directory):
                with suppress(FileNotFoundError):
                    keys.update(lease.read_text("ascii").split())
    return keys


def dead_directories(tmp: Path) -> list[Path]:
    """The directories of processes that are gone. To be called with the gate held alone."""
    return [directory for directory in _process_directories(tmp) if _is_dead(directory)]


def _leases(directory: Path) -> list[Path]:
    try:
        return [place for place in directory.iterdir() if place.name.startswith("lease-")]
    except FileNotFoundError:  # its process has just ended
        return []


def _process_directories(tmp: Path) -> list[Path]:
    return sorted(tmp.glob("process-*"))


def _is_dead(directory: Path) -> bool:
    try:
        descriptor = try_exclusive(directory / "lock")
    except FileNotFoundError:
        return True
    if descriptor is None:
        return False
    release(descriptor)
    return True

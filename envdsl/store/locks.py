"""Locks between processes and threads: flock(2), which the kernel releases when its holder dies.

A lock file is removed by its holder, while the lock is held. Whoever was waiting for it then holds a lock on
a file without a name, sees that, and starts again with the file that has the name now.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# struct flock of 64-bit Linux: type, whence, start, length, pid.
_FLOCK = struct.Struct("hhqqi4x")
GATES = ("gate", "database")


@contextmanager
def exclusive(path: Path, *, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock at ``path`` alone; ``waiting`` is called once if another holds it now."""
    descriptor = _acquire(path, waiting)
    try:
        yield
    finally:
        with suppress(OSError):  # a file that stays is no lock
            path.unlink()
        release(descriptor)


@contextmanager
def gate(path: Path, *, shared: bool) -> Iterator[None]:
    """Pass the gate at ``path`` together with others (``shared``) or alone; its file stays."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        release(descriptor)


def try_exclusive(path: Path) -> int | None:
    """A descriptor that holds the lock on the file ``path``, or None where somebody else does.

    Raises FileNotFoundError where there is no such file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def remove_stale_locks(directory: Path) -> None:
    """Remove the files of locks (:func:`exclusive`) whose holders died. Gates stay."""
    for path in directory.iterdir():
        if path.name not in GATES:
            try:
                descriptor = try_exclusive(path)
            except FileNotFoundError:
                continue
            if descriptor is not None:
                if _has_name(descriptor, path):
                    path.unlink()
                release(descriptor)


def release(descriptor: int) -> None:
    """Give up the lock and the descriptor, also for forked children that share it."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_locked_by_sandbox(path: Path) -> bool:
    """Whether any process holds a POSIX lock on ``path``, as bwrap's ``--lock-file`` takes one (fcntl(2), F_GETLK)."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        query = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, query)
        return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
    finally:
        os.close(descriptor)


def _acquire(path: Path, waiting: Callable[[], None] | None) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting is not None:
                    waiting()
                    waiting = None
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _has_name(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False

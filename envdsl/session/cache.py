"""A session's cache directory: what a sandbox wrote, so nothing in it is trusted.

Links are never followed, not even by a path that turns into one meanwhile: everything goes by descriptors.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def trim(directory: Path, limit: int) -> int:
    """Remove files of ``directory``, those longest unused first, until ``limit`` bytes of disk are left at most.

    Returns the bytes removed. What can't be read or removed stays.
    """
    open_up(directory)
    files: list[tuple[float, int, str, str]] = []
    for path, _, names, descriptor in os.fwalk(directory, follow_symlinks=False):
        for name in names:
            try:
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                continue
            files.append((max(found.st_atime, found.st_mtime), found.st_blocks * 512, path, name))
    excess = sum(size for _, size, _, _ in files) - limit
    doomed: dict[str, list[tuple[str, int]]] = {}
    for _, size, path, name in sorted(files):
        if excess <= 0:
            break
        doomed.setdefault(path, []).append((name, size))
        excess -= size
    removed = 0
    for path, _, _, descriptor in os.fwalk(directory, follow_symlinks=False):
        for name, size in doomed.get(path, ()):
            try:
                os.unlink(name, dir_fd=descriptor)
                removed += size
            except OSError:
                continue
    return removed


def remove(path: Path) -> None:
    """Remove a tree that a sandbox wrote to, though it may have taken away permissions. Raises OSError."""
    open_up(path)
    shutil.rmtree(path)


def open_up(path: Path) -> None:
    """Let the owner into every directory below ``path``."""
    for _, directories, _, parent in os.fwalk(path, follow_symlinks=False):
        for name in directories:
            try:
                directory = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
            except OSError:
                continue  # a link
            try:
                if os.fstat(directory).st_mode & stat.S_IRWXU != stat.S_IRWXU:
                    Path(f"/proc/self/fd/{directory}").chmod(0o700)
            finally:
                os.close(directory)

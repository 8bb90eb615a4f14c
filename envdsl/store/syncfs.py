"""syncfs(2): write everything of one file system to its disk."""

from __future__ import annotations

import os
from pathlib import Path


class FileSystem:
    """The file system that ``root`` is on.

    The kernel reports a failed write to those who had the file system open when it failed: so it is opened
    (:meth:`watch`) before the first file is written, and not when it is time to sync.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._descriptor = -1

    def watch(self) -> None:
        if self._descriptor < 0:
            self._descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def sync(self) -> None:
        """Raises OSError where anything written since :meth:`watch` could not be kept."""
        import ctypes

        self.watch()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syncfs(self._descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(self._root))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

"""Where a run of the benchmarks works: a fresh file system, a clean environment, and the tools by absolute path."""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

from envdsl.store.syncfs import FileSystem

if TYPE_CHECKING:
    from benchmarks.office import Office

ENVDSL = str(Path(sys.executable).with_name("envdsl"))
UV = find_uv_bin()


class Scratch:
    """One run. ``root`` is a directory on a fresh file system, which ``file_system`` describes.

    ``quick`` asks for few runs, to see that everything works rather than to measure.
    """

    def __init__(self, root: Path, file_system: str, *, quick: bool) -> None:
        self.root = root
        self.file_system = file_system
        self.quick = quick

    def runs(self, full: int) -> int:
        """How many runs to make where a real measurement makes ``full``."""
        return max(3, full // 10) if self.quick else full

    @cached_property
    def environment(self) -> dict[str, str]:
        """What every measured process gets, and nothing of the user's: no settings of Python, pip or uv."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "MPLBACKEND": "Agg"}

    def uv_environment(self, cache: Path) -> dict[str, str]:
        """The same for uv: a cache of its own, and no network."""
        return {
            **self.environment,
            "UV_CACHE_DIR": str(cache),
            "UV_OFFLINE": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_LINK_MODE": "hardlink",
        }

    def sync(self) -> None:
        """Let everything written so far reach the disk, so that no run pays for what an earlier one left in memory."""
        file_system = FileSystem(self.root)
        try:
            file_system.sync()
        finally:
            file_system.close()

    def directory(self, name: str) -> Path:
        """A directory below the root, made if it is new."""
        place = self.root / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    @cached_property
    def office(self) -> Office:
        """The curated base layer ``office``, prepared when the first line asks for it."""
        from benchmarks.office import Office

        return Office.prepare(self)

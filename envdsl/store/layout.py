"""Where everything in a store stands. No input or output: paths only."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from envdsl.model.digest import store_hash
from envdsl.model.names import LayerId


class Layout:
    """The directories of the store at ``root``, and the *store paths* in them.

    A store path is relative to the root and spelled with ``/`` (``layers/base-<hash>``), so that it means
    the same wherever the store stands.
    """

    # The directories that hold store paths, each with the number of parts such a path has.
    OUTPUTS: ClassVar = {"wheelhouse": 3, "unpacked": 2, "bytecode": 2, "layers": 2, "sources": 2, "python": 2}

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.wheelhouse = self.root / "wheelhouse"
        self.unpacked = self.root / "unpacked"
        self.bytecode = self.root / "bytecode"
        self.layers = self.root / "layers"
        self.sources = self.root / "sources"
        self.python = self.root / "python"
        self.drv = self.root / "drv"
        self.locks = self.root / "locks"
        self.logs = self.root / "logs"
        self.sessions = self.root / "sessions"
        self.bin = self.root / "bin"
        self.gcroots = self.root / "gcroots"
        self.cache = self.root / "cache"
        self.tmp = self.root / "tmp"
        self.database = self.root / "envdsl.db"
        self.reserved = self.root / "reserved"
        self.current = self.root / "current"

    @property
    def directories(self) -> tuple[Path, ...]:
        """What a store consists of when it is new."""
        return (
            self.wheelhouse,
            self.unpacked,
            self.bytecode,
            self.layers,
            self.sources,
            self.python,
            self.drv,
            self.locks,
            self.logs,
            self.sessions,
            self.bin,
            self.gcroots,
            self.cache,
            self.tmp,
        )

    def absolute(self, path: str) -> Path:
        """The place of a store path on this machine."""
        return self.root / path

    @staticmethod
    def wheel_path(sha256: str, filename: str) -> str:
        return f"wheelhouse/{sha256}/{filename}"

    @staticmethod
    def unpacked_path(key: str, name: str, version: str) -> str:
        return f"unpacked/{store_hash(key)}-{name}-{version}"

    @staticmethod
    def bytecode_path(key: str, name: str, version: str, tag: str = "") -> str:
        """``tag`` is the interpreter's (``cp312``); it is there for the reader, the hash alone tells paths apart."""
        return f"bytecode/{store_hash(key)}-{name}-{version}" + (f"-{tag}" if tag else "")

    @staticmethod
    def layer_path(layer: LayerId) -> str:
        return f"layers/{layer}"

    @staticmethod
    def source_path(key: str) -> str:
        return f"sources/{store_hash(key)}"

    @staticmethod
    def python_path(name: str) -> str:
        return f"python/{name}"

    @classmethod
    def store_path_of(cls, path: str) -> str | None:
        """The store path that ``path`` (relative to the root) is or lies in; None where it is in none."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        depth = cls.OUTPUTS.get(parts[0]) if parts else None
        if depth is None or len(parts) < depth or ".." in parts:
            return None
        return "/".join(parts[:depth])

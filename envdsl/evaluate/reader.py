"""What evaluation can see of a project: files inside its root, and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Protocol

from envdsl.errors import EnvdslError
from envdsl.evaluate.limits import Limits


class ProjectReader(Protocol):
    """Files of a project, by normalised POSIX path relative to its root (``.`` is the root)."""

    def read(self, path: str) -> bytes:
        """The bytes of a file. Raises EnvdslError when there is none, it is too large, or leads out of the project."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory stands there, inside the project."""

    def is_dir(self, path: str) -> bool:
        """Whether a directory stands there, inside the project."""


class DirectoryReader:
    """A project on disk. Symbolic links may lead anywhere inside the root, and nowhere else."""

    def __init__(self, root: Path, *, limit: int = Limits().file) -> None:
        self._root = Path(os.path.realpath(root))
        self._limit = limit

    def read(self, path: str) -> bytes:
        resolved = self._resolve(path)
        if resolved is None:
            raise EnvdslError.of(
                "eval-path-outside-project",
                f"`{path}` leads out of the project",
                hint="layer files read inside the project only; copy the file there",
            )
        try:
            data = self._read_regular(resolved)
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from None
        if len(data) > self._limit:
            raise EnvdslError.of(
                "eval-file-too-large", f"`{path}` is too large to read: more than {self._limit // 2**20} MiB"
            )
        return data

    def exists(self, path: str) -> bool:
        resolved = self._resolve(path)
        return resolved is not None and os.path.exists(resolved)  # noqa: PTH110 - raises nothing

    def is_dir(self, path: str) -> bool:
        resolved = self._resolve(path)
        return resolved is not None and os.path.isdir(resolved)  # noqa: PTH112 - raises nothing

    def _read_regular(self, path: Path) -> bytes:
        # O_NONBLOCK: opening a pipe must not wait for its other end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError("it is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(self._limit + 1)
        finally:
            os.close(descriptor)

    def _resolve(self, path: str) -> Path | None:
        if "\0" in path:
            return None
        resolved = Path(os.path.realpath(self._root / path))
        return resolved if resolved.is_relative_to(self._root) else None


def _unreadable(path: str, reason: str) -> EnvdslError:
    return EnvdslError.of("eval-file-unreadable", f"cannot read `{path}`: {reason}")


class NoProject:
    """The reader of an expression that stands in no project: there is nothing to read."""

    def read(self, path: str) -> bytes:
        raise _unreadable(path, "there is no project here")

    def exists(self, path: str) -> bool:
        return False

    def is_dir(self, path: str) -> bool:
        return False


class WithFile(DirectoryReader):
    """The project with one more file in it."""

    def __init__(self, root: Path, path: str, content: bytes) -> None:
        super().__init__(root)
        self._path = path
        self._content = content

    def read(self, path: str) -> bytes:
        return self._content if path == self._path else super().read(path)

    def exists(self, path: str) -> bool:
        return path == self._path or super().exists(path)

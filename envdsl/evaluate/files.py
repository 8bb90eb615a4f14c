"""Paths inside the project, and the record of what an evaluation has read."""

from __future__ import annotations

import posixpath

from envdsl.errors import EnvdslError
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.reader import ProjectReader
from envdsl.model.digest import blake3_hex


class Files:
    """Reads each file once, within limits, and remembers the digest of what it read."""

    def __init__(self, reader: ProjectReader, limits: Limits) -> None:
        self._reader = reader
        self._limits = limits
        self._contents: dict[str, bytes] = {}
        self._total = 0
        self.inputs: dict[str, str] = {}

    def read(self, path: str) -> bytes:
        """The bytes of a file of the project. Raises EvaluationError."""
        if path in self._contents:
            return self._contents[path]
        if len(self._contents) >= self._limits.files:
            raise EvaluationError("eval-too-large", f"the evaluation reads more than {self._limits.files:,} files")
        try:
            data = self._reader.read(path)
        except EnvdslError as error:
            finding = error.diagnostics[0]
            raise EvaluationError(finding.code, finding.message, hint=finding.hint) from None
        if len(data) > self._limits.file:
            raise EvaluationError(
                "eval-file-too-large", f"`{path}` is too large to read: more than {self._limits.file // 2**20} MiB"
            )
        self._total += len(data)
        if self._total > self._limits.read:
            raise EvaluationError(
                "eval-too-large",
                f"the evaluation reads more than {self._limits.read // 2**20} MiB of files",
                fatal=True,
            )
        self._contents[path] = data
        self.inputs[path] = blake3_hex(data)
        return data

    def exists(self, path: str) -> bool:
        return self._reader.exists(path)

    def is_dir(self, path: str) -> bool:
        return self._reader.is_dir(path)


def resolve(directory: str, written: str) -> str:
    """The path ``written`` in a file of ``directory`` (both relative to the project), normalised.

    Raises EvaluationError (``eval-path-outside-project``) when it is absolute or leads out of the project.
    """
    if written.startswith("/"):
        raise EvaluationError(
            "eval-path-outside-project",
            f"`{written}` is an absolute path",
            hint="paths in layer files are relative to the file that they stand in",
        )
    path = posixpath.normpath(posixpath.join(directory, written))
    if path == ".." or path.startswith("../"):
        raise EvaluationError(
            "eval-path-outside-project",
            f"`{written}` leads out of the project",
            hint="layer files read inside the project only; copy the file there",
        )
    return path

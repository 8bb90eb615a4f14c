"""Running expressions in tests, and the tables that the topics share.

Each topic module has ``CASES`` (expression and what it prints as) and ``ERRORS`` (expression and the code of
its error). ``test_nix.py`` runs the same tables through Nix itself where that is installed.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.expression import evaluate_expression
from envdsl.evaluate.reader import ProjectReader
from envdsl.evaluate.render import render_nix


class MemoryReader:
    """A project in memory: a mapping from path to text or bytes."""

    def __init__(self, files: dict[str, str | bytes]) -> None:
        self._files = {path: data.encode() if isinstance(data, str) else data for path, data in files.items()}

    def read(self, path: str) -> bytes:
        if path not in self._files:
            raise EnvdslError.of("eval-file-unreadable", f"cannot read '{path}': No such file or directory")
        return self._files[path]

    def exists(self, path: str) -> bool:
        return path in self._files or self.is_dir(path)

    def is_dir(self, path: str) -> bool:
        return path == "." or any(other.startswith(path + "/") for other in self._files)


@dataclass(frozen=True)
class Differs:
    """An expected text that is envdsl's own, with the reason why Nix (2.8) prints another."""

    text: str
    reason: str


def value(expression: str, reader: ProjectReader | None = None) -> str:
    """What the expression prints as."""
    return render_nix(evaluate_expression(expression, reader))


def error(expression: str, reader: ProjectReader | None = None) -> Diagnostic:
    """The first error of the expression."""
    with pytest.raises(EnvdslError) as raised:
        evaluate_expression(expression, reader)
    return raised.value.diagnostics[0]


def text_of(expected: str | Differs) -> str:
    return expected.text if isinstance(expected, Differs) else expected

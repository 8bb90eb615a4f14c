"""Progress as hooks: the rooms call them, a face shows them. This one shows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from envdsl.errors import Diagnostic


class Task:
    """One piece of long work. Methods may be called from several threads."""

    def advance(self, amount: int = 1) -> None:
        """``amount`` more units of the task's total are done."""

    def describe(self, item: str) -> None:
        """The item that is being worked on now."""


class Reporter:
    """Receives what a room has to say while it works; never a result."""

    @contextmanager
    def task(self, title: str, total: int | None = None, unit: str = "") -> Iterator[Task]:
        """Work begins (``total`` in ``unit``; unit ``"B"`` is bytes) and ends with the block."""
        yield Task()

    def warn(self, diagnostic: Diagnostic) -> None:
        """A finding that does not stop the work."""

    def note(self, message: str) -> None:
        """A detail for those who asked for more (``--verbose``)."""

    def trace(self, message: str) -> None:
        """What the builtin ``trace`` of the language says: the author of a layer asked for it."""

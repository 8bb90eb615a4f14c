"""All that is wrong with a project, gathered so that one run reports it in order of place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from envdsl.errors import Diagnostic, Note
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.model.span import Span

# A file of garbage has endless errors; nobody reads more than these.
_MOST = 200


class Findings:
    """Errors of several files. One cause met on several ways (a shared ``let`` that fails) is told once."""

    def __init__(self) -> None:
        self._diagnostics: dict[tuple[str, str, Span | None], Diagnostic] = {}
        self._order: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._diagnostics)

    def file(self, path: str) -> None:
        """The next file; findings are reported in the order in which files are named here."""
        self._order.setdefault(path, len(self._order))

    def add(self, diagnostic: Diagnostic) -> None:
        if len(self._diagnostics) < _MOST:
            self._diagnostics.setdefault((diagnostic.code, diagnostic.message, diagnostic.span), diagnostic)

    def failed(self, failure: EvaluationError, fallback: Span | None = None) -> None:
        """Record an error of the interpreter, unless it is the echo of one that is recorded already."""
        failure.release()
        if not failure.reported:
            self.add(failure.diagnostic(fallback))

    @contextmanager
    def attempt(self, machine: Machine, span: Span, *notes: Note) -> Iterator[None]:
        """Go on after an error in the block, which is recorded; not when the whole budget is gone.

        ``span`` is its place if the error knows none; ``notes`` end its trail, from the inside out.
        """
        try:
            yield
        except EvaluationError as failure:
            machine.depth = 0
            for note in notes:
                failure.note(note)
            self.failed(failure, span)
            if failure.fatal:
                failure.reported = True
                raise

    def sorted(self) -> tuple[Diagnostic, ...]:
        """All findings in order of place."""
        return tuple(sorted(self._diagnostics.values(), key=self._place))

    def _place(self, diagnostic: Diagnostic) -> tuple[int, int]:
        if diagnostic.span is None:
            return -1, 0
        return self._order.get(diagnostic.span.source.path, len(self._order)), diagnostic.span.start

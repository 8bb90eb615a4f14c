"""Progress on a terminal, plain messages elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from envdsl.cli import output
from envdsl.errors import Diagnostic
from envdsl.reporter import Reporter, Task

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 2.0  # seconds; what is over sooner needs no line


class MessageReporter(Reporter):
    """Warnings, and with ``--verbose`` notes, as lines on stderr; no bars."""

    def warn(self, diagnostic: Diagnostic) -> None:
        output.report([diagnostic])

    def note(self, message: str) -> None:
        if output.is_verbose():
            output.message(message)

    def trace(self, message: str) -> None:
        output.message(f"trace: {message}")


class LineReporter(MessageReporter):
    """A line for each stage that takes ``patience`` seconds or is of unknown length; with ``--verbose`` for each stage
    and each of its items, and how long it took."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience

    @contextmanager
    def task(self, title: str, total: int | None = None, unit: str = "") -> Iterator[Task]:
        if total == 0:
            yield Task()
            return
        amount = "" if total is None else f": {output.size(total)}" if unit == "B" else f": {total} {unit}".rstrip()
        verbose = output.is_verbose()
        begin = time.monotonic()
        stage = _Stage(f"{title}{amount}", begin + self._patience, items=verbose)
        if verbose or total is None:
            stage.say()
        yield stage
        self.note(f"{title}: done in {time.monotonic() - begin:.1f} s")


class _Stage(Task):
    """Says its line once, when it is still at work at the moment ``due``."""

    def __init__(self, line: str, due: float, *, items: bool) -> None:
        self._line: str | None = line
        self._due = due
        self._items = items
        self._lock = threading.Lock()

    def say(self) -> None:
        with self._lock:
            if self._line is not None:
                output.message(self._line)
                self._line = None

    def advance(self, amount: int = 1) -> None:
        if self._line is not None and time.monotonic() >= self._due:
            self.say()

    def describe(self, item: str) -> None:
        self.advance(0)
        if self._items:
            output.message(f"  {item}")


class BarReporter(MessageReporter):
    """Bars while something long runs; they vanish when it is done, so that messages stay readable."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._running = 0

    @contextmanager
    def task(self, title: str, total: int | None = None, unit: str = "") -> Iterator[Task]:
        progress = self._begin()
        bar = progress.add_task(title, total=total, item="", done="")
        try:
            yield _Bar(progress, bar, total, unit)
        finally:
            progress.remove_task(bar)
            self._end()

    def warn(self, diagnostic: Diagnostic) -> None:
        if self._progress is None:
            super().warn(diagnostic)
        else:
            self._progress.console.print(output.render(diagnostic), markup=False, highlight=False)

    def _begin(self) -> Progress:
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=30),
                TextColumn("{task.fields[done]}"),
                TimeElapsedColumn(),
                TextColumn("[dim]{task.fields[item]}", markup=True),
                console=Console(stderr=True, no_color=not output.colours(sys.stderr)),
                transient=True,
            )
            self._progress.start()
        self._running += 1
        return self._progress

    def _end(self) -> None:
        self._running -= 1
        if self._running == 0 and self._progress is not None:
            self._progress.stop()
            self._progress = None


class _Bar(Task):
    def __init__(self, progress: Progress, bar: TaskID, total: int | None, unit: str) -> None:
        self._progress = progress
        self._bar = bar
        self._total = total
        self._show = output.size if unit == "B" else str
        self._done = 0
        self._lock = threading.Lock()

    def advance(self, amount: int = 1) -> None:
        with self._lock:
            self._done += amount
            done = self._show(self._done) + (f"/{self._show(self._total)}" if self._total is not None else "")
            self._progress.update(self._bar, completed=self._done, done=done)

    def describe(self, item: str) -> None:
        self._progress.update(self._bar, item=item)


def reporter() -> Reporter:
    """Bars on a terminal, lines elsewhere and with ``--verbose``; warnings alone with ``--quiet``, and with ``--json``
    on no terminal, where programs read both streams."""
    if output.is_verbose():
        return LineReporter()
    if output.is_quiet():
        return MessageReporter()
    if sys.stderr.isatty():
        return BarReporter()
    return MessageReporter() if output.is_json() else LineReporter()

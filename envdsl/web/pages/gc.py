"""Garbage collection: first what would go, then, on a second click, its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.store.gc import Collected

_DAY = 24 * 3600
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class GcView:
    """The form as it was filled in; ``wrong`` names the field that holds no number. ``collected`` is what goes, or
    went."""

    older_than: str = ""
    keep_last: str = ""
    wrong: str | None = None
    collected: Collected | None = None

    @property
    def gone(self) -> tuple[str, ...]:
        if self.collected is None:
            return ()
        return (*(path.path for path in self.collected.paths), *self.collected.rubbish)


def form(visit: Visit) -> Response:
    return visit.page("gc.html", GcView())


def collect(visit: Visit) -> Response:
    """Preview, or do it: the form's ``step`` says which, and nothing but ``run`` deletes."""
    from envdsl.app import collecting

    filled = {name: visit.field(name) for name in ("older-than", "keep-last")}
    numbers = {name: _number(text) for name, text in filled.items()}
    view = GcView(older_than=filled["older-than"], keep_last=filled["keep-last"])
    for name, number in numbers.items():
        if number is None and filled[name]:
            return visit.page("gc.html", GcView(view.older_than, view.keep_last, wrong=name), status=422)
    days = numbers["older-than"]
    collected = collecting.collect(
        visit.plane.project,
        dry_run=visit.field("step") != "run",
        older_than=None if days is None else days * _DAY,
        keep_last=numbers["keep-last"] or 0,
    )
    return visit.page("gc.html", GcView(view.older_than, view.keep_last, collected=collected))


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and int(text) <= _MOST else None

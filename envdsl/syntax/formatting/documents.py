"""Documents: what a text could look like, before it is known how wide it becomes.

In the manner of Wadler's "A prettier printer" (2003): a group goes on one line if it fits, else its line breaks are
breaks. Two things are added. A group that the author wrote over several lines stays so (``expanded``); and a
:class:`Hug` lets a last set, list or string begin on the line of what stands before it. Each document knows its measure
when it is made, so nothing here recurses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from envdsl.syntax.formatting.trivia import Remark


@dataclass(frozen=True, slots=True)
class Measure:
    """What is known about a document beforehand.

    ``width`` is that of the document on one line, None where it cannot be on one. ``expanded``: something in it is to
    stay on several lines. ``starts_line`` and ``ends_line``: comments stand before it, or end its line, which allows
    it to be on one line itself, but nothing around it.
    """

    width: int | None
    expanded: bool = False
    starts_line: bool = False
    ends_line: bool = False


def _sum(parts: Sequence[Doc]) -> Measure:
    width: int | None = 0
    expanded = False
    last = len(parts) - 1
    for index, part in enumerate(parts):
        measure = part.measure
        expanded = expanded or measure.expanded
        breaks = (measure.starts_line and index > 0) or (measure.ends_line and index < last)
        width = None if width is None or measure.width is None or breaks else width + measure.width
    return Measure(
        width,
        expanded,
        bool(parts) and parts[0].measure.starts_line,
        bool(parts) and parts[-1].measure.ends_line,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Text without a place to break, with the comments that hang on it.

    ``clings``: it goes before comments that end the line of what precedes it. ``content``: it is inside a string.
    """

    text: str
    leading: tuple[Remark, ...] = ()
    trailing: tuple[Remark, ...] = ()
    blank: bool = False  # an empty line between the comments and the text
    clings: bool = False
    content: bool = False
    start: int = -1  # its place in the source
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        inline = [remark for remark in self.leading if not remark.own]
        many_lines = "\n" in self.text or any("\n" in remark.text for remark in inline)
        width = None if many_lines else len(self.text) + sum(len(remark.text) + 1 for remark in inline)
        measure = Measure(width, False, len(inline) < len(self.leading), bool(self.trailing))
        object.__setattr__(self, "measure", measure)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A break, or ``flat`` where the group is on one line. ``blank``: an empty line with it."""

    flat: str = " "
    blank: bool = False
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", Measure(len(self.flat)))


@dataclass(frozen=True, slots=True, eq=False)
class ContentLine:
    """A line break that belongs to a string, and the spaces behind it beyond the indentation."""

    spaces: int = 0
    measure: Measure = Measure(None)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    parts: tuple[Doc, ...]
    absorbs: bool = False
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", _sum(self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """Two more spaces before the lines of ``body``."""

    body: Doc
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", self.body.measure)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """On one line if it fits and nothing in it is ``expanded``. ``absorbs``: it may begin at the end of a line."""

    body: Doc
    expanded: bool = False
    absorbs: bool = False
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        inner = self.body.measure
        object.__setattr__(
            self,
            "measure",
            Measure(inner.width, inner.expanded or self.expanded, inner.starts_line, inner.ends_line),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Inline:
    """Code in a string: on one line however long, unless comments or strings forbid it."""

    body: Doc
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        inner = self.body.measure
        object.__setattr__(self, "measure", Measure(inner.width, False, inner.starts_line, inner.ends_line))


@dataclass(frozen=True, slots=True, eq=False)
class IfBroken:
    """``body`` where the group around it is not on one line."""

    body: Text
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", Measure(0, False, False, self.body.measure.ends_line))


@dataclass(frozen=True, slots=True, eq=False)
class Hug:
    """``head`` and the beginning of ``tail`` on one line; where ``head`` does not allow that, ``otherwise``."""

    head: Doc
    tail: Doc
    otherwise: Doc
    measure: Measure = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "measure", _sum((self.head, self.tail)))


Doc: TypeAlias = Text | Line | ContentLine | Joined | Nest | Group | Inline | IfBroken | Hug


def sequence(*parts: Doc | str, absorbs: bool = False) -> Joined:
    return Joined(tuple(Text(part) if isinstance(part, str) else part for part in parts), absorbs)


def absorbs(doc: Doc) -> bool:
    """Whether ``doc`` may begin at the end of a line and go on below: ``{ … }``, ``[ … ]``, ``( … )``, ``''…''``."""
    return isinstance(doc, (Group, Joined)) and doc.absorbs


def hugging(head: Doc, value: Doc, otherwise: Doc) -> Doc | None:
    """``head`` with the beginning of ``value`` on its line; None where ``value`` has no such form."""
    if absorbs(value):
        return Hug(head, value, otherwise)
    if isinstance(value, Hug):
        return Hug(sequence(head, value.head), value.tail, otherwise)
    return None


def first_text(doc: Doc) -> Text:
    """The text that ``doc`` begins with. Every document begins with one, or with a line break before one."""
    while not isinstance(doc, Text):
        match doc:
            case Joined(parts=parts):
                doc = next(part for part in parts if not isinstance(part, (Line, ContentLine)))
            case Nest(body=body) | Group(body=body) | Inline(body=body) | IfBroken(body=body):
                doc = body
            case Hug(head=head):
                doc = head
            case _:
                raise AssertionError(doc)
    return doc


def start_of(doc: Doc) -> int:
    """The place in the source of the first token of ``doc``."""
    return first_text(doc).start

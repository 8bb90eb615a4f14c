"""Documents to lines."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from envdsl.syntax.formatting.documents import (
    ContentLine,
    Doc,
    Group,
    Hug,
    IfBroken,
    Inline,
    Joined,
    Line,
    Nest,
    Text,
)
from envdsl.syntax.formatting.trivia import Remark

WIDTH = 100
"""Characters that a line should not exceed."""

INDENT = 2


class Mode(Enum):
    FLAT = "flat"
    BROKEN = "broken"
    INLINE = "inline"  # broken where it cannot be flat, whatever the width


class Page:
    """Lines as they are written. Indentation is written when something follows it, so no line ends in spaces."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._line = ""
        self._indent = 0
        self._space = ""  # written once something follows in the line
        self._trailing: list[Remark] = []
        self._must_break = False

    @property
    def column(self) -> int:
        return len(self._line) + len(self._space) if self._line else self._indent

    def text(self) -> str:
        self._flush()
        return "".join(self._pieces) + (self._line + "\n" if self._line else "")

    def write(self, text: str, indent: int, *, clings: bool = False, content: bool = False) -> None:
        """Write ``text``; spaces at its end are left out before a line break, unless it is ``content`` of a string."""
        if not clings and text.strip(" "):
            self._flush()
            if self._must_break:
                self.newline(indent)
        space = "" if content else text[len(text.rstrip(" ")) :]
        text = text[: len(text) - len(space)]
        if text:
            self._line = (self._line + self._space if self._line else " " * self._indent) + text
            self._space = ""
        self._space = space if text else (space or self._space)
        *lines, self._line = self._line.split("\n")
        if lines:
            self._indent = 0  # what follows in the string stands where it stood
        self._pieces.extend(line + "\n" for line in lines)

    def newline(self, indent: int, *, blank: bool = False) -> None:
        """Begin a line, unless nothing stands on this one."""
        self._flush()
        self._must_break = False
        self._indent = indent
        self._space = ""
        if self._line:
            self._pieces.append(self._line + "\n")
            self._line = ""
        if blank and self._pieces and self._pieces[-1] != "\n":
            self._pieces.append("\n")

    def content_line(self, indent: int, spaces: int) -> None:
        """A line break inside a string: nothing is taken away and nothing added but the indentation."""
        self._pieces.append(self._line + "\n")
        self._line = ""
        self._indent = indent + spaces
        if spaces:
            self._line = " " * self._indent

    def trail(self, remarks: tuple[Remark, ...]) -> None:
        self._trailing += remarks

    def lead(self, remark: Remark, indent: int, *, blank: bool) -> None:
        if not remark.own:
            self._flush()
            if self._must_break:
                self.newline(indent)
            if self._line:
                self._space = " "
            self.write(_shifted(remark, self.column), indent)
            self.write(" ", indent)
            return
        self.newline(indent, blank=blank)
        self.write(_shifted(remark, indent), indent)
        self._must_break = True

    def _flush(self) -> None:
        remarks, self._trailing = self._trailing, []
        for remark in remarks:
            self._space = ""
            line = self._line + " " if self._line else " " * self._indent
            *lines, self._line = (line + _shifted(remark, len(line))).split("\n")
            self._pieces.extend(line + "\n" for line in lines)
            self._must_break = True


def _shifted(remark: Remark, column: int) -> str:
    """The comment at ``column``: the lines of a block keep their places to each other."""
    first, *rest = remark.text.split("\n")
    lines = [first]
    for line in rest:
        content = line.lstrip(" ")
        spaces = max(0, len(line) - len(content) + column - remark.column)
        lines.append(" " * spaces + content if content else "")
    return "\n".join(lines)


def render(document: Doc) -> str:
    """The text of ``document``, with a line break at its end unless it is empty."""
    page = Page()
    stack: list[tuple[int, Mode, Doc]] = [(0, Mode.BROKEN, document)]
    while stack:
        indent, mode, doc = stack.pop()
        match doc:
            case Text():
                _text(page, doc, indent)
            case Line():
                if mode is Mode.FLAT:
                    page.write(doc.flat, indent)
                else:
                    page.newline(indent, blank=doc.blank)
            case ContentLine():
                page.content_line(indent, doc.spaces)
            case Joined():
                stack.extend((indent, mode, part) for part in reversed(doc.parts))
            case Nest():
                stack.append((indent + INDENT, mode, doc.body))
            case IfBroken():
                if mode is not Mode.FLAT:
                    _text(page, doc.body, indent)
            case Inline():
                stack.append((indent, Mode.INLINE, Group(doc.body)))
            case Group():
                stack.append((indent, _mode(page, doc, mode, stack), doc.body))
            case Hug():
                inner = _mode(page, doc, mode, stack)
                if inner is Mode.FLAT:
                    stack += ((indent, inner, doc.tail), (indent, inner, doc.head))
                elif _head_fits(page, doc, mode):
                    stack += ((indent, mode, doc.tail), (indent, Mode.FLAT, doc.head))
                else:
                    stack.append((indent, inner, doc.otherwise))
    return page.text()


def _text(page: Page, doc: Text, indent: int) -> None:
    for number, remark in enumerate(doc.leading):
        page.lead(remark, indent, blank=remark.blank and number > 0)
    if doc.blank and doc.leading:
        page.newline(indent, blank=True)
    page.write(doc.text, indent, clings=doc.clings, content=doc.content)
    page.trail(doc.trailing)


def _mode(page: Page, doc: Group | Hug, mode: Mode, rest: list[tuple[int, Mode, Doc]]) -> Mode:
    """How a group is set whose surroundings are set in ``mode``."""
    measure = doc.measure
    if mode is Mode.FLAT:
        return mode
    if mode is Mode.INLINE:
        return mode if measure.width is None else Mode.FLAT
    if measure.width is None or measure.expanded:
        return Mode.BROKEN
    ahead = 0 if measure.ends_line else _to_next_break(rest)
    return Mode.FLAT if page.column + measure.width + ahead <= WIDTH else Mode.BROKEN


def _head_fits(page: Page, doc: Hug, mode: Mode) -> bool:
    head = doc.head.measure
    if head.width is None or head.ends_line or doc.tail.measure.starts_line:
        return False
    return mode is Mode.INLINE or (not head.expanded and page.column + head.width + 1 <= WIDTH)


def _to_next_break(rest: list[tuple[int, Mode, Doc]]) -> int:
    """The width of what follows on the same line whatever is decided now."""
    width = 0
    for part, broken in _following(rest):
        if isinstance(part, Line) and broken:
            break
        match part:
            case Line():
                width += len(part.flat)
            case Text():
                if part.measure.starts_line:
                    break
                width += len(part.text.partition("\n")[0])
                if part.measure.width is None or part.measure.ends_line:
                    break
            case _:
                break
        if width > WIDTH:
            break
    return width


def _following(rest: list[tuple[int, Mode, Doc]]) -> Iterator[tuple[Doc, bool]]:
    """The leaves of what is still to be set, each with whether it is in a broken group."""
    waiting = len(rest)
    stack: list[tuple[bool, Doc]] = []
    while stack or waiting:
        if stack:
            broken, doc = stack.pop()
        else:
            waiting -= 1
            _, mode, doc = rest[waiting]
            broken = mode is not Mode.FLAT
        match doc:
            case Joined():
                stack.extend((broken, part) for part in reversed(doc.parts))
            case Nest() | Inline():
                stack.append((broken, doc.body))
            case Group():
                stack.append((doc.measure.width is None or doc.measure.expanded, doc.body))
            case Hug():
                stack += ((broken, doc.tail), (False, doc.head))
            case IfBroken():
                if broken:
                    yield doc.body, broken
            case _:
                yield doc, broken

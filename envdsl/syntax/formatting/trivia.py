"""What stands between tokens: comments and blank lines, and which token they belong to.

A comment that ends the line of a token trails it; all others lead the token that follows. A comment before a ``;`` or
``,`` is taken as one behind it, since these two never begin a line. All of it is found from the places of the comments
alone: between two of them and next to them stand white space and whole tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from envdsl.syntax.tree import Comment

_LINE_END = re.compile(r"\r\n?|\n")
_WHITE = " \t\r\n"
_SPACE = re.compile(r"[ \t\r\n]*")
_CLINGING = ";,"


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment to be written.

    ``column`` is where it began in the source, so that the lines of a block can keep their places to each other.
    ``own`` says that the next thing starts a new line, ``blank`` that an empty line stood before it.
    """

    text: str
    column: int
    own: bool = True
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Trivia:
    """Comments by the start of the token they lead, and by the end of the one they trail."""

    text: str
    leading: dict[int, tuple[Remark, ...]] = field(default_factory=dict)
    trailing: dict[int, tuple[Remark, ...]] = field(default_factory=dict)
    _first: dict[int, int] = field(default_factory=dict)  # start of a token -> start of its first comment

    @classmethod
    def of(cls, text: str, comments: Iterable[Comment]) -> Trivia:
        """Hang ``comments``, in the order of the text, on its tokens."""
        trivia = cls(text)
        gap: list[Comment] = []
        for comment in comments:
            if gap and text[gap[-1].span.end : comment.span.start].strip() not in ("", *_CLINGING):
                trivia._add(gap)
                gap = []
            gap.append(comment)
        if gap:
            trivia._add(gap)
        return trivia

    def starts_line_after(self, end: int) -> bool:
        """Whether what follows the place ``end`` stands in a later line."""
        match = _SPACE.match(self.text, end)
        return match is not None and _LINE_END.search(match[0]) is not None

    def blank_before(self, start: int) -> bool:
        """Whether an empty line stands before the token at ``start``, and the comments that lead it."""
        return self._blank(self._first.get(start, start))

    def blank_directly_before(self, start: int) -> bool:
        """The same without looking beyond comments."""
        return self._blank(start)

    def _blank(self, place: int) -> bool:
        begin = self._end_before(place)
        return len(_LINE_END.findall(self.text, begin, place)) > 1

    def _add(self, gap: list[Comment]) -> None:
        text = self.text
        before = self._end_before(gap[0].span.start)
        anchor = before
        for comment in gap:
            following = self._skip(comment.span.end)
            if text.startswith(tuple(_CLINGING), following):
                anchor = following + 1
        after = self._skip(max(gap[-1].span.end, anchor))
        on_line = self._on_line(gap, before, after) if before else 0
        if on_line:
            self.trailing[anchor] = tuple(self._remark(comment) for comment in gap[:on_line])
        rest = gap[on_line:]
        if rest:
            ends = [*(comment.span.start for comment in rest[1:]), after]
            self.leading[after] = tuple(
                self._remark(
                    comment,
                    own=_LINE_END.search(text, comment.span.end, end) is not None or end == len(text),
                    blank=self._blank(comment.span.start),
                )
                for comment, end in zip(rest, ends, strict=True)
            )
            self._first[after] = rest[0].span.start

    def _on_line(self, gap: list[Comment], before: int, after: int) -> int:
        """How many comments of ``gap`` stand in the line of the token before it, and end that line."""
        position = before
        for number, comment in enumerate(gap):
            if _LINE_END.search(self.text, position, comment.span.start):
                return number
            position = comment.span.end
        rest = self.text[position:after]
        ends_line = after == len(self.text) or rest.strip() or _LINE_END.search(rest)
        return len(gap) if ends_line else 0

    def _end_before(self, place: int) -> int:
        """Where the white space before ``place`` begins."""
        while place and self.text[place - 1] in _WHITE:
            place -= 1
        return place

    def _skip(self, position: int) -> int:
        match = _SPACE.match(self.text, position)
        return match.end() if match else position

    def _remark(self, comment: Comment, *, own: bool = True, blank: bool = False) -> Remark:
        start = comment.span.start
        line = self.text.rfind("\n", 0, start) + 1
        line = max(line, self.text.rfind("\r", line, start) + 1)
        lines = [line.rstrip() for line in _LINE_END.split(comment.text)]
        return Remark("\n".join(lines), start - line, own, blank)

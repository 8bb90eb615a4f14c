"""Strings as they were written: line ends become LF, and the lines of ``''…''`` move with the code around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from envdsl.syntax import strings
from envdsl.syntax.formatting.documents import ContentLine, Doc, Inline, Joined, Nest, Text
from envdsl.syntax.strings import Interpolated, Piece

# A line break that is escaped is kept to the letter: `\` before CR LF means something else than before LF.
_LINE_END = re.compile(r"(\\[\s\S])|\r\n?")
_PLAIN_LINE_END = re.compile(r"\r\n?")

Part: TypeAlias = tuple[str, str] | Doc
"""The kind and text of a token inside a string, or the document of ``${…}``."""


def quoted(opening: Text, parts: Sequence[Part], closing: Text) -> Doc:
    """``"…"`` with ``parts`` inside."""
    docs: list[Doc] = [opening]
    for part in parts:
        if isinstance(part, tuple):
            docs.append(_content(_LINE_END.sub(lambda match: match[1] or "\n", part[1])))
        else:
            docs.append(part)
    docs.append(closing)
    return Joined(tuple(docs), absorbs=any("\n" in doc.text for doc in docs if isinstance(doc, Text)))


def interpolation(opening: Text, body: Doc, closing: Text) -> Doc:
    return Joined((opening, Inline(body), closing))


def indented(opening: Text, parts: Sequence[Part], closing: Text) -> Doc:
    """``''…''`` with ``parts`` inside.

    Where the text begins below the opening quotes, its lines are indented by two spaces more than the line of the
    quotes. A text that begins on the line of the quotes, or that has an escaped line break, is left as it is.
    """
    pieces = [_piece(part) for part in parts]
    shift = strings.common_indent(pieces)
    escaped_break = any(isinstance(piece, Piece) and piece.is_escape and "\n" in piece.text for piece in pieces)
    if not opening.text.endswith("\n") or escaped_break or shift is None:
        return _verbatim(opening, parts, closing)
    quotes = replace(opening, text="''")
    lines, closing_alone = _lines(parts, shift)
    body = Nest(Joined(tuple(lines)))
    end = (ContentLine(), closing) if closing_alone else (closing,)
    return Joined((quotes, body, *end), absorbs=True)


def _content(text: str) -> Text:
    return Text(text, content=True)


def _piece(part: Part) -> Piece | Interpolated[Doc]:
    if not isinstance(part, tuple):
        return Interpolated(part)
    kind, text = part
    return strings.text_piece(text) if kind == "INDENTED_TEXT" else strings.escape_piece(text)


def _verbatim(opening: Text, parts: Sequence[Part], closing: Text) -> Doc:
    begin = replace(opening, text=_PLAIN_LINE_END.sub("\n", opening.text), content=True)
    docs: list[Doc] = [begin]
    for part in parts:
        if not isinstance(part, tuple):
            docs.append(part)
            continue
        kind, text = part
        docs.append(_content(_PLAIN_LINE_END.sub("\n", text) if kind == "INDENTED_TEXT" else text))
    docs.append(closing)
    return Joined(tuple(docs), absorbs=any("\n" in doc.text for doc in docs if isinstance(doc, Text)))


def _lines(parts: Sequence[Part], indent: int) -> tuple[list[Doc], bool]:
    """The documents of the lines without ``indent`` spaces at each start, and whether the last one is empty."""
    docs: list[Doc] = []
    spaces: int | None = 0  # at the start of a line: those seen in it so far
    for part in parts:
        if not isinstance(part, tuple) or part[0] != "INDENTED_TEXT":
            if spaces is not None:
                docs.append(ContentLine(max(0, spaces - indent)))
                spaces = None
            docs.append(part if not isinstance(part, tuple) else _content(part[1]))
            continue
        for number, line in enumerate(_PLAIN_LINE_END.sub("\n", part[1]).split("\n")):
            if number:
                if spaces is not None:
                    docs.append(ContentLine(max(0, spaces - indent)))
                spaces = 0
            content = line
            if spaces is not None:
                content = line.lstrip(" ")
                spaces += len(line) - len(content)
            if content:
                if spaces is not None:
                    docs.append(ContentLine(max(0, spaces - indent)))
                    spaces = None
                docs.append(_content(content))
    return docs, spaces is not None

"""The text of string literals: escapes, and the indentation of ``''…''`` strings.

Nix's rules to the letter (``libexpr/lexer.l`` and ``stripIndentation`` in ``libexpr/parser-state.hh``), but for
line ends: CR LF and CR count as LF in both kinds of string, in Nix only in ``"…"``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

_ESCAPE = re.compile(r"\\(.)|\r\n?", re.DOTALL)
_LINE_END = re.compile(r"\r\n?")
_SPECIAL = {"n": "\n", "r": "\r", "t": "\t"}

Part = TypeVar("Part")


def _unescaped(match: re.Match[str]) -> str:
    character = match[1]
    return "\n" if character is None else _SPECIAL.get(character, character)


def unescape(text: str) -> str:
    r"""The meaning of text between ``"``: ``\n``, ``\r``, ``\t``; any other escaped character is itself."""
    return _ESCAPE.sub(_unescaped, text)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of an indented string; the spaces of an escape are never indentation."""

    text: str
    is_escape: bool


def text_piece(text: str) -> Piece:
    return Piece(_LINE_END.sub("\n", text) if "\r" in text else text, is_escape=False)


def escape_piece(text: str) -> Piece:
    r"""The meaning of ``'''``, ``''$``, ``''\x``, or a lone ``'`` or ``$``."""
    if text.startswith("''\\"):
        return Piece(_SPECIAL.get(text[3], text[3]), is_escape=True)
    return Piece({"'''": "''", "''$": "$"}.get(text, text), is_escape=True)


@dataclass(frozen=True, slots=True)
class Interpolated(Generic[Part]):
    """A ``${}`` in an indented string, to be handed through."""

    value: Part


def strip_indentation(parts: list[Piece | Interpolated[Part]]) -> tuple[str | Part, ...]:
    """The parts of a string without the indentation that all its lines share.

    A line of spaces alone does not count towards that indentation, and if it is the last one, with the closing
    quotes on it, it is dropped. Tabs are no indentation. Adjacent texts are joined, empty ones left out.
    """
    common = common_indent(parts)
    indent = sys.maxsize if common is None else common
    result: list[str | Part] = []
    texts: list[str] = []
    at_line_start, dropped = True, 0
    for index, part in enumerate(parts):
        if isinstance(part, Interpolated):
            if text := "".join(texts):
                result.append(text)
            texts = []
            result.append(part.value)
            at_line_start, dropped = False, 0
            continue
        kept, at_line_start, dropped = _strip(part.text, indent, at_line_start, dropped)
        if index == len(parts) - 1:
            last = kept.rfind("\n")
            if last >= 0 and not kept[last + 1 :].strip(" "):
                kept = kept[: last + 1]
        texts.append(kept)
    if text := "".join(texts):
        result.append(text)
    return tuple(result)


def common_indent(parts: Iterable[Piece | Interpolated[Part]]) -> int | None:
    """The spaces that all lines begin with; None where no line has anything but spaces."""
    smallest: int | None = None
    at_line_start, current = True, 0
    for part in parts:
        if isinstance(part, Interpolated) or part.is_escape:
            if at_line_start:
                smallest = current if smallest is None else min(smallest, current)
            at_line_start = False
            continue
        first, *rest = part.text.split("\n")
        for number, line in enumerate((first, *rest)):
            if number:
                at_line_start, current = True, 0
            if not at_line_start:
                continue
            content = line.lstrip(" ")
            current += len(line) - len(content)
            if content:
                at_line_start = False
                smallest = current if smallest is None else min(smallest, current)
    return smallest


def _strip(text: str, indent: int, at_line_start: bool, dropped: int) -> tuple[str, bool, int]:
    """``text`` without up to ``indent`` spaces at each line start; and the state to go on with."""
    kept: list[str] = []
    first, *rest = text.split("\n")
    for number, line in enumerate((first, *rest)):
        if number:
            kept.append("\n")
            at_line_start, dropped = True, 0
        if not at_line_start:
            kept.append(line)
            continue
        content = line.lstrip(" ")
        spaces = len(line) - len(content)
        kept.append(" " * max(0, dropped + spaces - max(indent, dropped)))
        kept.append(content)
        dropped += spaces
        if content:
            at_line_start, dropped = False, 0
    return "".join(kept), at_line_start, dropped

"""Character offsets to positions of the protocol, and back.

A position counts lines and, in a line, code units of the encoding that both sides agreed on: UTF-16 unless the client
offers another. A line ends with LF, CR LF or CR, and with nothing else that Python's ``splitlines`` knows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from lsprotocol import types

_LINE_END = re.compile(r"\r\n?|\n")
_BYTES = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


class Positions:
    """The positions of one text; ``encoding`` is ``utf-8``, ``utf-16`` or ``utf-32``."""

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self._text = text
        self._codec, self._unit = _BYTES[encoding]

    @cached_property
    def _lines(self) -> list[int]:
        """The offsets where lines begin."""
        return [0, *(match.end() for match in _LINE_END.finditer(self._text))]

    def position(self, offset: int) -> types.Position:
        """The position of a character offset."""
        line = bisect_right(self._lines, offset) - 1
        return types.Position(line, self._units(self._text[self._lines[line] : offset]))

    def offset(self, position: types.Position) -> int:
        """The offset of a position; one behind the end of a line or of the text stands for that end."""
        if position.line >= len(self._lines):
            return len(self._text)
        start = self._lines[position.line]
        end = self._lines[position.line + 1] if position.line + 1 < len(self._lines) else len(self._text)
        line = self._text[start:end].rstrip("\r\n")
        if line.isascii():
            return start + min(position.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= position.character:
                return start + index
            units += self._units(character)
        return start + len(line)

    def range(self, start: int, end: int) -> types.Range:
        return types.Range(self.position(start), self.position(end))

    def _units(self, text: str) -> int:
        return len(text) if text.isascii() else len(text.encode(self._codec, errors="surrogatepass")) // self._unit

"""Where each key and value of a TOML document stands.

``tomllib`` gives values without places. Once it has accepted a text, finding the places takes no second
parser but a walk over the tokens: headers, keys, and where each value ends. What a path means is TOML's own
(https://toml.io/en/v1.0.0): ``("session", 0, "limits")`` is the table ``limits`` of the first ``[[session]]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
Range: TypeAlias = tuple[int, int]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^,\]}#\n\r]+")


@dataclass(slots=True)
class Places:
    """``keys`` and ``values`` by path, as half-open ranges of offsets. A table has the place of its header or braces,
    or of the key that first names it."""

    keys: dict[Path, Range] = field(default_factory=dict)
    values: dict[Path, Range] = field(default_factory=dict)

    def of_key(self, path: Path) -> Range:
        """Where the last key of ``path`` stands; for an item of an array, the item."""
        return self.keys.get(path) or self.of_value(path)

    def of_value(self, path: Path) -> Range:
        """Where the value stands, or the nearest thing around it that has a place."""
        while path not in self.values:
            if not path:
                return 0, 0
            path = path[:-1]
        return self.values[path]


def find_places(text: str) -> Places:
    """The places in ``text``, which ``tomllib`` must have accepted."""
    return _Walk(text).places


class _Walk:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.places = Places()
        self._lengths: dict[Path, int] = {}  # of arrays of tables
        table: Path = ()
        self._skip()
        while self._at < len(text):
            table = self._header() if text[self._at] == "[" else self._pair(table)
            self._skip()

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _header(self) -> Path:
        start, array = self._at, self._text.startswith("[[", self._at)
        self._at += 2 if array else 1
        self._skip()
        keys = self._keys()
        self._at = self._text.index("]", self._at) + (2 if array else 1)
        path: Path = ()
        for number, (key, place) in enumerate(keys):
            path = (*path, key)
            self.places.keys.setdefault(path, place)
            if array and number == len(keys) - 1:
                self._lengths[path] = self._lengths.get(path, -1) + 1
            if path in self._lengths:
                path = (*path, self._lengths[path])
            self.places.values.setdefault(path, (start, self._at))
        return path

    def _pair(self, table: Path) -> Path:
        """``key = value`` in ``table``, which stays the current one."""
        path = table
        for key, place in self._keys():
            path = (*path, key)
            self.places.keys.setdefault(path, place)
            self.places.values.setdefault(path, place)
        self._at += 1  # the equals sign
        self._skip()
        self._value(path)
        return table

    def _keys(self) -> list[tuple[str, Range]]:
        """A dotted key; ends before what follows it (``=`` or ``]``)."""
        keys = []
        while True:
            start = self._at
            match = _BARE.match(self._text, start) or _STRING.match(self._text, start)
            assert match is not None
            self._at = match.end()
            keys.append((_key(match[0]), (start, self._at)))
            self._skip()
            if self._text[self._at] != ".":
                return keys
            self._at += 1
            self._skip()

    def _value(self, path: Path) -> None:
        start = self._at
        match self._text[start]:
            case "[":
                self._items(path)
            case "{":
                self._inline(path)
            case '"' | "'":
                string = _STRING.match(self._text, start)
                assert string is not None
                self._at = string.end()
            case _:
                scalar = _SCALAR.match(self._text, start)
                assert scalar is not None
                self._at = start + len(scalar[0].rstrip())
        self.places.values[path] = start, self._at

    def _items(self, path: Path) -> None:
        self._at += 1
        number = 0
        self._skip()
        while self._text[self._at] != "]":
            self._value((*path, number))
            number += 1
            self._comma()
        self._at += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        self._skip()
        while self._text[self._at] != "}":
            self._pair(path)
            self._comma()
        self._at += 1

    def _comma(self) -> None:
        self._skip()
        if self._text[self._at] == ",":
            self._at += 1
            self._skip()


def _key(text: str) -> str:
    if text[0] not in "\"'":
        return text
    import tomllib

    (key,) = tomllib.loads(f"{text} = 0")
    return key

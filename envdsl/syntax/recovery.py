"""Where to go on after a syntax error.

The automaton is taken back to the innermost list whose items end by themselves: the bindings of a layer, else the
declarations of a file or of a ``for``. Then the text is skimmed, by brackets and strings alone, for the end of the
item that went wrong.

A bracket or a quote that is never closed would swallow the rest of the file. But by custom declarations stand at the
beginning of a line, so a line that looks like the head of one ends whatever is open before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from envdsl.syntax.automaton import Automaton, Token

HEAD = re.compile(
    r"""^(?:(?:base|iso)[ \t]+(?:[\w'-]+|"[^"\n]*")[ \t]*(?:\{|$)"""
    r"""|x[ \t]+(?:[\w'-]+|"[^"\n]*")[ \t]*(?:on[ \t]|\{)"""
    r"""|import[ \t]+"[^"\n]*\""""
    r"""|for[ \t]*\([ \t]*[\w'-]+[ \t]+in[ \t]"""
    r"""|let[ \t]+[\w'-]+[ \t]*=)""",
    re.MULTILINE,
)

_NAME = r"""(?:[\w'-]+|"[^"\n]*"|\$\{[^}\n]*\})"""
_NAME_BEFORE_ASSIGN = re.compile(rf"{_NAME}(?:\s*\.\s*{_NAME})*\s*\Z")
_VALUE_FOLLOWS = re.compile(r"(?:[=:]|\b(?:in|then|else))\s*\Z")

_SKIM_LIMIT = 5_000
"""Pieces to skim after one error before only a line that looks like a head is looked for."""

_CODE = re.compile(
    r"""#[^\r\n]*|/\*[\s\S]*?(?:\*/|\Z)|"|''|\$\{|[][(){};]|[a-zA-Z_][a-zA-Z0-9_'-]*|[^]["'#/$(){};a-zA-Z_]+|[\s\S]"""
)
_IN_STRING = re.compile(r"""\\[\s\S]|\$\$|"|\$\{|[^"\\$]+|[\s\S]""")
_IN_INDENTED = re.compile(r"""'''|''\$|''\\[\s\S]|\$\$|''|\$\{|[^'$]+|[\s\S]""")
_STRINGS = {'"': _IN_STRING, "''": _IN_INDENTED}

_OPENING = {piece: piece for piece in ('"', "''", "(", "[", "{", "let", "assert")} | {"with": "assert"}
_CLOSERS = {")": "(", "]": "[", "}": "{"}
_OPENING_TOKENS = {
    "OPEN_PAREN": "(",
    "OPEN_BRACKET": "[",
    "OPEN_BRACE": "{",
    "INTERPOLATION": "{",
    "QUOTE": '"',
    "OPEN_INDENTED": "''",
    "LET": "let",
    "ASSERT": "assert",
    "WITH": "assert",
}
_CLOSING_TOKENS = {
    "CLOSE_PAREN": "(",
    "CLOSE_BRACKET": "[",
    "CLOSE_BRACE": "{",
    "CLOSE_INDENTED": "''",
    "QUOTE": '"',
    "IN": "let",
    "SEMICOLON": "assert",
}


def open_constructs(values: Sequence[Any]) -> list[Token]:
    """The tokens among stacked values that wait for their counterpart: brackets, quotes, ``let``, ``assert``."""
    waiting: list[Token] = []
    for value in values:
        if type(value) is not Token:
            continue
        if waiting and _OPENING_TOKENS[waiting[-1].kind] == _CLOSING_TOKENS.get(value.kind):
            waiting.pop()
        elif value.kind in _OPENING_TOKENS:
            waiting.append(value)
    return waiting


class Piece(NamedTuple):
    """What :func:`skim` has come to, and what was open before it (innermost last; only valid until the next piece)."""

    text: str
    start: int
    end: int
    open: list[str]


def skim(text: str, position: int, waiting: Sequence[str] = ()) -> Iterator[Piece]:
    """The pieces of ``text`` from ``position`` on, where ``waiting`` is open already."""
    stack = list(waiting)
    while position < len(text):
        top = stack[-1] if stack else ""
        match = _STRINGS.get(top, _CODE).match(text, position)
        assert match is not None  # each pattern takes any character
        piece = match[0]
        yield Piece(piece, position, match.end(), stack)
        position = match.end()
        if piece == "${":
            stack.append("{")
        elif top in _STRINGS:
            if piece == top:
                stack.pop()
        elif piece in _OPENING:
            stack.append(_OPENING[piece])
        elif piece in _CLOSERS:
            _close(stack, _CLOSERS[piece])
        elif (piece, top) in (("in", "let"), (";", "assert")):
            stack.pop()


def _close(stack: list[str], opener: str) -> None:
    """A closing bracket closes what it matches and all that was left open within; a stray one closes nothing."""
    for reach in reversed(range(len(stack))):
        if stack[reach] == opener:
            del stack[reach:]
            return
        if stack[reach] in _STRINGS or stack[reach] == "{":
            return


def next_head(text: str, start: int, end: int) -> int | None:
    """The first line between two places that looks like the head of a declaration.

    Not within a comment, nor in an indented string that is closed before ``end``: they may hold anything.
    """
    if _head(text, start, end) is None:
        return None
    opened = 0
    for piece in islice(skim(text, start), _SKIM_LIMIT):
        if piece.start >= end:
            break
        if piece.text == "''" and "''" not in piece.open:
            opened = piece.start
            continue
        if piece.text.startswith("/*"):
            opened = piece.start
        elif piece.text != "''" or piece.open[-1] != "''" or piece.open.count("''") > 1:
            continue
        head = _head(text, start, opened)
        if head is not None:
            return head
        start = piece.end
    return _head(text, start, end)


def _head(text: str, start: int, end: int) -> int | None:
    """The first head between two places, ``end`` included; a `let` that is a value is none."""
    for match in HEAD.finditer(text, start):
        if match.start() > end:
            break
        if not (match[0].startswith("let") and _VALUE_FOLLOWS.search(text, max(0, match.start() - 99), match.start())):
            return match.start()
    return None


def next_binding(text: str, start: int, end: int) -> int | None:
    """Where the name before a `=` at ``end`` begins, if a value that began at ``start`` stands before it."""
    name = _NAME_BEFORE_ASSIGN.search(text, max(start, end - 500), end)
    return name.start() if name and text[start : name.start()].strip() else None


def list_goes_on(text: str, position: int) -> bool:
    """Whether the `]` of a list that is open at ``position`` comes before anything that no list holds."""
    for piece in islice(skim(text, position, ["["]), 1_000):
        if piece.open == ["["] and piece.text == "]":
            return True
        if piece.text == "}" or (len(piece.open) == 1 and "=" in piece.text):
            break
    return False


class _Frame(NamedTuple):
    """A list that is being read: how many values it stands on, and whether its items are the bindings of a layer."""

    height: int
    in_layer: bool


def declaration_height(automaton: Automaton) -> int | None:
    """How many values the innermost list of declarations stands on; None where an expression is parsed."""
    rows = automaton.tables.states
    for height in reversed(range(len(automaton.states))):
        if not rows[automaton.states[height]].gotos.keys().isdisjoint(("declaration", "declarations")):
            return height
    return None


def _frame(automaton: Automaton, height: int) -> _Frame:
    """The bindings of a layer above the declarations that stand on ``height`` values, else those declarations."""
    values = automaton.values
    for index in range(height, len(values)):
        kind = values[index].kind if type(values[index]) is Token else ""
        if kind == "OPEN_BRACE":
            state = automaton.states[index + 2] if index + 1 < len(values) else None
            has_bindings = state is not None and "binding" in automaton.tables.states[state].gotos
            return _Frame(index + (2 if has_bindings else 1), True)
        if kind in ("ASSIGN", "OPEN_PAREN"):
            break
    return _Frame(height, False)


def recover(automaton: Automaton, token: Token) -> bool:
    """Set the automaton up to go on behind the item that ``token`` broke; False where nothing is left to read."""
    height = declaration_height(automaton)
    if height is None:
        return False
    frame = _frame(automaton, height)
    text = automaton.text
    head = _head(text, token.start, len(text))
    limit = len(text) if head is None else head
    can_close = "CLOSE_BRACE" in automaton.tables.states[automaton.states[frame.height]].actions
    waiting = [_OPENING_TOKENS[item.kind] for item in open_constructs(automaton.values[frame.height :])]
    position = _missed_binding(automaton, token, waiting) if frame.in_layer else None
    if position is None:
        position = _end_of_item(text, token.start, limit, waiting, frame, can_close)
    if position is None:
        if head is None:
            return False
        frame, position = _Frame(height, False), limit
    automaton.unwind(frame.height)
    automaton.position = position
    return True


def _missed_binding(automaton: Automaton, token: Token, waiting: list[str]) -> int | None:
    """Where the next binding begins, if ``token`` is its `=`: the `;` before it, or a bracket, is missing."""
    if not automaton.text.startswith("=", token.start) or not {"(", "["}.issuperset(waiting):
        return None
    for value in reversed(automaton.values):
        kind = value.kind if type(value) is Token else ""
        if kind in ("IF", "ASSERT"):
            break  # `==` was meant
        if kind == "ASSIGN":
            return next_binding(automaton.text, value.end, token.start)
    return None


def _end_of_item(text: str, start: int, limit: int, waiting: list[str], frame: _Frame, can_close: bool) -> int | None:
    if text.startswith(";", start) and not list_goes_on(text, start + 1):
        while waiting and waiting[-1] == "[":
            waiting.pop()
    for piece in islice(skim(text, start, waiting), _SKIM_LIMIT):
        if piece.start >= limit:
            return None
        if piece.text == ";" and not piece.open:
            return piece.end
        if piece.text != "}":
            continue
        if piece.open == ["{"] and not frame.in_layer:
            return piece.end
        if "{" not in piece.open and _STRINGS.keys().isdisjoint(piece.open):
            return piece.start if can_close else piece.end
    return None

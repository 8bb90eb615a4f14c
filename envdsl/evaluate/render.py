"""Values as text: in Nix notation, and as JSON.

Both writers keep a stack of their own instead of recursing, so that no depth of data can exhaust Python's,
and both count what they write, because a small value can share its parts into an enormous text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.values import (
    Builtin,
    Closure,
    Partial,
    PathValue,
    Slot,
    Thunk,
    Value,
    path_literal,
    quote,
    with_article,
)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_'-]*")
_KEYWORDS = frozenset({"if", "then", "else", "assert", "with", "let", "in", "rec", "inherit", "or"})
_MAX_CHARACTERS = 16 * 1024 * 1024
_MAX_PIECES = 300_000

Force: TypeAlias = Callable[[Slot], Value]


class _Leave:
    """Marks on the stack that a list or set is complete, so that it is an ancestor no longer."""

    __slots__ = ("identity",)

    def __init__(self, identity: int) -> None:
        self.identity = identity


class _Literal(str):
    """Text on the stack that is written as it is."""

    __slots__ = ()


def evaluated(slot: Slot) -> Value:
    """The value of a slot that strict evaluation has left behind."""
    if type(slot) is Thunk:
        if slot.code is not None or slot.frame is not None:
            raise ValueError("this value has not been evaluated")
        return slot.value
    return slot


def render_nix(value: Value) -> str:
    """A strictly evaluated ``value`` as ``nix-instantiate --eval --strict`` prints it.

    Cycles show as ``«repeated»``. Raises EnvdslError (``eval-too-large``) for a text beyond 16 million characters.
    """
    try:
        return write_nix(value, evaluated)
    except EvaluationError as failure:
        raise failure.error() from None


def to_json(value: Value) -> str:
    """A strictly evaluated ``value`` as ``builtins.toJSON`` writes it: compact, names sorted, UTF-8.

    Raises EnvdslError for what has no JSON form: functions (``eval-json``), cycles, texts beyond 16 million characters.
    """
    try:
        return write_json(value, evaluated)
    except EvaluationError as failure:
        raise failure.error() from None


def write_nix(value: Slot, force: Force | None) -> str:
    """:func:`render_nix` inside the room; ``force`` evaluates slots, with None unevaluated ones show as ``<CODE>``."""
    pieces: list[str] = []
    size = 0
    ancestors: set[int] = set()
    stack: list[Slot | _Literal | _Leave] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Leave):
            ancestors.discard(item.identity)
            continue
        if isinstance(item, _Literal):
            piece: str = item
        elif type(item) is Thunk and force is None and item.code is not None:
            piece = "<CODE>"
        else:
            plain = (force or evaluated)(item)
            if isinstance(plain, (list, dict)) and plain:
                if id(plain) in ancestors:
                    piece = "«repeated»"
                else:
                    ancestors.add(id(plain))
                    stack.append(_Leave(id(plain)))
                    stack.append(_Literal(" ]" if isinstance(plain, list) else " }"))
                    if isinstance(plain, list):
                        for element in reversed(plain):
                            stack += [element, _Literal(" ")]
                        piece = "["
                    else:
                        for name in sorted(plain, reverse=True):
                            stack += [_Literal(";"), plain[name], _Literal(f" {_attribute(name)} = ")]
                        piece = "{"
            else:
                piece = _nix_scalar(plain)
        size += len(piece)
        pieces.append(piece)
        if size > _MAX_CHARACTERS or len(pieces) > _MAX_PIECES:
            raise EvaluationError("eval-too-large", "the value is too large to write down")
    return "".join(pieces)


def write_json(value: Slot, force: Force) -> str:
    """:func:`to_json` inside the room. A set with ``outPath`` stands for that, as in Nix."""
    pieces: list[str] = []
    size = 0
    ancestors: set[int] = set()
    stack: list[Slot | _Literal | _Leave] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Leave):
            ancestors.discard(item.identity)
            continue
        if isinstance(item, _Literal):
            piece: str = item
        else:
            plain = force(item)
            if isinstance(plain, dict) and "outPath" in plain:
                stack.append(plain["outPath"])
                continue
            if isinstance(plain, (list, dict)):
                if id(plain) in ancestors:
                    raise EvaluationError("eval-infinite-recursion", "a value that contains itself has no JSON form")
                ancestors.add(id(plain))
                stack.append(_Leave(id(plain)))
                if isinstance(plain, list):
                    stack.append(_Literal("]"))
                    for position in range(len(plain) - 1, -1, -1):
                        stack += [plain[position], _Literal("," if position else "")]
                    piece = "["
                else:
                    stack.append(_Literal("}"))
                    names = sorted(plain)
                    for position in range(len(names) - 1, -1, -1):
                        key = json.dumps(str(names[position]), ensure_ascii=False)
                        stack += [plain[names[position]], _Literal(f"{',' if position else ''}{key}:")]
                    piece = "{"
            else:
                piece = _json_scalar(plain)
        size += len(piece)
        pieces.append(piece)
        if size > _MAX_CHARACTERS or len(pieces) > _MAX_PIECES:
            raise EvaluationError("eval-too-large", "the value is too large to write down")
    return "".join(pieces)


def _attribute(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) and name not in _KEYWORDS else quote(name)


def _nix_scalar(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case None:
            return "null"
        case str():
            return quote(value)
        case PathValue():
            return path_literal(value)
        case Closure():
            return "<LAMBDA>"
        case Builtin():
            return "<PRIMOP>"
        case Partial():
            return "<PRIMOP-APP>"
        case list():
            return "[ ]"
        case dict():
            return "{ }"


def _json_scalar(value: Value) -> str:
    match value:
        case bool() | int() | None:
            return json.dumps(value)
        case str():
            return json.dumps(str(value), ensure_ascii=False)
        case PathValue():
            return json.dumps(value.path, ensure_ascii=False)
        case _:
            raise EvaluationError("eval-json", f"{with_article(value)} has no JSON form")

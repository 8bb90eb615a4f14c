"""Values of the language.

Most are plain Python values: ``int``, ``bool``, ``None``, ``str`` (or :class:`Text`, a string that knows
where it was written), ``list`` for lists and ``dict`` for attribute sets. All are immutable by convention.
What stands inside a list or set, or in a variable, is a *slot*: a value, or a :class:`Thunk` of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

from envdsl.errors import Note
from envdsl.model.span import Span

# A run-time environment: the enclosing frame, then one slot a variable (see scope.py).
Frame: TypeAlias = list[Any]


class Text(str):
    """A string with the span of the expression that it comes from, so that a finding can point there."""

    __slots__ = ("span",)
    span: Span

    @classmethod
    def at(cls, text: str, span: Span) -> Text:
        value = cls(text)
        value.span = span
        return value


@final
class Thunk:
    """An expression that waits to be evaluated, at most once.

    Waiting: ``code`` and ``frame`` are set. Being evaluated: ``code`` is None and ``frame`` is
    :data:`RUNNING`; who meets it then has found an infinite recursion. Done: both are None.
    """

    __slots__ = ("code", "frame", "origin", "value")

    def __init__(self, code: Callable[[Frame], Value], frame: Frame, origin: Note | None = None) -> None:
        self.code: Callable[[Frame], Value] | None = code
        self.frame: Frame | None = frame
        self.origin = origin
        self.value: Value = None


RUNNING: Final[Frame] = []


@dataclass(frozen=True, slots=True)
class PathValue:
    """A file or directory of the project, as a POSIX path relative to its root (``.`` for the root)."""

    path: str


@dataclass(frozen=True, slots=True, eq=False)
class Procedure:
    """The static half of a function: what all closures of one ``x: …`` share.

    ``bind`` makes the body's frame from the enclosing frame and an argument (None for a plain ``x: …``,
    whose frame is just these two). ``formals`` tells for each name of a set pattern whether it has a default.
    """

    body: Callable[[Frame], Value]
    bind: Callable[[Frame, Slot], Frame] | None
    formals: dict[str, bool] | None
    name: str | None


@final
class Closure:
    __slots__ = ("frame", "procedure")

    def __init__(self, procedure: Procedure, frame: Frame) -> None:
        self.procedure = procedure
        self.frame = frame


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """A function of the language that is written in Python: ``function(machine, *slots)``."""

    name: str
    arity: int
    function: Callable[..., Value]


@final
class Partial:
    """A builtin that waits for more arguments."""

    __slots__ = ("arguments", "builtin")

    def __init__(self, builtin: Builtin, arguments: tuple[Slot, ...]) -> None:
        self.builtin = builtin
        self.arguments = arguments


Function: TypeAlias = Closure | Builtin | Partial
Value: TypeAlias = "int | bool | str | PathValue | Function | list[Slot] | dict[str, Slot] | None"
Slot: TypeAlias = "Value | Thunk"

_TYPES: Final[dict[type, tuple[str, str]]] = {
    int: ("int", "an integer"),
    bool: ("bool", "a boolean"),
    type(None): ("null", "null"),
    str: ("string", "a string"),
    Text: ("string", "a string"),
    PathValue: ("path", "a path"),
    list: ("list", "a list"),
    dict: ("set", "a set"),
    Closure: ("lambda", "a function"),
    Builtin: ("lambda", "a function"),
    Partial: ("lambda", "a function"),
}


def type_name(value: Value) -> str:
    """What ``typeOf`` says."""
    return _TYPES[type(value)][0]


def with_article(value: Value) -> str:
    """The type in a sentence: "an integer"."""
    return _TYPES[type(value)][1]


def describe(value: Value) -> str:
    """A value in a message, short: ``the integer 3``, ``the string "ab"``, ``a list``."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return f"the integer {value}"
        case str():
            shown = value if len(value) <= 40 else value[:37] + "…"
            return "the string " + quote(shown)
        case PathValue():
            return f"the path {path_literal(value)}"
        case _:
            return with_article(value)


def quote(text: str) -> str:
    """A string as Nix writes it, ``${`` escaped so that it reads back as itself."""
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("${", "\\${")):
        text = text.replace(plain, escaped)
    return f'"{text}"'


def path_literal(value: PathValue) -> str:
    return "./" + value.path


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint that offers the nearest known name, or None when none is near (or there are too many to try)."""
    known = set(known)
    if len(known) > 1_000 or len(name) > 100:
        return None
    import difflib

    near = difflib.get_close_matches(name, sorted(other for other in known if len(other) <= 100), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None

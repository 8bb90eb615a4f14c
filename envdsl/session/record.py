"""Frozen dataclasses as JSON: encoding, strict decoding, and the JSON Schema that describes both.

One definition serves all three, so that the published schema and the code can't drift apart. The types of
fields decide: ``str``, ``int``, ``bool``, ``X | None``, ``tuple[X, ...]``, ``Literal``, enumerations, other
records, a name of :mod:`envdsl.model.names` (by its spelling), and :data:`Variables` (a JSON object of strings).
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from envdsl.model.names import LayerId, Platform, PythonVersion

Record = TypeVar("Record")
Variables: TypeAlias = tuple[tuple[str, str], ...]

HEX = r"[0-9a-f]{64}"
ABSOLUTE = r"/.*"
_SPELLED: dict[type, str] = {
    LayerId: r"(base|x|iso)-[0-9a-z]{32}",
    Platform: r"(manylinux|musllinux)_[0-9]+_[0-9]+_(x86_64|aarch64)",
    PythonVersion: r"3\.(0|[1-9][0-9]?)",
}


class RecordError(ValueError):
    """JSON that does not describe the record; the message begins with the place (``layers[0].id``)."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a field means, and the form of its strings or the least of its numbers: ``Annotated[str, Described(…)]``."""

    text: str
    pattern: str | None = None
    minimum: int | None = None


def encode(value: Any) -> Any:
    """``value`` as what :mod:`json` writes."""
    if isinstance(value, tuple(_SPELLED)):
        return str(value)
    if is_dataclass(value):
        members = _members(value.__class__)
        return {
            name: dict(getattr(value, name)) if kind == Variables else encode(getattr(value, name))
            for name, (kind, _) in members.items()
        }
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def decode(record: type[Record], value: Any) -> Record:
    """The inverse of :func:`encode`. Raises :class:`RecordError` with every place that is wrong in its message."""
    problems: list[str] = []
    result = _decode(record, value, "", Described(""), problems)
    if problems:
        raise RecordError("; ".join(problems))
    return result  # type: ignore[no-any-return]


def _decode(kind: Any, value: Any, place: str, rules: Described, problems: list[str]) -> Any:
    def wrong(expected: str) -> None:
        problems.append(f"{place or 'the document'}: expected {expected}, found {_name(value)}")

    if kind == Variables:
        if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return tuple(sorted(value.items()))
        return wrong("an object of strings")
    origin = get_origin(kind)
    if origin is types.UnionType:
        inner = next(item for item in get_args(kind) if item is not types.NoneType)
        return None if value is None else _decode(inner, value, place, rules, problems)
    if origin is tuple:
        if not isinstance(value, list):
            return wrong("a list")
        (item_kind, _) = get_args(kind)
        return tuple(_decode(item_kind, item, f"{place}[{n}]", rules, problems) for n, item in enumerate(value))
    if origin is Literal:
        return value if value in get_args(kind) and type(value) is type(get_args(kind)[0]) else wrong(_choices(kind))
    if kind in _SPELLED:
        try:
            return kind.parse(value)
        except (ValueError, TypeError):
            return wrong(f"a {_spaced(kind)}")
    if is_dataclass(kind):
        return _decode_record(kind, value, place, problems) if isinstance(value, dict) else wrong("an object")
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError:
            return wrong("one of " + ", ".join(repr(item.value) for item in kind))
    if type(value) is not kind:
        return wrong({str: "a string", int: "an integer", bool: "true or false"}[kind])
    if rules.pattern is not None and re.fullmatch(rules.pattern, value, re.DOTALL) is None:
        return wrong(f"a string of the form {rules.pattern}")
    if rules.minimum is not None and value < rules.minimum:
        return wrong(f"an integer of {rules.minimum} or more")
    return value


def _decode_record(kind: Any, value: dict[str, Any], place: str, problems: list[str]) -> Any:
    members = _members(kind)
    before = len(problems)
    prefix = f"{place}." if place else ""
    problems += [f"{prefix}{name}: unknown" for name in value if name not in members]
    problems += [f"{prefix}{name}: missing" for name in members if name not in value]
    arguments = {
        name: _decode(member, value[name], prefix + name, rules, problems)
        for name, (member, rules) in members.items()
        if name in value
    }
    if len(problems) > before:
        return None
    try:
        return kind(**arguments)
    except ValueError as error:  # the record's own rules, over several fields
        problems.append(f"{place or 'the document'}: {error}")
        return None


def schema(record: type, *, identifier: str, title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of ``record``; records inside it stand under ``$defs``."""
    inner = {kind.__name__: kind for kind in _inner(record)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": identifier,
        "title": title,
        **_record_schema(record),
        "$defs": {name: _record_schema(inner[name]) for name in sorted(inner)},
    }


def _record_schema(record: Any) -> dict[str, Any]:
    properties = {
        name: {"description": rules.text, **_schema(kind, rules)} for name, (kind, rules) in _members(record).items()
    }
    return {
        "description": " ".join((record.__doc__ or "").split()),
        "type": "object",
        "required": list(properties),
        "additionalProperties": False,
        "properties": properties,
    }


def _schema(kind: Any, rules: Described) -> dict[str, Any]:
    if kind == Variables:
        return {"type": "object", "additionalProperties": {"type": "string"}}
    origin = get_origin(kind)
    if origin is types.UnionType:
        inner = next(item for item in get_args(kind) if item is not types.NoneType)
        return {"anyOf": [_schema(inner, rules), {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _schema(get_args(kind)[0], rules)}
    if origin is Literal:
        choices = get_args(kind)
        return {"const": choices[0]} if len(choices) == 1 else {"enum": list(choices)}
    if kind in _SPELLED:
        return {"type": "string", "pattern": f"^{_SPELLED[kind]}$"}
    if is_dataclass(kind):
        name: str = kind.__name__  # type: ignore[union-attr]
        return {"$ref": f"#/$defs/{name}"}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {"enum": [item.value for item in kind]}
    result: dict[str, Any] = {"type": {str: "string", int: "integer", bool: "boolean"}[kind]}
    if rules.pattern is not None:
        result["pattern"] = f"^{rules.pattern}$"
    if rules.minimum is not None:
        result["minimum"] = rules.minimum
    return result


def _inner(record: Any) -> Iterator[Any]:
    for hint, _ in _members(record).values():
        for kind in (hint, *get_args(hint)):
            if is_dataclass(kind) and kind not in _SPELLED:
                yield kind
                yield from _inner(kind)


@cache
def _members(record: Any) -> dict[str, tuple[Any, Described]]:
    """Field name -> type and rules, in the order of the fields."""
    hints = get_type_hints(record, include_extras=True)
    return {name: get_args(hint) for name, hint in hints.items() if get_origin(hint) is Annotated}


def _name(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _choices(kind: Any) -> str:
    return " or ".join(repr(choice) for choice in get_args(kind))


def _spaced(kind: type) -> str:
    return {LayerId: "layer id", Platform: "platform tag", PythonVersion: "Python feature release"}[kind]

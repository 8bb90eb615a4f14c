"""Proposals and classifications as JSON values: what a database keeps and an API shows.

Keys are the fields' names in kebab-case, enums their values, times ISO 8601 with their offset; a field that a
newer envdsl has added may be missing and has its default then.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """A record of :mod:`envdsl.policy.proposal` (or a part of one) as dicts, lists and scalars."""
    if is_dataclass(value) and not isinstance(value, type):
        return {_key(item.name): to_json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[T], value: Any) -> T:
    """The record of class ``kind`` that :func:`to_json` made ``value`` of.

    Raises ValueError for a value that is none; keys that ``kind`` does not know are passed over.
    """
    try:
        result: T = _decode(kind, value)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error
    return result


def _decode(kind: Any, value: Any) -> Any:
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _decode(next(a for a in get_args(kind) if a is not type(None)), value)
    if get_origin(kind) is tuple:
        return tuple(_decode(get_args(kind)[0], item) for item in value)
    if get_origin(kind) is not None:
        return dict(value)
    if is_dataclass(kind):
        return _record(kind, value)
    if issubclass(kind, datetime):
        return datetime.fromisoformat(value)
    if issubclass(kind, Enum):
        return kind(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _record(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    known = [item for item in fields(kind) if _key(item.name) in value or item.default is MISSING]
    return kind(**{item.name: _decode(hints[item.name], value[_key(item.name)]) for item in known})


@lru_cache(maxsize=32)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _key(name: str) -> str:
    return name.replace("_", "-")

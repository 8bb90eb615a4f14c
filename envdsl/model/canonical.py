"""The canonical form: one byte string for one value.

RFC 8785 in spirit, narrower in fact: objects with sorted string keys, arrays, strings, integers,
booleans and null; no floats, so that no two implementations can disagree; UTF-8 without escapes
beyond what JSON demands.
"""

from __future__ import annotations

import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """The canonical bytes of ``value``.

    Raises TypeError for a float, a non-string key, or anything that JSON has no form for.
    """
    _check(value)
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8")


def _check(value: Any) -> None:
    match value:
        case str() | bool() | int() | None:
            return
        case dict():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise TypeError(f"canonical form has string keys only, not {key!r}")
                _check(item)
        case list() | tuple():
            for item in value:
                _check(item)
        case _:
            raise TypeError(f"no canonical form for {type(value).__name__}")

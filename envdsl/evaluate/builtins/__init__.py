"""All builtins by topic, and the names that every file sees."""

from __future__ import annotations

from typing import Final

from envdsl.evaluate.builtins.control import control, json
from envdsl.evaluate.builtins.lists import lists
from envdsl.evaluate.builtins.numbers import numbers
from envdsl.evaluate.builtins.patterns import patterns
from envdsl.evaluate.builtins.readers import readers
from envdsl.evaluate.builtins.registry import Documentation, Topic
from envdsl.evaluate.builtins.sets import sets
from envdsl.evaluate.builtins.strings import strings
from envdsl.evaluate.builtins.types import types
from envdsl.evaluate.values import Slot, Value

TOPICS: Final[tuple[Topic, ...]] = (lists, sets, strings, patterns, numbers, types, control, json, readers)


def _names() -> dict[str, Value]:
    names: dict[str, Value] = {"true": True, "false": False, "null": None}
    for topic in TOPICS:
        names.update((name, function) for name, (function, _) in topic.functions.items())
    # As in Nix, `builtins` is a set of them all, itself included.
    everything: dict[str, Slot] = {**names}
    everything["builtins"] = everything
    return {**names, "builtins": everything}


#: Each is found by its plain name and below ``builtins``.
GLOBALS: Final = _names()

#: What there is to say about each builtin, by its name.
DOCUMENTATION: Final = {name: text for topic in TOPICS for name, (_, text) in topic.functions.items()}

__all__ = ["DOCUMENTATION", "GLOBALS", "TOPICS", "Documentation", "Topic"]

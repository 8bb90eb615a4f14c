"""Strings from values: what ``${}`` and ``+`` accept, and what ``toString`` accepts besides."""

from __future__ import annotations

from envdsl.evaluate.machine import Machine, coercion
from envdsl.evaluate.values import PathValue, Slot


def interpolated(machine: Machine, slot: Slot) -> str:
    """The string of a value in ``"${…}"``: strings, and sets that say how (``__toString``, ``outPath``)."""
    value = machine.force(slot)
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        special = of_set(machine, value)
        if special is not None:
            return special
    raise coercion(value)


def to_string(machine: Machine, slot: Slot) -> str:
    """``toString``: also integers, booleans (``"1"`` and ``""``), null (``""``), paths, and lists joined by spaces."""
    value = machine.force(slot)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else ""
    if isinstance(value, int):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, PathValue):
        return value.path
    if isinstance(value, list):
        pieces = []
        depth = machine.enter()
        last = len(value) - 1
        for position, element in enumerate(value):
            pieces.append(to_string(machine, element))
            # As in Nix: no space after an empty list.
            if position < last and machine.force(element) != []:
                pieces.append(" ")
        machine.depth = depth
        return machine.sized_string("".join(pieces))
    if isinstance(value, dict):
        special = of_set(machine, value, lenient=True)
        if special is not None:
            return special
    raise coercion(value)


def of_set(machine: Machine, value: dict[str, Slot], *, lenient: bool = False) -> str | None:
    """The string of a set with ``__toString`` or ``outPath``; None when it has neither."""
    if "__toString" in value:
        inner: Slot = machine.call(machine.force(value["__toString"]), value)
    elif "outPath" in value:
        inner = value["outPath"]
    else:
        return None
    depth = machine.enter()
    text = to_string(machine, inner) if lenient else interpolated(machine, inner)
    machine.depth = depth
    return text

"""Equality and order of values."""

from __future__ import annotations

from collections.abc import Iterable

from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.values import Builtin, Closure, Partial, PathValue, Slot, Value, with_article


def equal(machine: Machine, left: Value, right: Value) -> bool:
    """``left == right``. Functions are never equal; values of different types are just not equal."""
    if isinstance(left, str):
        machine.scan(left)
        return isinstance(right, str) and str(left) == str(right)
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        assert isinstance(right, list)
        if len(left) != len(right):
            return False
        return _all_equal(machine, zip(left, right, strict=True))
    if isinstance(left, dict):
        assert isinstance(right, dict)
        if left.keys() != right.keys():
            return False
        return _all_equal(machine, ((left[name], right[name]) for name in sorted(left)))
    if isinstance(left, (Closure, Builtin, Partial)):
        return False
    return left == right


def _all_equal(machine: Machine, pairs: Iterable[tuple[Slot, Slot]]) -> bool:
    depth = machine.enter()
    for first, second in pairs:
        a, b = machine.force(first), machine.force(second)
        # As in Nix, the very same list, set or function inside a container equals itself unseen.
        if a is not b and not equal(machine, a, b):
            machine.depth = depth
            return False
    machine.depth = depth
    return True


def less(machine: Machine, left: Slot, right: Slot) -> bool:
    """``left < right`` for two integers, strings (by code point), paths, or lists (the first difference decides)."""
    a, b = machine.force(left), machine.force(right)
    if type(a) is int and type(b) is int:
        return a < b
    if isinstance(a, str) and isinstance(b, str):
        machine.scan(a)
        return str(a) < str(b)
    if isinstance(a, PathValue) and isinstance(b, PathValue):
        return a.path < b.path
    if isinstance(a, list) and isinstance(b, list):
        depth = machine.enter()
        answer = _less_list(machine, a, b)
        machine.depth = depth
        return answer
    raise EvaluationError("eval-type", f"cannot compare {with_article(a)} with {with_article(b)}")


def _less_list(machine: Machine, left: list[Slot], right: list[Slot]) -> bool:
    for position, second in enumerate(right):
        if position >= len(left):
            return True
        first = left[position]
        a, b = machine.force(first), machine.force(second)
        if a is not b and not equal(machine, a, b):
            return less(machine, a, b)
    return False

"""Selecting attributes, compiled: ``a.b``, ``a.b or c``, ``a ? b``, and what ``inherit (a) b`` means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine, expected
from envdsl.evaluate.operators import Code
from envdsl.evaluate.values import Frame, Slot, Thunk, Value, did_you_mean
from envdsl.model.span import Span
from envdsl.syntax import tree

# A part of an attribute path: its name or the code of that, and its place.
Part: TypeAlias = tuple[str | Code, Span]

_MISSING: Final[Slot] = Thunk(lambda frame: None, [])


def attribute(machine: Machine, target: Code, target_span: Span, name: str, span: Span) -> Code:
    """``target.name``, by far the most frequent selection."""
    force = machine.force

    def run(frame: Frame) -> Value:
        value = target(frame)
        if not isinstance(value, dict):
            raise expected("a set", value, span=target_span)
        slot = value.get(name, _MISSING)
        if slot is _MISSING:
            raise missing(name, value, span)
        if type(slot) is not Thunk:
            return slot
        try:
            return force(slot)
        except EvaluationError as failure:
            raise failure.at(span) from None

    return run


def select(machine: Machine, node: tree.Select, target: Code, path: Sequence[Part]) -> Code:
    """``target.path`` without a default."""
    target_span = node.target.span
    for part, span in path:
        if isinstance(part, str):
            target = attribute(machine, target, target_span, part, span)
        else:
            target = _computed(machine, target, target_span, part, span)
        target_span = span
    return target


def _computed(machine: Machine, target: Code, target_span: Span, part: Code, span: Span) -> Code:
    def run(frame: Frame) -> Value:
        value = target(frame)
        name = _name(part, span, frame)
        if not isinstance(value, dict):
            raise expected("a set", value, span=target_span)
        if name not in value:
            raise missing(name, value, span)
        try:
            return machine.force(value[name])
        except EvaluationError as failure:
            raise failure.at(span) from None

    return run


def select_or(machine: Machine, target: Code, path: Sequence[Part], default: Code) -> Code:
    """``target.path or default``: the default wherever an attribute is missing, or its owner is no set."""

    def run(frame: Frame) -> Value:
        value = target(frame)
        for part, span in path:
            name = _name(part, span, frame)
            if not isinstance(value, dict) or name not in value:
                return default(frame)
            try:
                value = machine.force(value[name])
            except EvaluationError as failure:
                raise failure.at(span) from None
        return value

    return run


def has_attribute(machine: Machine, target: Code, path: Sequence[Part]) -> Code:
    """``target ? path``; the attribute itself is not evaluated."""
    last = len(path) - 1

    def run(frame: Frame) -> Value:
        value = target(frame)
        for position, (part, span) in enumerate(path):
            name = _name(part, span, frame)
            if not isinstance(value, dict) or name not in value:
                return False
            if position < last:
                value = machine.force(value[name])
        return True

    return run


def _name(part: str | Code, span: Span, frame: Frame) -> str:
    if isinstance(part, str):
        return part
    value = part(frame)
    if not isinstance(value, str):
        raise expected("a string as the name of an attribute", value, span=span)
    return value


def missing(name: str, value: dict[str, Slot], span: Span | None) -> EvaluationError:
    return EvaluationError(
        "eval-missing-attribute",
        f"the set has no attribute `{name}`",
        span=span,
        hint=did_you_mean(name, value) or (_offer(value) if len(value) <= 8 else None),
    )


def _offer(value: dict[str, Slot]) -> str | None:
    return f"it has {', '.join(sorted(value))}" if value else "it is empty"

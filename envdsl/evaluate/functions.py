"""Functions, compiled: the arguments of set patterns, and application."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from envdsl.errors import Note
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.operators import Code
from envdsl.evaluate.values import Closure, Frame, Slot, Text, Value, did_you_mean
from envdsl.model.span import Span
from envdsl.syntax import tree

# Makes the slot of an expression without evaluating it.
Maker: TypeAlias = Callable[[Frame], Slot]


def pattern_names(pattern: tree.Pattern) -> list[str]:
    """The variables of a set pattern, in the order of the frame that :func:`pattern_binder` makes."""
    names = [field.name for field in pattern.fields]
    return names if pattern.bind is None else [*names, pattern.bind]


def pattern_binder(
    machine: Machine, node: tree.Lambda, pattern: tree.Pattern, defaults: Sequence[Maker | None], name: str | None
) -> Callable[[Frame, Slot], Frame]:
    """Makes the frame of a function's body from its argument; ``defaults`` are made in that frame itself."""
    fields = [(field.name, default) for field, default in zip(pattern.fields, defaults, strict=True)]
    known = frozenset(field.name for field in pattern.fields)
    called = f"the function `{name}`" if name else "the function"
    where = f"the function is defined at {node.span}"

    def bind(frame: Frame, argument: Slot) -> Frame:
        given = machine.set(argument)
        own: Frame = [frame]
        for formal, default in fields:
            if formal in given:
                own.append(given[formal])
            elif default is not None:
                own.append(default(own))
            else:
                raise EvaluationError("eval-missing-argument", f"{called} needs the argument `{formal}`", hint=where)
        if not pattern.open and not given.keys() <= known:
            surplus = min(given.keys() - known)
            hint = did_you_mean(surplus, known) or where
            raise EvaluationError("eval-unexpected-argument", f"{called} takes no argument `{surplus}`", hint=hint)
        if pattern.bind is not None:
            own.append(argument)
        return own

    return bind


def apply(machine: Machine, function: Code, makers: Sequence[Maker], span: Span) -> Code:
    """``function argument argument …``"""

    def run(frame: Frame) -> Value:
        callee = value = function(frame)
        try:
            for make in makers:
                value = machine.call(value, make(frame))
        except EvaluationError as failure:
            if type(callee) is Closure:
                failure.note(Note(f"while calling `{callee.procedure.name or 'a function'}`", span))
            raise failure.at(span) from None
        # A string made by a builtin comes from this call, as far as a reader of the file can tell.
        return Text.at(value, span) if type(value) is str else value

    return run

"""The operators, compiled: each takes the code of its operands and gives the code of the whole."""

from __future__ import annotations

import operator
import posixpath
from collections.abc import Callable
from typing import TypeAlias

from envdsl.evaluate.coerce import interpolated
from envdsl.evaluate.compare import equal, less
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import resolve
from envdsl.evaluate.machine import Machine, coercion, expected
from envdsl.evaluate.values import Frame, PathValue, Text, Value, with_article
from envdsl.model.span import Span
from envdsl.syntax import tree

Code: TypeAlias = Callable[[Frame], Value]

INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1


def binary(machine: Machine, node: tree.Binary, left: Code, right: Code) -> Code:
    """The code of ``left operator right``."""
    if node.operator in _SHORT_CIRCUIT:
        return _SHORT_CIRCUIT[node.operator](node, left, right)
    operation = OPERATIONS[node.operator]
    of_integers = _OF_INTEGERS.get(node.operator)
    span = node.span

    def run(frame: Frame) -> Value:
        first = left(frame)
        second = right(frame)
        if type(first) is int and type(second) is int and of_integers is not None:
            result = of_integers(first, second)
            if INTEGER_MIN <= result <= INTEGER_MAX:
                return result
        try:
            return operation(machine, first, second, span)
        except EvaluationError as failure:
            raise failure.at(span) from None

    return run


def unary(node: tree.Unary, operand: Code) -> Code:
    span = node.operand.span
    if node.operator == "!":
        return lambda frame: not _boolean(operand(frame), span)

    def negate(frame: Frame) -> Value:
        value = operand(frame)
        if type(value) is not int:
            raise expected("an integer", value, span=span)
        return _in_range(-value, node.span)

    return negate


# -- logic: the right side is not looked at when the left side decides ------------------------------


def _boolean(value: Value, span: Span) -> bool:
    if type(value) is bool:
        return value
    raise expected("a boolean", value, span=span)


def _and(node: tree.Binary, left: Code, right: Code) -> Code:
    return lambda frame: _boolean(left(frame), node.left.span) and _boolean(right(frame), node.right.span)


def _or(node: tree.Binary, left: Code, right: Code) -> Code:
    return lambda frame: _boolean(left(frame), node.left.span) or _boolean(right(frame), node.right.span)


def _implies(node: tree.Binary, left: Code, right: Code) -> Code:
    return lambda frame: not _boolean(left(frame), node.left.span) or _boolean(right(frame), node.right.span)


_SHORT_CIRCUIT = {"&&": _and, "||": _or, "->": _implies}


# -- arithmetic --------------------------------------------------------------------------------------


def _in_range(number: int, span: Span | None) -> int:
    if INTEGER_MIN <= number <= INTEGER_MAX:
        return number
    raise EvaluationError("eval-overflow", "integer overflow: the result does not fit into 64 bits", span=span)


def _integers(left: Value, right: Value) -> tuple[int, int]:
    if type(left) is not int:
        raise expected("an integer", left)
    if type(right) is not int:
        raise expected("an integer", right)
    return left, right


_JOINED_OTHERWISE = ((list, "lists are joined by `++`"), (dict, "sets are joined by `//`"))


def add(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    """``+``: the left side decides whether it adds integers, extends a path, or joins strings."""
    for kind, hint in _JOINED_OTHERWISE:
        if isinstance(left, kind) and isinstance(right, kind):
            raise EvaluationError("eval-type", f"cannot add {with_article(right)} to {with_article(left)}", hint=hint)
    if type(left) is int:
        if type(right) is not int:
            raise EvaluationError("eval-type", f"cannot add {with_article(right)} to an integer")
        return _in_range(left + right, span)
    if isinstance(left, PathValue):
        if isinstance(right, PathValue):
            raise EvaluationError("eval-type", "cannot add a path to a path", hint='write path + "/name"')
        return PathValue(resolve("", posixpath.normpath(left.path + interpolated(machine, right))))
    text = machine.sized_string(interpolated(machine, left) + interpolated(machine, right))
    return text if span is None else Text.at(text, span)


def subtract(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    a, b = _integers(left, right)
    return _in_range(a - b, span)


def multiply(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    a, b = _integers(left, right)
    return _in_range(a * b, span)


def divide(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    """``/`` rounds towards zero, as C++ does."""
    a, b = _integers(left, right)
    if b == 0:
        raise EvaluationError("eval-division-by-zero", "division by zero")
    quotient = abs(a) // abs(b)
    return _in_range(quotient if (a < 0) == (b < 0) else -quotient, span)


# -- comparison --------------------------------------------------------------------------------------


def _less(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    return less(machine, left, right)


def _less_equal(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    return not less(machine, right, left)


def _greater(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    return less(machine, right, left)


def _greater_equal(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    return not less(machine, left, right)


def _equal(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    return equal(machine, left, right)


def _unequal(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    return not equal(machine, left, right)


# -- lists and sets ----------------------------------------------------------------------------------


def concatenate(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    if not isinstance(left, list):
        raise expected("a list", left)
    if not isinstance(right, list):
        raise expected("a list", right)
    if not left or not right:
        return right or left
    machine.sized(len(left) + len(right))
    return left + right


def update(machine: Machine, left: Value, right: Value, span: Span | None) -> Value:
    """``//``: the attributes of both, the right side's where both have one."""
    if not isinstance(left, dict):
        raise expected("a set", left)
    if not isinstance(right, dict):
        raise expected("a set", right)
    if not left or not right:
        return right or left
    machine.sized(4 * (len(left) + len(right)))
    return {**left, **right}


Operation: TypeAlias = Callable[[Machine, Value, Value, Span | None], Value]

OPERATIONS: dict[str, Operation] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "<": _less,
    "<=": _less_equal,
    ">": _greater,
    ">=": _greater_equal,
    "==": _equal,
    "!=": _unequal,
    "++": concatenate,
    "//": update,
}

# The common case by a short way; overflow, and everything else, goes the long one.
_OF_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

__all__ = ["INTEGER_MAX", "OPERATIONS", "add", "binary", "coercion", "divide", "multiply", "subtract", "unary"]

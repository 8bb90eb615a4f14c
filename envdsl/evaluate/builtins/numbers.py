"""Builtins for numbers and order; the operators as functions."""

from __future__ import annotations

from envdsl.evaluate import operators
from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.compare import less
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.values import Slot, Value

numbers = Topic("Numbers and order")


@numbers.builtin("min a b", "The smaller of two values.", "min 2 1", "1")
def min_(machine: Machine, left: Slot, right: Slot) -> Value:
    return machine.force(left if less(machine, left, right) else right)


@numbers.builtin("max a b", "The larger of two values.", 'max "a" "b"', '"b"')
def max_(machine: Machine, left: Slot, right: Slot) -> Value:
    return machine.force(left if less(machine, right, left) else right)


@numbers.builtin("lessThan a b", "`a < b` as a function, for `sort`.", "sort lessThan [ 2 1 ]", "[ 1 2 ]")
def less_than(machine: Machine, left: Slot, right: Slot) -> Value:
    return less(machine, left, right)


@numbers.builtin("add a b", "`a + b` for integers, as a function.", "foldl' add 0 [ 1 2 3 ]", "6")
def add(machine: Machine, left: Slot, right: Slot) -> Value:
    return operators.add(machine, machine.integer(left), machine.integer(right), None)


@numbers.builtin("sub a b", "`a - b` as a function.", "sub 5 2", "3")
def sub(machine: Machine, left: Slot, right: Slot) -> Value:
    return operators.subtract(machine, machine.integer(left), machine.integer(right), None)


@numbers.builtin("mul a b", "`a * b` as a function.", "mul 2 3", "6")
def mul(machine: Machine, left: Slot, right: Slot) -> Value:
    return operators.multiply(machine, machine.integer(left), machine.integer(right), None)


@numbers.builtin("div a b", "`a / b` as a function; it rounds towards zero.", "div 7 2", "3")
def div(machine: Machine, left: Slot, right: Slot) -> Value:
    return operators.divide(machine, machine.integer(left), machine.integer(right), None)

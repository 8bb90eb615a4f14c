"""Builtins that ask for the type of a value."""

from __future__ import annotations

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.values import Builtin, Closure, Partial, PathValue, Slot, Value, type_name

types = Topic("Types")


@types.builtin(
    "typeOf x",
    "`int`, `bool`, `string`, `path`, `null`, `list`, `set` or `lambda`.",
    "typeOf [ ]",
    '"list"',
)
def type_of(machine: Machine, value: Slot) -> Value:
    return type_name(machine.force(value))


@types.builtin("isString x", "Whether it is a string.", 'isString "a"', "true")
def is_string(machine: Machine, value: Slot) -> Value:
    return isinstance(machine.force(value), str)


@types.builtin("isInt x", "Whether it is an integer.", "isInt 1", "true")
def is_int(machine: Machine, value: Slot) -> Value:
    return type(machine.force(value)) is int


@types.builtin("isBool x", "Whether it is a boolean.", "isBool null", "false")
def is_bool(machine: Machine, value: Slot) -> Value:
    return type(machine.force(value)) is bool


@types.builtin("isNull x", "Whether it is null.", "isNull null", "true")
def is_null(machine: Machine, value: Slot) -> Value:
    return machine.force(value) is None


@types.builtin("isList x", "Whether it is a list.", "isList [ ]", "true")
def is_list(machine: Machine, value: Slot) -> Value:
    return isinstance(machine.force(value), list)


@types.builtin("isAttrs x", "Whether it is a set.", "isAttrs { }", "true")
def is_attrs(machine: Machine, value: Slot) -> Value:
    return isinstance(machine.force(value), dict)


@types.builtin("isPath x", "Whether it is a path.", "isPath ./requirements.txt", "true")
def is_path(machine: Machine, value: Slot) -> Value:
    return isinstance(machine.force(value), PathValue)


@types.builtin(
    "isFunction x", "Whether it is a function (a set that can be called is not).", "isFunction (x: x)", "true"
)
def is_function(machine: Machine, value: Slot) -> Value:
    return isinstance(machine.force(value), (Closure, Builtin, Partial))

"""Builtins for attribute sets."""

from __future__ import annotations

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.selection import missing
from envdsl.evaluate.values import Closure, Frame, Slot, Thunk, Value

sets = Topic("Sets")


@sets.builtin("attrNames set", "The names of the attributes, sorted.", "attrNames { b = 1; a = 2; }", '[ "a" "b" ]')
def attr_names(machine: Machine, slot: Slot) -> Value:
    attributes = machine.set(slot)
    machine.sized(len(attributes))
    names: list[Slot] = list(attributes)
    return sorted(names, key=str)


@sets.builtin("attrValues set", "The values, in the order of their names.", "attrValues { b = 1; a = 2; }", "[ 2 1 ]")
def attr_values(machine: Machine, slot: Slot) -> Value:
    attributes = machine.set(slot)
    machine.sized(len(attributes))
    return [attributes[name] for name in sorted(attributes)]


@sets.builtin(
    "mapAttrs f set",
    "Replaces each value by `f name value`.",
    'mapAttrs (name: value: name + value) { a = "x"; }',
    '{ a = "ax"; }',
)
def map_attrs(machine: Machine, function: Slot, slot: Slot) -> Value:
    attributes = machine.set(slot)
    machine.sized(8 * len(attributes))
    machine.allocate(128 * len(attributes))

    def run(frame: Frame) -> Value:
        return machine.call2(machine.force(function), frame[0], frame[1])

    return {name: Thunk(run, [name, value]) for name, value in attributes.items()}


@sets.builtin(
    "filterAttrs f set",
    "The attributes for which `f name value` gives true.",
    "filterAttrs (name: value: value > 1) { a = 1; b = 2; }",
    "{ b = 2; }",
)
def filter_attrs(machine: Machine, function: Slot, slot: Slot) -> Value:
    callee = machine.force(function)
    attributes = machine.set(slot)
    return {
        name: attributes[name]
        for name in sorted(attributes)
        if machine.boolean(machine.call2(callee, name, attributes[name]))
    }


@sets.builtin("hasAttr name set", "Whether the set has the attribute.", 'hasAttr "a" { a = 1; }', "true")
def has_attr(machine: Machine, name: Slot, slot: Slot) -> Value:
    wanted = machine.string(name)
    return wanted in machine.set(slot)


@sets.builtin("getAttr name set", "The value of the attribute.", 'getAttr "a" { a = 1; }', "1")
def get_attr(machine: Machine, name: Slot, slot: Slot) -> Value:
    wanted = machine.string(name)
    attributes = machine.set(slot)
    if wanted not in attributes:
        raise missing(wanted, attributes, None)
    return machine.force(attributes[wanted])


@sets.builtin(
    "removeAttrs set names",
    "The set without the attributes named in a list.",
    'removeAttrs { a = 1; b = 2; } [ "a" "x" ]',
    "{ b = 2; }",
)
def remove_attrs(machine: Machine, slot: Slot, names: Slot) -> Value:
    attributes = machine.set(slot)
    unwanted = {str(machine.string(name)) for name in machine.list(names)}
    machine.sized(4 * len(attributes))
    return {name: value for name, value in attributes.items() if name not in unwanted}


@sets.builtin(
    "listToAttrs list",
    "A set from a list of `{ name, value }`; of two with one name the first counts.",
    'listToAttrs [ { name = "a"; value = 1; } ]',
    "{ a = 1; }",
)
def list_to_attrs(machine: Machine, items: Slot) -> Value:
    elements = machine.list(items)
    machine.sized(8 * len(elements))
    result: dict[str, Slot] = {}
    for element in elements:
        pair = machine.set(element)
        for wanted in ("name", "value"):
            if wanted not in pair:
                raise missing(wanted, pair, None)
        name = str(machine.string(pair["name"]))
        result.setdefault(name, pair["value"])
    return result


@sets.builtin(
    "intersectAttrs a b",
    "The attributes of `b` whose names `a` has too.",
    "intersectAttrs { a = 1; b = 2; } { b = 3; c = 4; }",
    "{ b = 3; }",
)
def intersect_attrs(machine: Machine, left: Slot, right: Slot) -> Value:
    names, attributes = machine.set(left), machine.set(right)
    machine.sized(4 * min(len(names), len(attributes)))
    machine.charge(len(attributes) // 8)
    return {name: value for name, value in attributes.items() if name in names}


@sets.builtin(
    "catAttrs name list",
    "The values of one attribute from those sets of a list that have it.",
    'catAttrs "a" [ { a = 1; } { b = 0; } { a = 2; } ]',
    "[ 1 2 ]",
)
def cat_attrs(machine: Machine, name: Slot, items: Slot) -> Value:
    wanted = machine.string(name)
    elements = machine.list(items)
    machine.sized(len(elements))
    values: list[Slot] = []
    for element in elements:
        attributes = machine.set(element)
        if wanted in attributes:
            values.append(attributes[wanted])
    return values


@sets.builtin(
    "functionArgs f",
    "The arguments of a function that takes a set, and whether each has a default.",
    "functionArgs ({ a, b ? 1 }: a)",
    "{ a = false; b = true; }",
)
def function_args(machine: Machine, function: Slot) -> Value:
    value = machine.function(function)
    formals = value.procedure.formals if isinstance(value, Closure) else None
    return dict(formals or {})

"""Builtins that steer evaluation, and those that turn values into JSON and back."""

from __future__ import annotations

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.coerce import interpolated, of_set
from envdsl.evaluate.data import parse_json
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.render import write_json, write_nix
from envdsl.evaluate.values import Slot, Value

control = Topic("Evaluation and errors")
json = Topic("JSON")


@control.builtin(
    "throw message", "Stops with an error that `tryEval` can catch.", '(tryEval (throw "no")).success', "false"
)
def throw(machine: Machine, message: Slot) -> Value:
    raise EvaluationError("eval-throw", interpolated(machine, message), catchable=True)


@control.builtin("abort message", "Stops with an error that nothing catches.", 'if false then abort "no" else 1', "1")
def abort(machine: Machine, message: Slot) -> Value:
    raise EvaluationError("eval-abort", interpolated(machine, message))


@control.builtin(
    "tryEval x",
    "Whether `x` evaluates without `throw` or a failed `assert`, and its value (or false).",
    "tryEval (1 + 1)",
    "{ success = true; value = 2; }",
)
def try_eval(machine: Machine, value: Slot) -> Value:
    depth = machine.depth
    try:
        return {"success": True, "value": machine.force(value)}
    except EvaluationError as failure:
        if not failure.catchable:
            raise
        failure.release()
    machine.depth = depth
    return {"success": False, "value": False}


@control.builtin("seq a b", "Evaluates `a`, and gives `b`.", "seq 1 2", "2")
def seq(machine: Machine, first: Slot, second: Slot) -> Value:
    machine.force(first)
    return machine.force(second)


@control.builtin("deepSeq a b", "Evaluates `a` and everything in it, and gives `b`.", "deepSeq [ 1 ] 2", "2")
def deep_seq(machine: Machine, first: Slot, second: Slot) -> Value:
    machine.deep(first)
    return machine.force(second)


@control.builtin("trace message x", "Shows a message, and gives `x`.", 'trace "here" 1', "1")
def trace(machine: Machine, message: Slot, value: Slot) -> Value:
    said = machine.force(message)
    machine.trace(str(said) if isinstance(said, str) else write_nix(said, None))
    return machine.force(value)


@json.builtin("toJSON x", "A value as JSON.", "toJSON { a = [ 1 null ]; }", '"{\\"a\\":[1,null]}"')
def to_json(machine: Machine, value: Slot) -> Value:
    def force(slot: Slot) -> Value:
        machine.charge(1)
        plain = machine.force(slot)
        if isinstance(plain, dict) and "__toString" in plain:
            return of_set(machine, plain)
        return plain

    return machine.sized_string(write_json(value, force))


@json.builtin("fromJSON s", "The value of a JSON text.", 'fromJSON "[1, {}]"', "[ 1 { } ]")
def from_json(machine: Machine, text: Slot) -> Value:
    return parse_json(machine, str(machine.string(text)), "the string")

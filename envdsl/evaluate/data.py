"""Data of JSON and TOML files as values of the language."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import date, datetime, time
from typing import Any, NoReturn

from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.operators import INTEGER_MAX, INTEGER_MIN
from envdsl.evaluate.values import Frame, Slot, Thunk, Value

# Strings (whose brackets do not count), or a bracket.
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)


def parse_json(machine: Machine, text: str, name: str) -> Value:
    """The value of a JSON text; ``name`` says in messages which. Raises EvaluationError (``eval-json``)."""
    machine.charge(len(text) // 32)
    machine.allocate(8 * len(text))
    _check_nesting(machine, text, name)
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except ValueError as error:
        raise EvaluationError("eval-json", f"{name} is not valid JSON: {error}") from None
    return _value(machine, data)


def parse_toml(machine: Machine, text: str, name: str) -> Value:
    """The value of a TOML text. Dates and times become strings. Raises EvaluationError (``eval-toml``)."""
    machine.charge(len(text) // 16)
    machine.allocate(8 * len(text))
    _check_nesting(machine, text, name)
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        raise EvaluationError("eval-toml", f"{name} is not valid TOML: {error}") from None
    return _value(machine, data)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _check_nesting(machine: Machine, text: str, name: str) -> None:
    """Before the parser sees it, because the JSON parser recurses on the C stack."""
    depth = 0
    for found in _BRACKETS.finditer(text):
        token = found[0]
        if token in "[{":
            depth += 1
            if depth > machine.limits.nesting:
                raise EvaluationError(
                    "eval-too-deep", f"{name} is nested too deeply: at most {machine.limits.nesting} levels"
                )
        elif token in "]}":
            depth -= 1


def _value(machine: Machine, data: Any) -> Value:
    match data:
        case None | bool():
            return data
        case int() if INTEGER_MIN <= data <= INTEGER_MAX:
            return data
        case int() | float():
            raise no_form(data)
        case str():
            return _string(data)
        case datetime() | date() | time():
            return data.isoformat()
        case list():
            machine.sized(len(data))
            return [_slot(machine, item) for item in data]
        case dict():
            machine.sized(8 * len(data))
            return {_string(name): _slot(machine, item) for name, item in data.items()}
        case _:
            raise AssertionError(type(data))


def _slot(machine: Machine, data: Any) -> Slot:
    """What the language has no form for fails where it is used: a file may hold more than a layer needs of it."""
    if isinstance(data, float) or (type(data) is int and not INTEGER_MIN <= data <= INTEGER_MAX):
        return Thunk(_refuse, [data])
    return _value(machine, data)


def _refuse(frame: Frame) -> Value:
    raise no_form(frame[0])


def no_form(number: int | float) -> EvaluationError:
    what = "floating-point numbers" if isinstance(number, float) else "integers of more than 64 bits"
    return EvaluationError("eval-number", f"the language has no {what}, so the value {number:.20g} cannot be used")


def _string(text: str) -> str:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise EvaluationError("eval-json", "a string holds half of a surrogate pair") from None
    return text

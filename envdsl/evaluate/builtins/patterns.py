"""Builtins for regular expressions."""

from __future__ import annotations

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.regex import full_match, matches
from envdsl.evaluate.values import Slot, Value

patterns = Topic("Regular expressions")


def _checked(machine: Machine, pattern: Slot, text: Slot) -> tuple[str, str]:
    expression, subject = str(machine.string(pattern)), str(machine.string(text))
    if len(expression) > machine.limits.pattern:
        raise EvaluationError(
            "eval-too-large", f"a regular expression may have at most {machine.limits.pattern:,} characters"
        )
    if len(subject) > machine.limits.subject:
        raise EvaluationError(
            "eval-too-large", f"a regular expression is run over at most {machine.limits.subject:,} characters"
        )
    machine.charge(10 + (len(subject) * (10 + len(expression))) // 4096)
    return expression, subject


@patterns.builtin(
    "match regex s",
    "The groups of a POSIX extended regular expression that matches the whole of `s`, or null.",
    'match "([a-z]+)=(.*)" "mode=fast"',
    '[ "mode" "fast" ]',
)
def match_(machine: Machine, pattern: Slot, text: Slot) -> Value:
    expression, subject = _checked(machine, pattern, text)
    groups = full_match(expression, subject)
    return None if groups is None else list(groups)


@patterns.builtin(
    "split regex s",
    "The parts of `s` between matches, and between them a list of each match's groups.",
    'split "([,;])" "a,b;c"',
    '[ "a" [ "," ] "b" [ ";" ] "c" ]',
)
def split_(machine: Machine, pattern: Slot, text: Slot) -> Value:
    expression, subject = _checked(machine, pattern, text)
    parts: list[Slot] = []
    position = 0
    for start, end, groups in matches(expression, subject):
        # Each search may look at the whole rest of the subject.
        machine.charge(1 + (len(subject) - start) // 512)
        machine.allocate(200)
        parts += (subject[position:start], list(groups))
        position = end
    parts.append(subject[position:])
    machine.sized(len(parts))
    return parts

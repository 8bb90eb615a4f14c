"""Builtins for strings and paths. A string is a sequence of Unicode characters, and counted in them."""

from __future__ import annotations

import posixpath
import re

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.coerce import interpolated, to_string
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.values import PathValue, Slot, Value

strings = Topic("Strings and paths")


@strings.builtin(
    "toString x",
    "A string of (nearly) any value: true is `1`; false, null and `[ ]` are empty; lists are joined by spaces.",
    'toString [ 1 true "a" ]',
    '"1 1 a"',
)
def to_string_(machine: Machine, value: Slot) -> Value:
    return to_string(machine, value)


@strings.builtin("stringLength s", "The number of characters.", 'stringLength "abc"', "3")
def string_length(machine: Machine, text: Slot) -> Value:
    return len(interpolated(machine, text))


@strings.builtin(
    "substring start length s",
    "The part from `start` (counted from 0); a negative length means to the end.",
    'substring 1 2 "abcd"',
    '"bc"',
)
def substring(machine: Machine, start: Slot, length: Slot, text: Slot) -> Value:
    first = machine.integer(start)
    count = machine.integer(length)
    whole = interpolated(machine, text)
    if first < 0:
        raise EvaluationError("eval-out-of-bounds", f"a substring cannot start at {first}")
    return machine.sized_string(str(whole)[first:] if count < 0 else str(whole)[first : first + count])


@strings.builtin("hasPrefix prefix s", "Whether `s` begins with `prefix`.", 'hasPrefix "num" "numpy"', "true")
def has_prefix(machine: Machine, prefix: Slot, text: Slot) -> Value:
    wanted = machine.string(prefix)
    machine.scan(wanted)
    return interpolated(machine, text).startswith(wanted)


@strings.builtin("hasSuffix suffix s", "Whether `s` ends with `suffix`.", 'hasSuffix "py" "numpy"', "true")
def has_suffix(machine: Machine, suffix: Slot, text: Slot) -> Value:
    wanted = machine.string(suffix)
    machine.scan(wanted)
    return interpolated(machine, text).endswith(wanted)


@strings.builtin(
    "replaceStrings from to s",
    "Replaces each string of the list `from` by its partner in `to`.",
    'replaceStrings [ "." ] [ "" ] "3.12"',
    '"312"',
)
def replace_strings(machine: Machine, old: Slot, new: Slot, text: Slot) -> Value:
    patterns = [str(machine.string(item)) for item in machine.list(old)]
    replacements = [str(machine.string(item)) for item in machine.list(new)]
    if len(patterns) != len(replacements):
        raise EvaluationError(
            "eval-type", f"the lists differ in length: {len(patterns)} strings to replace by {len(replacements)}"
        )
    subject = str(machine.string(text))
    if not patterns:
        return subject
    # The first pattern that matches at a place counts; what stands behind an empty one can never match.
    if "" in patterns:
        patterns = patterns[: patterns.index("") + 1]
    machine.scan(subject)
    machine.charge(len(subject) * len(patterns) // 256)
    partner = dict(reversed(list(zip(patterns, replacements, strict=False))))
    pieces: list[str] = []
    size = position = 0
    for found in re.finditer("|".join(map(re.escape, patterns)), subject):
        replacement = partner[found[0]]
        pieces += (subject[position : found.start()], replacement)
        size += len(replacement)
        if size > machine.limits.string:
            machine.refuse_string(size)
        position = found.end()
    machine.charge(len(pieces) // 8)
    return machine.sized_string("".join(pieces) + subject[position:])


@strings.builtin(
    "splitString separator s", "The parts of `s` between separators.", 'splitString "." "3.12.1"', '[ "3" "12" "1" ]'
)
def split_string(machine: Machine, separator: Slot, text: Slot) -> Value:
    between, subject = str(to_string(machine, separator)), str(to_string(machine, text))
    # As in nixpkgs, an empty separator splits at every character, and before and after them all.
    machine.scan(subject)
    count = subject.count(between) + 1
    machine.sized(count)
    machine.allocate(64 * count)
    return ["", *subject, ""] if not between else list(subject.split(between))


@strings.builtin(
    "concatStringsSep separator list",
    "Joins the strings of a list.",
    'concatStringsSep ", " [ "a" "b" ]',
    '"a, b"',
)
def concat_strings_sep(machine: Machine, separator: Slot, items: Slot) -> Value:
    between = machine.string(separator)
    pieces: list[str] = []
    size = 0
    for element in machine.list(items):
        pieces.append(interpolated(machine, element))
        size += len(pieces[-1]) + len(between)
        machine.charge(1)
        if size > machine.limits.string + len(between):
            machine.refuse_string(size)
    return machine.sized_string(between.join(pieces))


@strings.builtin(
    "optionalString condition s",
    'The string where the condition holds, else `""`.',
    'optionalString true "-dev"',
    '"-dev"',
)
def optional_string(machine: Machine, condition: Slot, text: Slot) -> Value:
    return machine.force(text) if machine.boolean(condition) else ""


@strings.builtin("baseNameOf path", "What stands behind the last slash.", 'baseNameOf "lib/a.layer"', '"a.layer"')
def base_name_of(machine: Machine, path: Slot) -> Value:
    text = _path_text(machine, path)
    return (text[:-1] if text.endswith("/") and len(text) > 1 else text).rpartition("/")[2] or text[:0]


@strings.builtin("dirOf path", "What stands before the last slash.", 'dirOf "lib/a.layer"', '"lib"')
def dir_of(machine: Machine, path: Slot) -> Value:
    value = machine.force(path)
    if isinstance(value, PathValue):
        return PathValue(posixpath.dirname(value.path) or ".")
    directory, slash, _ = _path_text(machine, value).rpartition("/")
    return directory or slash or "."


def _path_text(machine: Machine, path: Slot) -> str:
    value = machine.force(path)
    return value.path if isinstance(value, PathValue) else str(interpolated(machine, value))

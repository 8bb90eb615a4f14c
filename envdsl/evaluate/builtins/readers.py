"""Builtins that read: files of the project only, each one a recorded input."""

from __future__ import annotations

from envdsl.evaluate.builtins.registry import Topic
from envdsl.evaluate.data import parse_json, parse_toml
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.requirements_file import read_lines
from envdsl.evaluate.values import Slot, Value
from envdsl.model.span import Source

readers = Topic("Files of the project")


def _read(machine: Machine, slot: Slot) -> Source:
    path = machine.path(slot).path
    data = machine.files.read(path)
    machine.charge(1 + len(data) // 256)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvaluationError("eval-encoding", f"`{path}` is not UTF-8: byte {error.start} is wrong") from None
    return Source(path, text)


@readers.builtin(
    "readLines path",
    "The lines of a file without comments and blank ones, as pip reads a requirements file.",
    "readLines ./requirements.txt",
    '[ "numpy>=2" "rich" ]',
)
def read_lines_(machine: Machine, path: Slot) -> Value:
    source = _read(machine, path)
    machine.allocate(64 * source.text.count("\n"))
    lines: list[Slot] = list(read_lines(source))
    machine.sized(len(lines))
    return lines


@readers.builtin(
    "readToml path",
    "The value of a TOML file; dates become strings.",
    "(readToml ./pyproject.toml).project.dependencies",
    '[ "httpx2" ]',
)
def read_toml(machine: Machine, path: Slot) -> Value:
    source = _read(machine, path)
    return parse_toml(machine, source.text, f"`{source.path}`")


@readers.builtin("readJson path", "The value of a JSON file.", "(readJson ./settings.json).debug", "false")
def read_json(machine: Machine, path: Slot) -> Value:
    source = _read(machine, path)
    return parse_json(machine, source.text, f"`{source.path}`")

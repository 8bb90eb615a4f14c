"""Compiles the library that injects faults, and talks to the process that has it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

SOURCE = Path(__file__).with_name("faults.c")
PROJECT = Path(__file__).parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

# As in faults.c.
KILL, TEAR, COUNT = -1, -2, 0
CREATE, WRITE, REMOVE, CHANGE, SYNC = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Fault:
    """What happens at a step; ``sticky``: and at all steps after it. ``kinds`` are the steps that count."""

    name: str
    action: int
    kinds: int
    sticky: bool = False


@dataclass(frozen=True)
class Outcome:
    """``status`` of the command, None where it was killed; ``problems`` are promises that were not kept then."""

    status: int | None
    messages: str
    steps: int
    problems: tuple[str, ...]


class Injector:
    """Runs scenarios with faults, in ``directory``. Use as a context manager."""

    def __init__(self, directory: Path) -> None:
        assert COMPILER is not None
        self._steps: dict[tuple[str, int], int] = {}
        library = directory / "faults.so"
        subprocess.run(
            [COMPILER, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, SOURCE, "-ldl", "-lpthread"],
            check=True,
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.zygote", str(directory)],
            env={**os.environ, "LD_PRELOAD": str(library)},
            cwd=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Injector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def steps(self, scenario: str, fault: Fault) -> int:
        """How many steps of the fault's kinds the scenario has."""
        counted = (scenario, fault.kinds)
        if counted not in self._steps:
            outcome = self._ask(scenario, 0, COUNT, False, fault.kinds)
            assert outcome.status == 0, outcome
            self._steps[counted] = outcome.steps
        return self._steps[counted]

    def run(self, scenario: str, fault: Fault, step: int) -> Outcome:
        return self._ask(scenario, step, fault.action, fault.sticky, fault.kinds)

    def _ask(self, scenario: str, step: int, action: int, sticky: bool, kinds: int) -> Outcome:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"scenario": scenario, "step": step, "action": action, "sticky": sticky, "kinds": kinds}
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        problems = list(answer["problems"])
        if answer.get("signal") not in (None, signal.SIGKILL):
            problems.insert(0, f"the command was ended by signal {answer['signal']}: did it hang?")
        if "error" in answer:
            problems.insert(0, answer["error"])
        return Outcome(answer.get("status"), answer.get("messages", ""), answer.get("steps", 0), tuple(problems))

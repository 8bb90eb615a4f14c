"""What the language and the locks cost as a project grows: 1,000 layers against 100.

Each run is a process of its own, which measures the time from the open project to its graph (`many_layers`); the
start of the interpreter and the imports, alike for both, would flatter the ratio.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import many_layers
from benchmarks.harness import Row, pairs
from benchmarks.scratch import Scratch

MANY = "evaluate, check and key 1,000 layers"

_RUNS = 5


def many(scratch: Scratch) -> Row:
    thousand, hundred = scratch.root / "layers-1000", scratch.root / "layers-100"
    many_layers.write_project(thousand, 1000)
    many_layers.write_project(hundred, 100)
    peaks: list[int] = []
    stages: list[dict[str, float]] = []

    def large(_: int) -> float:
        seconds, peak = _measure(thousand, scratch)
        peaks.append(peak)
        stages.append(seconds)
        return sum(seconds.values())

    row = pairs(
        MANY,
        "100 layers",
        12,
        large,
        lambda _: sum(_measure(hundred, scratch)[0].values()),
        runs=scratch.runs(_RUNS),
    )
    parts = ", ".join(f"{name} {statistics.median(item[name] for item in stages):.2f} s" for name in stages[0])
    return row.with_note(f"{parts}; peak memory {max(peaks) / (1 << 20):.0f} MB, at most 250")


def _measure(directory: Path, scratch: Scratch) -> tuple[dict[str, float], int]:
    """Seconds by stage, and the most memory of the process in bytes."""
    process = subprocess.Popen(
        [sys.executable, "-m", many_layers.__name__, str(directory)],
        env=scratch.environment,
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    said = process.stdout.read()
    process.stdout.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{many_layers.__name__}: status {process.returncode}")
    return json.loads(said), usage.ru_maxrss * 1024


LINES = {MANY: many}

"""Importing from a layer in the sandbox against importing from a virtual environment.

Both sides are whole processes of one interpreter, with bytecode and matplotlib's font cache from an earlier run.
"""

from __future__ import annotations

from benchmarks.harness import Row, command, pairs, spawn
from benchmarks.scratch import ENVDSL, Scratch

IMPORTS = "importing docx, numpy, matplotlib.pyplot in the sandbox, second run of a session"

_PROGRAM = "import docx, numpy, matplotlib.pyplot"
_RUNS = 30


def imports(scratch: Scratch) -> Row:
    office = scratch.office
    store = office.warm_store
    create = [ENVDSL, "session", "create", "bench", "--layer", "office", "--store", str(store)]
    command(create, environment=scratch.environment, cwd=office.curated)
    run = str(store / "sessions/bench/run")
    python = str(office.uv_project / ".venv/bin/python")
    return pairs(
        IMPORTS,
        "the same in a venv with warm bytecode",
        1.1,
        lambda _: spawn([run, "python3", "-c", _PROGRAM], scratch.environment),
        lambda _: spawn([python, "-c", _PROGRAM], scratch.environment),
        runs=scratch.runs(_RUNS),
        warmups=2,
    )


LINES = {IMPORTS: imports}

"""``build`` and ``uv sync`` with nothing to do: whole processes, as a shell or a script starts them."""

from __future__ import annotations

from contextlib import chdir

from benchmarks.harness import Row, pairs, spawn
from benchmarks.scratch import ENVDSL, UV, Scratch

NOTHING = "`build` with nothing to do"

_RUNS = 100


def nothing(scratch: Scratch) -> Row:
    office = scratch.office
    environment = {**scratch.environment, "ENVDSL_PROJECT": str(office.curated), "ENVDSL_STORE": str(office.warm_store)}
    with chdir(office.uv_project):
        return pairs(
            NOTHING,
            "`uv sync` with nothing to do",
            1.0,
            lambda _: spawn([ENVDSL, "build", "office"], environment),
            lambda _: spawn([UV, "sync"], office.uv_environment),
            runs=scratch.runs(_RUNS),
            warmups=5,
        )


LINES = {NOTHING: nothing}

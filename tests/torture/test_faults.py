"""Faults at every step of a build, of gc, of repair and of a session's creation.

A step is a call of the C library that changes the store, SQLite's included (``faults.c``). After each fault every valid
path verifies, the command and ``build`` complete, and nothing temporary outlives the next gc (``world.problems``).
A few steps of each kind by default; with ENVDSL_TORTURE=1 (``make torture``) every one is killed at, and every fifth
fails in each way; with ENVDSL_TORTURE=100 every hundredth of these (``make torture EVERY=100``).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.torture.injector import (
    CHANGE,
    COMPILER,
    CREATE,
    KILL,
    REMOVE,
    SYNC,
    TEAR,
    WRITE,
    Fault,
    Injector,
)
from tests.torture.world import SCENARIOS

EVERY = int(os.environ.get("ENVDSL_TORTURE") or 0)  # 0: a few
FAULTS = (
    Fault("killed", KILL, CREATE | WRITE | REMOVE | CHANGE | SYNC),
    Fault("killed in the middle of a write", TEAR, WRITE),
    Fault("disk full for once", errno.ENOSPC, CREATE | WRITE),
    Fault("disk full from then on", errno.ENOSPC, CREATE | WRITE, sticky=True),
    Fault("disk fails once", errno.EIO, CREATE | WRITE | REMOVE | CHANGE | SYNC),
    Fault("disk fails from then on", errno.EIO, CREATE | WRITE | REMOVE | CHANGE | SYNC, sticky=True),
    Fault("forbidden once", errno.EACCES, CREATE | REMOVE | CHANGE),
    Fault("forbidden from then on", errno.EACCES, CREATE | REMOVE | CHANGE, sticky=True),
)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="faults.c needs a C compiler")


@pytest.fixture(scope="module")
def injector() -> Iterator[Injector]:
    shared = Path("/dev/shm")
    place = shared if os.access(shared, os.W_OK) else None
    with TemporaryDirectory(prefix="envdsl-torture-", dir=place) as directory, Injector(Path(directory)) as running:
        yield running


def chosen(steps: int, fault: Fault) -> range | list[int]:
    """All steps or, where a sample is enough, a few that differ between kinds of faults."""
    first = len(fault.name)
    if not EVERY:
        return [first % steps + 1, steps - first] if fault.action == KILL else [first * 7 % steps + 1]
    return range(1, steps + 1, EVERY) if fault.action == KILL else range(first % 5 + 1, steps + 1, 5 * EVERY)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_fault_at_any_step_leaves_the_store_whole(injector: Injector, scenario: str, fault: Fault) -> None:
    """Issue 3.4: killed, or failing with ENOSPC, EIO or EACCES."""
    steps = injector.steps(scenario, fault)
    assert steps > 10
    failed = []
    for step in chosen(steps, fault):
        outcome = injector.run(scenario, fault, step)
        found = [*outcome.problems]
        # A refusal is an error that says so, never a traceback. Some failures do not matter: a cache, a stale lock.
        if outcome.status not in (None, 0, 4) or "internal-defect" in outcome.messages:
            found.insert(0, f"status {outcome.status}: {outcome.messages}")
        failed += [f"{scenario}, {fault.name} at step {step} of {steps}: {problem}" for problem in found]
    assert not failed, "\n".join(failed)

"""Many processes at one store, without anybody failing, waiting for ever, or losing what is theirs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from envdsl.graph.derivation import Derivation
from envdsl.store.gc import collect
from envdsl.store.store import Store
from envdsl.store.verify import verify
from tests.torture import crowd

PROJECT = Path(__file__).parents[2]
EVERY = int(os.environ.get("ENVDSL_TORTURE") or 60)
SECONDS = max(3, 180 // EVERY)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    shared = Path("/dev/shm")
    with TemporaryDirectory(prefix="envdsl-crowd-", dir=shared if os.access(shared, os.W_OK) else tmp_path) as place:
        yield Path(place)


def run(*arguments: object) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture.crowd", *map(str, arguments)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=SECONDS + 600,
        check=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    errors = [result["error"] for result in results if "error" in result]
    assert not errors, "\n".join(errors)
    return results


def derivations(directory: Path) -> set[str]:
    """The keys of everything that the layers of the crowd consist of."""
    found: dict[str, Derivation] = {}
    pending: list[Derivation] = list(crowd.overlapping(directory / "again"))
    while pending:
        item = pending.pop()
        found[item.key] = item
        pending += item.dependencies()
    return set(found)


def test_thirty_two_processes_realise_each_derivation_once(memory: Path) -> None:
    """Issue 3.5: 32 processes building overlapping layers: each is realised once, nobody fails, nobody deadlocks."""
    results = run("build", memory, 32, 0)
    assert len(results) == 32
    assert all(len(result["layers"]) == crowd.LAYERS // 2 for result in results), results
    made = Counter(key for result in results for key in result["registered"])
    assert set(made) == derivations(memory)
    assert set(made.values()) == {1}
    whole(memory / "store")


def test_those_who_are_killed_meanwhile_hold_nobody_up(memory: Path) -> None:
    """Issue 3.5: a dead holder's lock is noticed."""
    results = run("build", memory, 16, 16)
    assert all("layers" in result for result in results[:16]), results
    assert sum(result.get("signal") == signal.SIGKILL for result in results[16:]) > 0
    whole(memory / "store")


def whole(root: Path) -> None:
    with Store.open(root) as store:
        assert verify(store).findings == ()
        keys = {path.key for path in store.paths()}
        assert collect(store, keys).paths == ()
        assert collect(store, keys).rubbish == ()
    assert [place.name for place in (root / "tmp").iterdir()] == ["locks"]


def test_builds_launches_gc_and_verify_run_together(memory: Path) -> None:
    """Issue 3.5: no valid path is lost, and no running sandbox's layer is collected. Minutes with ENVDSL_TORTURE=1."""
    results = run("together", memory, SECONDS)
    print(*results, sep="\n")
    rounds = Counter(result["role"] for result in results if result["rounds"] > 0)
    assert rounds == {"builds": 2, "launches": 2, "collects": 2, "verifies": 1}, results
    assert sum(result.get("collected", 0) for result in results) > 0, results
    with Store.open(memory / "store") as store:
        assert verify(store).findings == ()
        keys = {path.key for path in store.paths()}
        assert all(keys.issuperset(path.references) for path in store.paths())

"""gc of very many paths: linear, and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.torture import large

PROJECT = Path(__file__).parents[2]
# In hundreds: large.make works in tens, and a tenth is compared.
PATHS = max(3_000, 100_000 // int(os.environ.get("ENVDSL_TORTURE") or 100)) // 100 * 100
MEMORY = 300 << 20


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    shared = Path("/dev/shm")
    with TemporaryDirectory(prefix="envdsl-large-", dir=shared if os.access(shared, os.W_OK) else None) as place:
        yield Path(place)


def gc(root: Path, state: str) -> Any:
    command = [sys.executable, "-m", "tests.torture.large", str(root), state]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=True)
    print(root.name, state, done.stdout)
    return json.loads(done.stdout)


def test_a_hundred_thousand_paths_in_linear_time_and_little_memory(directory: Path) -> None:
    """Issue 3.6: 100,000 paths: linear, under 300 MB. A few of them unless ENVDSL_TORTURE=1.

    Time is loosely compared: ten times the paths in less than thirty times the time.
    """
    few, many = directory / "few", directory / "many"
    large.make(few, PATHS // 10)
    large.make(many, PATHS)
    for state, fraction in (("alive", 0), ("dead", 1)):
        small, big = gc(few, state), gc(many, state)
        assert (small["paths"], big["paths"]) == (PATHS // 10 * fraction, PATHS * fraction)
        assert big["peak"] < MEMORY, big
        assert big["seconds"] < 30 * small["seconds"] + 1, (small, big)

"""Examples are run as a reader would: a copy of the directory, ``envdsl`` on the PATH, commands from the README."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples import console

ROOT = Path(__file__).parents[2]
_LEFT_BEHIND = shutil.ignore_patterns("store", "out", "vendor", "__pycache__", ".ruff_cache")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One environment root for all examples, as a team would have, and so that each wheel is fetched once."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return shared / "examples-store"


@pytest.fixture
def run_readme(tmp_path: Path, store: Path) -> Callable[[Path], None]:
    """Run the commands of the README in a directory with this checkout's ``envdsl``."""
    environment = {**console.environment(tmp_path / "bin"), "ENVDSL_STORE": str(store)}

    def run(directory: Path) -> None:
        console.run(directory / "README.md", environment=environment)

    return run


@pytest.fixture
def copy_example(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of ``examples/NAME`` to run in, without what earlier runs left behind."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(ROOT / "examples" / name, tmp_path / name, ignore=_LEFT_BEHIND))

    return copy

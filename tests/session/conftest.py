"""One store with an interpreter for all tests of the room; each test makes sessions of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from envdsl.realise import python
from envdsl.realise.python import Interpreter, PythonSource
from envdsl.store.store import Store
from tests.session.layers import HERE, PAPER


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("sessions") / "store") as store:
        yield store


@pytest.fixture(scope="session")
def interpreter(store: Store) -> Interpreter:
    return python.install(store, HERE, offline=True)


@pytest.fixture
def paper_interpreter() -> Interpreter:
    """One that exists in no store, for what is pure."""
    return Interpreter(
        python=PAPER,
        full_version="3.12.9",
        implementation="cpython",
        name="cpython-3.12.9-x",
        prefix=Path("/store/python/cpython-3.12.9-x"),
        source=PythonSource("standalone", "cpython-3.12.9-linux-x86_64-gnu"),
        key="1" * 64,
        tree_hash="2" * 64,
    )

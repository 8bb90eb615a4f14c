from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from envdsl.store.store import Store, StorePath
from envdsl.store.treehash import scan

PROJECT = Path(__file__).parents[2]


def key_of(name: str) -> str:
    """A key that a test can read: the name in hexadecimal, filled up."""
    return name.encode().hex().ljust(64, "0")


def write_tree(directory: Path, files: Mapping[str, str]) -> Path:
    for path, content in files.items():
        place = directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content)
    return directory


def put(store: Store, name: str, *, kind: str = "unpack", references: tuple[str, ...] = (), **files: str) -> StorePath:
    """Register a small tree under ``key_of(name)``; ``references`` are names, too."""
    directory = {
        "unpack": "unpacked",
        "source": "sources",
        "layer": "layers",
        "bytecode": "bytecode",
        "python": "python",
    }
    temporary = write_tree(store.temporary(name), files or {"module.py": f"name = {name!r}\n", "layer.json": "{}"})
    return store.register(
        temporary,
        f"{directory[kind]}/{name}",
        key=key_of(name),
        kind=kind,
        listing=scan(temporary),
        references=[key_of(reference) for reference in references],
    )


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory on a file system in memory, where there is one: for tests that sync very often."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(prefix="envdsl-test-", dir=shared) as directory:
        yield Path(directory)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened

"""One store with an interpreter for all tests of the room; each test makes sessions of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LayerId, LayerKind, Platform, PythonVersion
from envdsl.realise import python
from envdsl.realise.python import Interpreter, PythonSource
from envdsl.session.manifest import BoundLayer, BoundPackage, BoundSource
from envdsl.store.store import Store
from envdsl.store.treehash import scan

HERE = PythonVersion(sys.version_info.minor)
PLATFORM = Platform("manylinux", 2, 28, "x86_64")


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
        python=PythonVersion(12),
        full_version="3.12.9",
        implementation="cpython",
        name="cpython-3.12.9-x",
        prefix=Path("/store/python/cpython-3.12.9-x"),
        source=PythonSource("standalone", "cpython-3.12.9-linux-x86_64-gnu"),
        key="1" * 64,
        tree_hash="2" * 64,
    )


def paper_layer(
    name: str,
    kind: LayerKind = LayerKind.BASE,
    packages: Mapping[str, str] | None = None,
    *,
    base: BoundLayer | None = None,
    environment: Mapping[str, str] | None = None,
    python: PythonVersion = PythonVersion(12),
    platform: Platform = PLATFORM,
    root: str = "/store",
    directories: Sequence[str] = ("bin", "site-packages"),
    sources: Sequence[BoundSource] = (),
) -> BoundLayer:
    """A layer as ``compose`` takes it, which need not exist."""
    packages = packages or {}
    key = blake3_hex(canonical_json([name, kind.value, dict(packages), dict(environment or {}), base and base.key]))
    layer = LayerId.of_key(kind, key)
    return BoundLayer(
        kind=kind,
        name=name,
        id=layer,
        key=key,
        tree_hash=blake3_hex(key.encode()),
        path=f"{root}/layers/{layer}",
        python=python,
        platform=platform,
        base=base.id if base else None,
        lock=blake3_hex(name.encode()),
        packages=tuple(
            BoundPackage(
                package,
                version,
                f"{package.replace('-', '_')}-{version}-py3-none-any.whl",
                blake3_hex(f"{package} {version}".encode()),
            )
            for package, version in sorted(packages.items())
        ),
        sources=tuple(sources),
        environment=tuple(sorted((environment or {}).items())),
        directories=tuple(directories),
    )


def real_layer(store: Store, name: str, *arguments: Any, python: PythonVersion = HERE, **options: Any) -> BoundLayer:
    """A small layer in the store: for each package a module of its name with its version, and a program."""
    described = paper_layer(name, *arguments, python=python, root=str(store.layout.root), **options)
    tree = store.temporary(name) / "tree"
    (tree / "site-packages").mkdir(parents=True)
    (tree / "bin").mkdir()
    for package in described.packages:
        (tree / "site-packages" / f"{package.name}.py").write_text(f"__version__ = {package.version!r}\n")
        program = tree / "bin" / f"{package.name}-version"
        program.write_text(f"#!/usr/bin/env python3\nimport {package.name} as p\nprint(p.__version__)\n")
        program.chmod(0o755)
    (tree / "layer.json").write_bytes(canonical_json({"key": described.key}))
    path = store.register(
        tree, f"layers/{described.id}", key=described.key, kind="layer", listing=scan(tree), references=()
    )
    return BoundLayer(
        **{name: getattr(described, name) for name in BoundLayer.__slots__} | {"tree_hash": path.tree_hash}
    )

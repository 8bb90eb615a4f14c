"""Layers for the tests of this room: on paper, and real ones in a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LayerId, LayerKind, Platform, PythonVersion
from envdsl.session.manifest import BoundLayer, BoundPackage, BoundSource
from envdsl.store.store import Store
from envdsl.store.treehash import scan

HERE = PythonVersion(sys.version_info.minor)  # of the Python that runs the tests: certainly to be had
PAPER = PythonVersion(12)
PLATFORM = Platform("manylinux", 2, 28, "x86_64")


def paper_layer(
    name: str,
    kind: LayerKind = LayerKind.BASE,
    packages: Mapping[str, str] | None = None,
    *,
    base: BoundLayer | None = None,
    environment: Mapping[str, str] | None = None,
    python: PythonVersion = PAPER,
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

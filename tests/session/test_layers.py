"""From derivations to what a session binds."""

from __future__ import annotations

import pytest

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Layer, SourceTree, Unpack, WheelFile
from envdsl.model.names import LayerKind
from envdsl.session.layers import bind_layer
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.session.layers import HERE, PLATFORM


def derivation(kind: LayerKind, name: str, version: str, base: Layer | None = None, sources: int = 0) -> Layer:
    wheel = WheelFile(f"{name}-{version}-py3-none-any.whl", "a" * 64, 10)
    trees = tuple(SourceTree(f"{number}" * 64, f"src{number}") for number in range(1, sources + 1))
    env = (("MPLBACKEND", "Agg"), ("A", "1"))
    return Layer(kind, HERE, PLATFORM, (Unpack(name, version, wheel),), (), trees, base, env)


def add(store: Store, key: str, path: str, kind: str) -> str:
    tree = store.temporary("tree") / "tree"
    (tree / "site-packages").mkdir(parents=True)
    (tree / "share").mkdir()
    (tree / "layer.json").write_text(key)
    return store.register(tree, path, key=key, kind=kind, listing=scan(tree)).tree_hash


def test_a_realised_layer_is_bound_with_all_its_facts(store: Store) -> None:
    base = derivation(LayerKind.BASE, "numpy", "2")
    layer = derivation(LayerKind.X, "seaborn", "0.13", base, sources=2)
    tree_hash = add(store, layer.key, store.layout.layer_path(layer.id), "layer")
    for source in layer.sources:
        add(store, source.key, store.layout.source_path(source.key), "source")
    bound = bind_layer(store, "viz", layer, lock="b" * 64)
    assert (bound.name, bound.id, bound.key, bound.base) == ("viz", layer.id, layer.key, base.id)
    assert (bound.tree_hash, bound.lock) == (tree_hash, "b" * 64)
    assert bound.path == str(store.layout.layers / str(layer.id))
    assert [(item.name, item.version, item.sha256) for item in bound.packages] == [("seaborn", "0.13", "a" * 64)]
    assert [source.key for source in bound.sources] == [source.key for source in layer.sources]
    assert bound.environment == (("A", "1"), ("MPLBACKEND", "Agg"))
    assert bound.directories == ("share", "site-packages")


def test_a_layer_that_was_not_built_is_missing(store: Store) -> None:
    with pytest.raises(EnvdslError) as caught:
        bind_layer(store, "nothing", derivation(LayerKind.BASE, "never-built", "1"))
    assert caught.value.code == "session-layer-missing"
    assert caught.value.diagnostics[0].hint == "envdsl build"

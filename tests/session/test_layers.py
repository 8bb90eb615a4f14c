"""From layers in the store to what a session binds. The layers are linked by the room ``realise``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Layer, SourceTree, Unpack, WheelFile
from envdsl.model.names import LayerId, LayerKind
from envdsl.realise.layer import Part, link_layer
from envdsl.session.layers import bind_layer, overlaps
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.session.layers import HERE, PLATFORM


def part(store: Store, name: str, version: str, files: dict[str, str]) -> Part:
    tree = store.temporary(name) / "tree"
    for path, content in files.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(content)
    wheel = WheelFile(f"{name}-{version}-py3-none-any.whl", "a" * 64, 10)
    return Part(Unpack(name, version, wheel), tree, scan(tree), None)


def realised(store: Store, kind: LayerKind, *parts: Part, base: Layer | None = None, sources: int = 0) -> Layer:
    trees = tuple(SourceTree(f"{number}" * 64, f"src{number}") for number in range(1, sources + 1))
    env = (("MPLBACKEND", "Agg"), ("A", "1"))
    layer = Layer(kind, HERE, PLATFORM, tuple(item.unpack for item in parts), (), trees, base, env)
    for source in trees:
        tree = store.temporary("source") / "tree"
        tree.mkdir()
        store.register(tree, store.layout.source_path(source.key), key=source.key, kind="source", listing=scan(tree))
    root = store.temporary("layer") / "root"
    root.mkdir()
    farm = link_layer(layer, parts, root)
    store.register(root, store.layout.layer_path(layer.id), key=layer.key, kind="layer", listing=farm.listing)
    return layer


def test_a_realised_layer_is_bound_with_all_its_facts(store: Store) -> None:
    base = realised(store, LayerKind.BASE, part(store, "numpy", "2", {"site-packages/numpy.py": ""}))
    seaborn = part(store, "seaborn", "0.13", {"site-packages/seaborn.py": "", "bin/sns": "", "share/doc": ""})
    layer = realised(store, LayerKind.X, seaborn, base=base, sources=2)
    bound = bind_layer(store, "viz", layer.id, lock="b" * 64)
    assert (bound.kind, bound.name, bound.id, bound.key) == (LayerKind.X, "viz", layer.id, layer.key)
    assert (bound.base, bound.lock) == (base.id, "b" * 64)
    assert (bound.python, bound.platform) == (HERE, PLATFORM)
    assert bound.path == str(store.layout.layers / str(layer.id))
    assert bound.tree_hash == scan(Path(bound.path)).tree_hash()
    assert [(item.name, item.version, item.filename, item.sha256) for item in bound.packages] == [
        ("seaborn", "0.13", "seaborn-0.13-py3-none-any.whl", "a" * 64)
    ]
    assert [source.key for source in bound.sources] == [source.key for source in layer.sources]
    assert bound.environment == (("A", "1"), ("MPLBACKEND", "Agg"))
    assert bound.directories == ("bin", "share", "site-packages")


def test_a_layer_that_was_not_built_is_missing(store: Store) -> None:
    with pytest.raises(EnvdslError) as caught:
        bind_layer(store, "nothing", LayerId(LayerKind.BASE, "0" * 32))
    assert caught.value.code == "session-layer-missing"
    assert caught.value.diagnostics[0].hint == "envdsl build"


def test_a_layer_that_does_not_say_what_it_is_is_damaged(store: Store) -> None:
    layer = realised(store, LayerKind.BASE, part(store, "hurt", "1", {"site-packages/hurt.py": ""}))
    facts = store.layout.layers / str(layer.id) / "layer.json"
    facts.chmod(0o644)
    facts.write_text('{"format": 1, "id": "base-other"}')
    with pytest.raises(EnvdslError) as caught:
        bind_layer(store, "hurt", layer.id)
    assert caught.value.code == "session-layer-damaged"


def test_x_layers_whose_order_would_matter_are_told(store: Store) -> None:
    same = {"site-packages/same.py": "1"}
    one = realised(store, LayerKind.X, part(store, "one", "1", same | {"bin/tool": "1", "site-packages/ns/a.py": ""}))
    two = realised(store, LayerKind.X, part(store, "two", "1", same | {"bin/tool": "2", "site-packages/ns/b.py": ""}))
    three = realised(store, LayerKind.X, part(store, "three", "1", same | {"site-packages/ns/c.py": ""}))
    bound = [bind_layer(store, name, layer.id) for name, layer in (("one", one), ("two", two), ("three", three))]
    found = overlaps(store, bound)
    assert [item.code for item in found] == ["session-file-conflict"]
    assert found[0].details == {"layers": ["one", "two"], "paths": ["bin/tool"]}
    base = dataclasses.replace(bound[0], kind=LayerKind.BASE)
    assert overlaps(store, [base, *bound[1:]]) == []

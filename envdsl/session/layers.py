"""From a realised layer to what a session binds: its derivation gives the facts, the store proves that it is there."""

from __future__ import annotations

import os

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Layer
from envdsl.session.manifest import BoundLayer, BoundPackage, BoundSource
from envdsl.store.store import Store, StorePath


def bind_layer(store: Store, name: str, layer: Layer, *, lock: str | None = None) -> BoundLayer:
    """``layer``, which the project calls ``name``, as a session binds it. ``lock`` is the blake3 of its lock file.

    Raises EnvdslError ``session-layer-missing`` where the store does not have it, or one of its sources.
    """
    what = f"the layer {name} ({layer.id})"
    path = _valid(store, layer.key, what)
    place = store.layout.absolute(path.path)
    sources = []
    for source in layer.sources:
        found = _valid(store, source.key, f"the source {source.path} of {what}")
        sources.append(BoundSource(source.key, found.tree_hash, str(store.layout.absolute(found.path))))
    with os.scandir(place) as entries:
        directories = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return BoundLayer(
        kind=layer.layer_kind,
        name=name,
        id=layer.id,
        key=layer.key,
        tree_hash=path.tree_hash,
        path=str(place),
        python=layer.python,
        platform=layer.platform,
        base=layer.base.id if layer.base else None,
        lock=lock,
        packages=tuple(
            BoundPackage(unpack.name, unpack.version, unpack.wheel.filename, unpack.wheel.sha256)
            for unpack in sorted(layer.unpacks, key=lambda unpack: unpack.name)
        ),
        sources=tuple(sources),
        environment=tuple(sorted(layer.env)),
        directories=tuple(directories),
    )


def _valid(store: Store, key: str, what: str) -> StorePath:
    path = store.lookup(key)
    if path is None:
        raise EnvdslError.of(
            "session-layer-missing", f"{what} is not in the store {store.layout.root}", hint="envdsl build"
        )
    return path

"""From a realised layer to what a session binds: ``layer.json`` gives the facts, the store proves that it is valid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.model.names import LayerId, LayerKind, Platform, PythonVersion
from envdsl.session.manifest import BoundLayer, BoundPackage, BoundSource
from envdsl.store.store import Store
from envdsl.store.treehash import Entry

_FACTS = "layer.json"
_FORMAT = 1


def bind_layer(store: Store, name: str, layer: LayerId, *, lock: str | None = None) -> BoundLayer:
    """The layer with the id ``layer``, which the project calls ``name``, as a session binds it. ``lock`` is the blake3
    of the lock file that it was built from, where there was one.

    Raises EnvdslError: ``session-layer-missing`` where the store does not have it, or one of its sources;
    ``session-layer-damaged`` where it does not say what it is.
    """
    what = f"the layer {name} ({layer})"
    path = store.lookup_path(store.layout.layer_path(layer))
    if path is None:
        raise _missing(store, what)
    place = store.layout.absolute(path.path)
    try:
        facts: dict[str, Any] = json.loads((place / _FACTS).read_bytes())
        if facts["format"] != _FORMAT or facts["id"] != str(layer) or facts["key"] != path.key:
            raise ValueError(f"format {facts['format']}, id {facts['id']}")
        return BoundLayer(
            kind=layer.kind,
            name=name,
            id=layer,
            key=path.key,
            tree_hash=path.tree_hash,
            path=str(place),
            python=PythonVersion.parse(facts["python"]),
            platform=Platform.parse(facts["platform"]),
            base=LayerId.parse(facts["base"]["id"]) if facts["base"] else None,
            lock=lock,
            packages=tuple(
                BoundPackage(item["name"], item["version"], item["wheel"], item["sha256"]) for item in facts["packages"]
            ),
            sources=tuple(_source(store, item["key"], what) for item in facts["sources"]),
            environment=tuple(sorted(facts["env"].items())),
            directories=tuple(facts["directories"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EnvdslError.of(
            "session-layer-damaged",
            f"{_FACTS} of {what} is damaged: {error}",
            hint="envdsl verify --repair",
        ) from error


def overlaps(store: Store, layers: Sequence[BoundLayer]) -> list[Diagnostic]:
    """Files that two x layers both bring, with different content: which one counts would depend on their order.

    What a base and its x layers share was checked when they were built.
    """
    extensions = [layer for layer in layers if layer.kind is LayerKind.X]
    found: list[Diagnostic] = []
    for number, second in enumerate(extensions):
        for first in extensions[:number]:
            paths: list[str] = []

            def note(kept: Entry, other: Entry, paths: list[str] = paths) -> Entry:
                if kept.path != _FACTS:
                    paths.append(kept.path)
                return kept

            store.listing(first.key).union(store.listing(second.key), resolve=note)
            if paths:
                more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
                found.append(
                    Diagnostic(
                        "session-file-conflict",
                        f"{first.name} and {second.name} bring {sorted(paths)[0]}{more} with different content",
                        hint="bind one of them, or declare one x layer with the packages of both: the build says which "
                        "distributions collide",
                        details={"layers": [first.name, second.name], "paths": sorted(paths)},
                    )
                )
    return found


def _source(store: Store, key: str, what: str) -> BoundSource:
    path = store.lookup(key)
    if path is None:
        raise _missing(store, f"a source of {what}")
    return BoundSource(key, path.tree_hash, str(store.layout.absolute(path.path)))


def _missing(store: Store, what: str) -> EnvdslError:
    return EnvdslError.of(
        "session-layer-missing", f"{what} is not in the store {store.layout.root}", hint="envdsl build"
    )

"""The output of the room ``realise``: layers that stand in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envdsl.errors import Diagnostic
from envdsl.model.names import LayerId


@dataclass(frozen=True, slots=True)
class RealisedLayer:
    """One layer in the store. ``path`` is absolute; ``size`` in bytes and ``files`` count what the layer names, shared
    with others or not; ``reused`` says that it was there already."""

    name: str
    id: LayerId
    key: str
    path: Path
    tree_hash: str
    size: int
    files: int
    reused: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "id": str(self.id),
            "key": self.key,
            "path": str(self.path),
            "treeHash": self.tree_hash,
            "size": self.size,
            "files": self.files,
            "reused": self.reused,
        }


@dataclass(frozen=True, slots=True)
class Realisation:
    """What a build did.

    ``layers`` by declared name (sorted). ``built`` and ``reused`` count derivations by kind; what a valid layer
    is made of is not looked at and not counted. ``seconds`` is the wall time of each stage;
    wheels are unpacked while others are fetched, and "unpack" includes that.
    """

    layers: Mapping[str, RealisedLayer]
    built: Mapping[str, int]
    reused: Mapping[str, int]
    seconds: Mapping[str, float]
    warnings: tuple[Diagnostic, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "layers": [layer.to_json() for layer in self.layers.values()],
            "built": dict(self.built),
            "reused": dict(self.reused),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }

"""Derivations: build steps as data. The key of a derivation is the blake3 of its canonical form.

A key depends on content alone: not on a layer's name, the file it stands in, the machine, the user,
the time or the directory of the store. Golden keys stand in ``tests/keys``; whoever changes one
raises the recipe version and writes a line in the changelog.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LayerId, LayerKind, Platform, PythonVersion

FORMAT = 1
UNPACK_RECIPE = 1
BYTECODE_RECIPE = 1
LAYER_RECIPE = 1
X_LAYER_RECIPE = 2  # 2: x layers have links to libraries of their base

# The magic numbers of released interpreters (PEP 3147, `importlib.util.MAGIC_NUMBER`). A feature
# release never changes its own, so a key needs no interpreter; the compiler checks it against the real one.
MAGIC_NUMBERS = {10: 3439, 11: 3495, 12: 3531, 13: 3571, 14: 3627}


@dataclass(frozen=True)
class _Keyed:
    kind: ClassVar[str]

    def inputs(self) -> dict[str, Any]:
        raise NotImplementedError

    def dependencies(self) -> tuple[Derivation, ...]:
        """The derivations whose outputs this one reads, each once, in the order of their keys."""
        return ()

    def canonical(self) -> bytes:
        """The canonical form: what ``drv/<hash>.json`` holds, byte for byte."""
        return canonical_json({"format": FORMAT, "kind": self.kind, **self.inputs()})

    @cached_property
    def key(self) -> str:
        """64 hexadecimal digits."""
        return blake3_hex(self.canonical())


@dataclass(frozen=True)
class WheelFile(_Keyed):
    """A verified wheel in the wheelhouse (fixed output)."""

    kind: ClassVar[str] = "wheel"
    filename: str
    sha256: str
    size: int

    def inputs(self) -> dict[str, Any]:
        return {"filename": self.filename, "sha256": self.sha256, "size": self.size}


@dataclass(frozen=True)
class Unpack(_Keyed):
    """One distribution's files, laid out by the wheel specification.

    ``record_mismatch`` says that the layer waives the check of RECORD for it; a waiver changes what is
    accepted and never what is laid out, yet it stands in the key, so that a layer without the waiver
    does not profit from one with it.
    """

    kind: ClassVar[str] = "unpack"
    name: str
    version: str
    wheel: WheelFile
    record_mismatch: bool = False

    def inputs(self) -> dict[str, Any]:
        inputs: dict[str, Any] = {"recipe": UNPACK_RECIPE, "wheel": self.wheel.key}
        if self.record_mismatch:
            inputs["record-mismatch"] = True
        return inputs

    def dependencies(self) -> tuple[Derivation, ...]:
        return (self.wheel,)


@dataclass(frozen=True)
class Bytecode(_Keyed):
    """The bytecode of one unpacked distribution for one feature release, as unchecked-hash files (PEP 552)."""

    kind: ClassVar[str] = "bytecode"
    unpack: Unpack
    python: PythonVersion

    def inputs(self) -> dict[str, Any]:
        return {
            "magic": MAGIC_NUMBERS[self.python.minor],
            "python": self.python.tag,
            "recipe": BYTECODE_RECIPE,
            "unpack": self.unpack.key,
        }

    def dependencies(self) -> tuple[Derivation, ...]:
        return (self.unpack,)


@dataclass(frozen=True)
class SourceTree(_Keyed):
    """A copy of a directory of the project, by its tree hash."""

    kind: ClassVar[str] = "source"
    tree_hash: str
    path: str  # where to copy it from; no part of the key

    def inputs(self) -> dict[str, Any]:
        return {"tree": self.tree_hash}


@dataclass(frozen=True)
class Layer(_Keyed):
    """A layer: hard links to its distributions and their bytecode, with its own facts in ``layer.json``."""

    kind: ClassVar[str] = "layer"
    layer_kind: LayerKind
    python: PythonVersion
    platform: Platform
    unpacks: tuple[Unpack, ...]
    bytecode: tuple[Bytecode, ...]
    sources: tuple[SourceTree, ...]
    base: Layer | None
    env: tuple[tuple[str, str], ...]
    collisions: tuple[str, ...] = ()

    def inputs(self) -> dict[str, Any]:
        return {
            "base": self.base.key if self.base else None,
            "bytecode": sorted(item.key for item in self.bytecode),
            "collisions": sorted(self.collisions),
            "env": dict(self.env),
            "layer": self.layer_kind.value,
            "platform": str(self.platform),
            "python": self.python.tag,
            "recipe": LAYER_RECIPE if self.base is None else X_LAYER_RECIPE,
            "sources": [item.key for item in self.sources],
            "unpack": sorted(item.key for item in self.unpacks),
        }

    def dependencies(self) -> tuple[Derivation, ...]:
        parts: list[Derivation] = [*self.unpacks, *self.bytecode, *self.sources]
        if self.base is not None:
            parts.append(self.base)
        return tuple({part.key: part for part in sorted(parts, key=lambda part: part.key)}.values())

    @property
    def id(self) -> LayerId:
        return LayerId.of_key(self.layer_kind, self.key)


Derivation: TypeAlias = WheelFile | Unpack | Bytecode | SourceTree | Layer

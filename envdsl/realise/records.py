"""Derivations from what builds wrote down: ``drv/<hash>.json``, one canonical form each.

A record is believed where the key that follows from it is the one that it was asked for by, so a record that was
changed by hand, or written by another version of the recipes, is as good as none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Bytecode, Derivation, Layer, SourceTree, Unpack, WheelFile
from envdsl.model.digest import store_hash
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.store.store import Store, StorePath


class Records:
    """Derivations by key, from the project or from what builds wrote down."""

    def __init__(self, store: Store, known: Mapping[str, Derivation]) -> None:
        self._store = store
        self._known = dict(known)

    def derivation(self, path: StorePath) -> Derivation:
        """Raises EnvdslError ``repair-no-record``."""
        try:
            return self._find(path.key)
        except (LookupError, ValueError, TypeError, OSError) as error:
            raise EnvdslError.of(
                "repair-no-record",
                f"{path.path}: what it was made from is not on record ({error or type(error).__name__})",
                hint="run `envdsl verify --repair` in the project that it belongs to, with the envdsl that built it",
            ) from error

    def layer(self, key: str, what: str) -> Layer:
        """The layer with that key, which messages call ``what``. Raises EnvdslError ``realise-no-record``."""
        try:
            found: Layer = self._of(Layer, key)
        except (LookupError, ValueError, TypeError, OSError) as error:
            raise EnvdslError.of(
                "realise-no-record",
                f"what {what} was made from is not on record ({error or type(error).__name__})",
                hint="run `envdsl build` in the project that declares it, with the envdsl that built it",
            ) from error
        return found

    def _find(self, key: str) -> Derivation:
        found = self._known.get(key)
        if found is None:
            form = json.loads((self._store.layout.drv / f"{store_hash(key)}.json").read_bytes())
            found = self._known[key] = self._read(key, form)
            if found.key != key:
                raise ValueError("the record in drv/ is another's, or of another version")
        return found

    def _read(self, key: str, form: Mapping[str, Any]) -> Derivation:
        match form["kind"]:
            case "wheel":
                return WheelFile(form["filename"], form["sha256"], form["size"])
            case "unpack":
                name, version = self._name_and_version(key)
                wheel = self._of(WheelFile, form["wheel"])
                return Unpack(name, version, wheel, bool(form.get("record-mismatch", False)))
            case "bytecode":
                return Bytecode(self._of(Unpack, form["unpack"]), _python(form["python"]))
            case "layer":
                return Layer(
                    layer_kind=LayerKind(form["layer"]),
                    python=_python(form["python"]),
                    platform=Platform.parse(form["platform"]),
                    unpacks=tuple(self._of(Unpack, item) for item in form["unpack"]),
                    bytecode=tuple(self._of(Bytecode, item) for item in form["bytecode"]),
                    sources=tuple(self._source(item) for item in form["sources"]),
                    base=self._of(Layer, form["base"]) if form["base"] is not None else None,
                    env=tuple(sorted(form["env"].items())),
                    collisions=tuple(form["collisions"]),
                )
            case kind:
                raise ValueError(f"a {kind} cannot be made without its project")

    def _of(self, kind: type[Any], key: str) -> Any:
        found = self._find(key)
        if not isinstance(found, kind):
            raise TypeError(f"a {found.kind} where a {kind.kind} belongs")
        return found

    def _source(self, key: str) -> SourceTree:
        """A source that is there need not be copied, so it may come without its directory."""
        known = self._known.get(key)
        if isinstance(known, SourceTree):
            return known
        form = json.loads((self._store.layout.drv / f"{store_hash(key)}.json").read_bytes())
        return SourceTree(form["tree"], f"of {key[:16]}…")

    def _name_and_version(self, key: str) -> tuple[str, str]:
        """``unpacked/<hash>-<name>-<version>``; no version has a hyphen (PEP 440)."""
        row = self._store.registry.by_key(key)
        if row is None:
            raise LookupError(f"{key} is not in the store")
        name, _, version = row.path.partition("/")[2].partition("-")[2].rpartition("-")
        return name, version


def _python(tag: str) -> PythonVersion:
    """``cp312`` as in a key."""
    return PythonVersion.parse(f"3.{tag.removeprefix('cp3')}")

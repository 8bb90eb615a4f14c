"""From wheel files to derivations, outputs and stores."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from packaging.utils import canonicalize_name

from envdsl.graph.compile import Graph
from envdsl.graph.derivation import Bytecode, Layer, SourceTree, Unpack, WheelFile
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.realise.intake import open_wheel
from envdsl.realise.unpack import Unpacking
from envdsl.store.store import Store
from envdsl.store.treehash import Entry, Listing
from tests.wheels import sha256

PLATFORM = Platform.parse("manylinux_2_28_x86_64")


def unpack_of(wheel: Path, *, record_mismatch: bool = False) -> Unpack:
    name, version = wheel.name.split("-")[:2]
    file = WheelFile(wheel.name, sha256(wheel), wheel.stat().st_size)
    return Unpack(canonicalize_name(name), version, file, record_mismatch)


def unpacked(wheel: Path, root: Path, *, record_mismatch: bool = False) -> Listing:
    """Take in and unpack ``wheel`` into the new directory ``root``."""
    root.mkdir(parents=True)
    with open_wheel(wheel, unpack_of(wheel, record_mismatch=record_mismatch)) as intake:
        unpacking = Unpacking(intake, root)
        for batch in unpacking.batches:
            unpacking.write(batch)
        return unpacking.finish()


def altered(wheel: Path, changes: Mapping[str, bytes | None]) -> Path:
    """Rewrite members of a wheel in place (None removes one), leaving RECORD as it is."""
    with zipfile.ZipFile(wheel) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    for name, content in changes.items():
        if content is None:
            del members[name]
        else:
            members[name] = content
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return wheel


def base_of(
    wheels: Sequence[Path],
    python: PythonVersion | None = None,
    *,
    kind: LayerKind = LayerKind.BASE,
    base: Layer | None = None,
    collisions: Sequence[str] = (),
    sources: Sequence[SourceTree] = (),
    waived: Sequence[str] = (),
) -> Layer:
    """A layer of ``wheels``, with bytecode where ``python`` is given."""
    unpacks = tuple(unpack_of(wheel, record_mismatch=wheel.name.split("-")[0] in waived) for wheel in wheels)
    return Layer(
        layer_kind=kind,
        python=python or PythonVersion(12),
        platform=PLATFORM,
        unpacks=unpacks,
        bytecode=tuple(Bytecode(unpack, python) for unpack in unpacks) if python else (),
        sources=tuple(sources),
        base=base,
        env=(),
        collisions=tuple(collisions),
    )


def graph_of(**layers: Layer) -> Graph:
    return Graph(PLATFORM, layers, {})


class Wheels:
    """A fetcher that takes wheels from where the test made them, and counts what it was asked for."""

    def __init__(self, store: Store, *wheels: Path) -> None:
        self.store = store
        self.places = {wheel.name: wheel for wheel in wheels}
        self.fetched: list[str] = []

    def __call__(self, wheels: Sequence[WheelFile], *, ready: Callable[[WheelFile], None] | None = None) -> None:
        for wheel in wheels:
            self.fetched.append(wheel.filename)
            if self.store.lookup(wheel.key) is not None:
                continue
            content = self.places[wheel.filename].read_bytes()
            temporary = self.store.temporary("wheel") / wheel.filename
            temporary.write_bytes(content)
            from blake3 import blake3

            listing = Listing([Entry(wheel.filename, "file", False, len(content), blake3(content).hexdigest())])
            path = self.store.layout.wheel_path(wheel.sha256, wheel.filename)
            self.store.register(temporary, path, key=wheel.key, kind="wheel", listing=listing)

"""``envdsl bundle create``: everything first as a list, then the file.

The list is made from the store's listings, so that nothing is read twice; what is read while the file is written
has to be what the list says.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app import building, fetching
from envdsl.app.bundles import content, signing
from envdsl.app.bundles.manifest import NAME, Bundle, BundledPath, Item
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.store.archive import Member, Writer
from envdsl.store.treehash import hash_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.realise.python import Interpreter
    from envdsl.store.treehash import Entry, Listing

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Created:
    """What ``bundle create`` prints. ``sha256`` is for whoever imports the file, by another way than the file's, and so
    is ``signer``, the public key of a bundle that is signed."""

    file: Path
    size: int
    sha256: str
    layers: tuple[str, ...]
    kinds: dict[str, int]
    signer: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "size": self.size,
            "sha256": self.sha256,
            "layers": list(self.layers),
            "paths": self.kinds,
            "signer": self.signer,
        }


def create(
    project: Project,
    names: Sequence[str],
    file: Path,
    *,
    all_platforms: bool = False,
    interpreter: bool = True,
    layers: bool = False,
    offline: bool = False,
    key: Path | None = None,
) -> Created:
    """Write a bundle of these layers (all without names) and of their bases to ``file``.

    What is missing in the wheelhouse is fetched; with ``layers`` the layers are built first and their outputs are in
    it; ``key`` is the file of the private key to sign with. The same project and store give the same bytes. ``file`` is
    replaced when the new one is whole.
    Raises :class:`EnvdslError`.
    """
    _check_place(file)
    private = signing.read_private(key) if key is not None else None
    with project.store.lease():
        if layers:
            building.build(project, names, offline=offline)
        fetched = fetching.fetch(project, names, all_platforms=all_platforms, interpreter=interpreter, offline=offline)
        chosen = project.select(names)
        bundle, places = _plan(project, chosen, names, fetched.interpreters, all_platforms, layers)
        bundle.check(file.name)
        if private is not None:
            bundle = replace(bundle, signer=signing.hexadecimal(private.public_key()))
        size, sha256 = _write(project, bundle, places, file, private)
    kinds: dict[str, int] = {}
    for path in bundle.paths:
        kinds[path.kind] = kinds.get(path.kind, 0) + 1
    return Created(file, size, sha256, bundle.layers, dict(sorted(kinds.items())), bundle.signer)


def _plan(
    project: Project,
    chosen: Sequence[LayerSpec],
    names: Sequence[str],
    interpreters: Iterable[Interpreter],
    all_platforms: bool,
    layers: bool,
) -> tuple[Bundle, dict[str, Path]]:
    """The bundle, and where each file of it is to be read from, by member."""
    root = project.config.root
    files = {
        path: Item(path, "file", *hash_file(os.fsencode(root / path)))
        for path in content.project_files(project, chosen)
    }
    sources = content.source_files(project, chosen)
    files |= {path: _item(entry, root / path, path) for path, entry in sources.items()}
    wheels = fetching.wanted_wheels(project, chosen, names, all_platforms=all_platforms)
    paths = [_bundled(project, item.wheel.key) for item in wheels if not item.local]
    paths += [_interpreter(project, item) for item in interpreters]
    if layers:
        known: dict[tuple[str, bool], str] = {}
        for derivation in content.realised(project, chosen, project.platform).values():
            paths.append(_bundled(project, derivation.key, known))
    bundle = Bundle(
        platform=project.platform,
        layers=tuple(sorted(layer.name for layer in chosen)),
        project=tuple(item for _, item in sorted(files.items())),
        paths=tuple(paths),
    )
    places = {
        member.name: root / item.path for item, member in zip(bundle.project, bundle.project_members, strict=True)
    }
    for path in bundle.paths:
        place = project.store.layout.absolute(path.path)
        for item, member in zip(path.items, path.members, strict=True):
            places[member.name] = place if path.kind == "wheel" else place / item.path
    return bundle, places


def _bundled(project: Project, key: str, known: dict[tuple[str, bool], str] | None = None) -> BundledPath:
    """A valid path of the store. Files of layers become links to files in ``known`` (names by content), which those
    of other kinds join."""
    path = project.store.lookup(key)
    if path is None:
        raise EnvdslError.of("app-bundle-lost", f"{key} vanished from the store", hint="run the command again")
    items = _items(project.store.listing(key), project.store.layout.absolute(path.path))
    bundled = BundledPath(path.kind, path.path, path.key, path.tree_hash, tuple(items))
    if known is None:
        return bundled
    if path.kind == "layer":
        items = [_linked(item, known) for item in items]
        return BundledPath(path.kind, path.path, path.key, path.tree_hash, tuple(items))
    for item, member in zip(bundled.items, bundled.members, strict=True):
        if item.type == "file":
            known.setdefault((item.digest, item.executable), member.name)
    return bundled


def _linked(item: Item, known: dict[tuple[str, bool], str]) -> Item:
    target = known.get((item.digest, item.executable)) if item.type == "file" else None
    return item if target is None else Item(item.path, "link", item.size, item.digest, item.executable, target)


def _interpreter(project: Project, interpreter: Interpreter) -> BundledPath:
    from dataclasses import asdict

    from envdsl.realise.python import content_key

    path = _bundled(project, interpreter.key)
    if content_key(interpreter.implementation, interpreter.full_version, path.listing) != interpreter.key:
        raise EnvdslError.of(
            "app-bundle-interpreter",
            f"{path.path} was made by another version of envdsl, so nobody can check what it is",
            hint=f"install Python {interpreter.python} in a new store, or leave it out (--no-interpreter)",
        )
    return replace(path, facts=asdict(interpreter.source) | {"missing": list(interpreter.source.missing)})


def _items(listing: Listing, place: Path) -> list[Item]:
    """What is in a listing; directories only where nothing is in them."""
    filled = {entry.path.rpartition("/")[0] for entry in listing}
    return [
        _item(entry, place / entry.path, entry.path)
        for entry in listing
        if entry.type != "directory" or entry.path not in filled
    ]


def _item(entry: Entry, place: Path, path: str) -> Item:
    try:
        path.encode()
        if entry.type == "file":
            return Item(path, "file", entry.size, entry.digest, entry.executable)
        if entry.type == "directory":
            return Item(path, "directory")
        target = str(place.readlink())
        target.encode()
        return Item(path, "symlink", target=target)
    except UnicodeEncodeError:
        raise EnvdslError.of(
            "app-bundle-name",
            f"{os.fsencode(place)!r} has a name or a target that is not UTF-8",
            hint="rename it: not every system can have such a file",
        ) from None


def _check_place(file: Path) -> None:
    if not file.parent.is_dir():
        raise EnvdslError.of(
            "app-bundle-place",
            f"there is no directory {file.parent} to write {file.name} into",
            exit_status=ExitStatus.USAGE,
        )


def _write(
    project: Project, bundle: Bundle, places: dict[str, Path], file: Path, key: Ed25519PrivateKey | None
) -> tuple[int, str]:
    total = sum(member.size for member in bundle.members())
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with new.open("xb") as stream, project.reporter.task("Bundling", total, "B") as task:
            writer = Writer(stream)
            manifest = bundle.encode()
            writer.add_list(NAME, manifest)
            if key is not None:
                writer.add_list(signing.NAME, signing.sign(key, manifest))
            for member in bundle.members():
                task.describe(member.name.rpartition("/")[2])
                writer.add(member, _blocks(member, places[member.name]))
                task.advance(member.size)
            writer.finish()
            stream.flush()
            os.fsync(stream.fileno())
        with new.open("rb") as written:
            sha256 = hashlib.file_digest(written, "sha256").hexdigest()
        size = new.stat().st_size
        new.replace(file)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return size, sha256


def _blocks(member: Member, place: Path) -> Iterator[bytes]:
    if member.type == "file":
        with place.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block

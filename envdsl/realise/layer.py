"""A layer: a farm of hard links over unpacked distributions and their bytecode, and ``layer.json``.

Nothing is read or hashed: the listing of a layer is put together from those of its parts. A file system that
allows no more links to a file (or none at all) gets a copy of it.
"""

# Calls of os with strings, not pathlib: there are very many of them.
# ruff: noqa: PTH101, PTH102

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envdsl.errors import Diagnostic
from envdsl.graph.derivation import Layer, Unpack
from envdsl.model.canonical import canonical_json
from envdsl.realise import stdlib
from envdsl.realise.collisions import Owner, Ownership, Waived, claim
from envdsl.realise.dynamic import Dynamic, read_dynamic
from envdsl.realise.libraries import borrow
from envdsl.realise.writer import TreeWriter
from envdsl.store.layout import Layout
from envdsl.store.tree import DIRECTORY_MODE, MTIME, file_mode
from envdsl.store.treehash import Entry, Listing, ListingConflictError

FORMAT = 1
FACTS = "layer.json"
_NO_LINK = frozenset({errno.EMLINK, errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
_EXTENSION = re.compile(r"(?P<name>[^.]+)(?:\.(?:cpython|pypy|abi3|graalpy)[^/]*)?\.so")
_TIMES = (MTIME * 10**9, MTIME * 10**9)


@dataclass(frozen=True)
class Part:
    """One distribution of a layer, realised: its files, and its bytecode where the layer has any."""

    unpack: Unpack
    tree: Path
    listing: Listing
    bytecode: tuple[Path, Listing] | None


@dataclass(frozen=True)
class Farm:
    """What :func:`link_layer` made."""

    listing: Listing
    warnings: tuple[Diagnostic, ...]


def link_layer(layer: Layer, parts: Sequence[Part], root: Path, *, below: Owner | None = None, name: str = "") -> Farm:
    """Fill the empty directory ``root`` with the layer. ``below`` is what its base has, ``name`` is for messages.

    Raises EnvdslError ``layer-collision…``; OSError from the disk.
    """
    from concurrent.futures import ThreadPoolExecutor

    parts = sorted(parts, key=lambda part: part.unpack.name)
    ownership = claim(
        [Owner(part.unpack.name, part.tree, part.listing) for part in parts],
        layer.collisions,
        layer=name or str(layer.id),
        below=below,
    )
    files = _with_bytecode(parts, ownership)
    borrowed = _borrowed(files, below) if below else {}
    files |= borrowed
    writer = TreeWriter(root)
    # Links are the kernel's work, what the layer says of itself is ours.
    with ThreadPoolExecutor(1) as executor:
        linking = executor.submit(link_files, [(path, str(tree)) for path, (_, tree) in files.items()], root)
        imports = [import_names(part.listing) for part in parts]
        facts = _facts(layer, parts, imports, ownership, files)
        if below and borrowed:
            facts["borrowed"] = [{"from": below.named(path), "path": path} for path in borrowed]
        writer.write(FACTS, canonical_json(facts))
        listing = _listing(parts, files, [*writer.entries, *(entry for entry, _ in borrowed.values())])
        linking.result()
    return Farm(listing, tuple(_shadowing(layer, parts, imports, name)))


def _with_bytecode(parts: Sequence[Part], ownership: Ownership) -> dict[str, tuple[Entry, Path]]:
    """Every file of the layer with the tree that it comes from. Bytecode belongs to whoever owns its source."""
    files = {path: (entry, parts[index].tree) for path, (entry, index) in ownership.files.items()}
    for index, part in enumerate(parts):
        if part.bytecode is None:
            continue
        tree, listing = part.bytecode
        for entry in listing:
            if entry.type == "directory":
                continue
            _, owner = ownership.files.get(source_of(entry.path), (None, None))
            if owner == index:
                files[entry.path] = (entry, tree)
    return files


def _borrowed(files: Mapping[str, tuple[Entry, Path]], below: Owner) -> dict[str, tuple[Entry, Path]]:
    """The base's shared libraries that those of the layer look for beside themselves."""

    def read(path: str, borrowed: bool) -> Dynamic | None:
        return read_dynamic((below.tree if borrowed else files[path][1]) / path)

    own = {path: entry for path, (entry, _) in files.items()}
    return {path: (entry, below.tree) for path, entry in borrow(own, below.listing, read).items()}


def _listing(parts: Sequence[Part], files: Mapping[str, tuple[Entry, Path]], more: Sequence[Entry]) -> Listing:
    """``more`` is what comes from no part: the facts, and what is borrowed."""
    listings = [part.listing for part in parts] + [part.bytecode[1] for part in parts if part.bytecode is not None]
    try:
        return Listing(more).union(*listings)
    except (
        ListingConflictError
    ):  # waived collisions and legacy namespace packages: not all files of all parts are there
        return Listing([*(entry for entry, _ in files.values()), *(entry for entry in more if entry.path not in files)])


def source_of(pyc: str) -> str:
    """``a/__pycache__/b.cpython-312.pyc`` -> ``a/b.py``"""
    directory, _, name = pyc.rpartition("/")
    return f"{directory.removesuffix('__pycache__')}{name.partition('.cpython-')[0]}.py"


def link_files(files: Iterable[tuple[str, str]], root: Path) -> None:
    """Hard links below ``root``: for each ``(path, tree)`` to the sealed file ``tree/path``. Directories are sealed."""
    prefix = f"{root}/"
    made = {""}

    def make(directory: str) -> None:
        if directory not in made:
            make(directory.rpartition("/")[0])
            os.mkdir(prefix + directory, 0o755)
            made.add(directory)

    for path, tree in files:
        make(path.rpartition("/")[0])
        _link(f"{tree}/{path}", prefix + path)
    for directory in sorted(made - {""}, reverse=True):
        os.chmod(prefix + directory, DIRECTORY_MODE)
        os.utime(prefix + directory, ns=_TIMES)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        import shutil

        shutil.copyfile(source, target, follow_symlinks=False)
        os.chmod(target, file_mode(os.access(source, os.X_OK)))
        os.utime(target, ns=_TIMES)


def import_names(listing: Listing) -> list[str]:
    """The top-level modules and packages of a distribution, namespace packages included."""
    names = set()
    for entry in listing:
        head, _, path = entry.path.partition("/")
        if head != "site-packages" or entry.type == "directory":
            continue
        top, below, _ = path.partition("/")
        if below:
            name = top if path.endswith((".py", ".so")) else ""
        elif top.endswith((".py", ".pyc")):
            name = top.rpartition(".")[0]
        else:
            match = _EXTENSION.fullmatch(top)
            name = match["name"] if match else ""
        if name.isidentifier():
            names.add(name)
    return sorted(names)


def _facts(
    layer: Layer,
    parts: Sequence[Part],
    imports: Sequence[Sequence[str]],
    ownership: Ownership,
    files: Mapping[str, tuple[Entry, Path]],
) -> dict[str, Any]:
    """What ``layer.json`` says (``docs/format.md``). All of it follows from the derivation and its parts."""
    tops = {path.partition("/")[0] for path in files if "/" in path}
    pth = [path.partition("/")[2] for path in files if path.endswith(".pth") and path.count("/") == 1]
    return {
        "base": {"id": str(layer.base.id), "key": layer.base.key} if layer.base else None,
        "bytecode": bool(layer.bytecode),
        "collisions": [
            {"kept": item.kept, "other": item.other, "path": item.path} for item in _sorted(ownership.waived)
        ],
        "directories": sorted(tops),
        "env": dict(layer.env),
        "files": len(files),
        "format": FORMAT,
        "id": str(layer.id),
        "key": layer.key,
        "kind": layer.layer_kind.value,
        "packages": [_package(part, names) for part, names in zip(parts, imports, strict=True)],
        "platform": str(layer.platform),
        "pth": sorted(pth),
        "python": str(layer.python),
        "size": sum(entry.size for entry, _ in files.values()),
        "sources": [
            {"key": source.key, "path": Layout.source_path(source.key), "tree": source.tree_hash}
            for source in layer.sources
        ],
        "waivers": {
            "collisions": list(layer.collisions),
            "record-mismatch": sorted(part.unpack.name for part in parts if part.unpack.record_mismatch),
        },
    }


def _package(part: Part, imports: Sequence[str]) -> dict[str, Any]:
    files = [entry for entry in part.listing if entry.type != "directory"]
    sources = sum(entry.path.endswith(".py") and entry.path.startswith("site-packages/") for entry in files)
    compiled = sum(entry.type != "directory" for entry in part.bytecode[1]) if part.bytecode else 0
    return {
        "files": len(files),
        "imports": list(imports),
        "name": part.unpack.name,
        "sha256": part.unpack.wheel.sha256,
        "size": part.listing.size,
        "uncompiled": sources - compiled if part.bytecode else 0,
        "version": part.unpack.version,
        "wheel": part.unpack.wheel.filename,
    }


def _sorted(waived: Iterable[Waived]) -> list[Waived]:
    return sorted(waived, key=lambda item: (item.path, item.kept, item.other))


def _shadowing(
    layer: Layer, parts: Sequence[Part], imports: Sequence[Sequence[str]], name: str
) -> Iterable[Diagnostic]:
    standard = stdlib.modules(layer.python.minor)
    for part, names in zip(parts, imports, strict=True):
        for module in names:
            if module in standard:
                yield Diagnostic(
                    "layer-shadows-stdlib",
                    f"{name or layer.id}: {part.unpack.name} brings {module!r}, a module of the standard library, and "
                    "shadows it",
                    hint="leave it out with `excludes`; backports are not needed by the Python of this layer",
                    severity="warning",
                )

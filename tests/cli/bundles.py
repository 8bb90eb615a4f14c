"""Bundles taken apart, changed and put together again: what a hostile one would look like."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard
from blake3 import blake3

from envdsl.app.bundles.manifest import NAME
from envdsl.model.canonical import canonical_json
from envdsl.store.archive import Member, Writer
from envdsl.store.store import Store
from envdsl.store.treehash import scan

Manifest = dict[str, Any]


def load(file: Path) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest of a bundle, and the content of each file in it."""
    tar = zstandard.ZstdDecompressor().decompressobj().decompress(file.read_bytes())
    contents = {}
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        for info in archive.getmembers():
            if info.isreg() and (stream := archive.extractfile(info)) is not None:
                contents[info.name] = stream.read()
    return json.loads(contents.pop(NAME)), contents


def save(file: Path, manifest: Manifest, contents: dict[str, bytes]) -> Path:
    """Write the bundle that ``manifest`` describes, whatever it says; each file is what it is listed as. What tar
    has no form for is on the list alone."""
    with file.open("wb") as stream:
        writer = Writer(stream)
        writer.add_list(NAME, canonical_json(manifest))
        for prefix, item in items(manifest):
            if item["type"] not in ("file", "directory", "link", "symlink") or item.get("size", 0) < 0:
                continue
            member = _member(prefix + item["path"], item)
            if member.type == "file" and member.name not in contents:
                continue
            writer.add(member, [contents[member.name]] if member.type == "file" else [])
        writer.finish()
    return file


def items(manifest: Manifest) -> list[tuple[str, dict[str, Any]]]:
    found = [("project/", item) for item in manifest["project"]]
    for path in manifest["paths"]:
        place = path["path"].rpartition("/")[0] if path["kind"] == "wheel" else path["path"]
        found += [(f"store/{place}/", item) for item in path["members"]]
    return found


def changed(file: Path, change: Callable[[Manifest, dict[str, bytes]], object]) -> Path:
    """A bundle beside ``file`` with other contents."""
    manifest, contents = load(file)
    change(manifest, contents)
    return save(file.with_name("changed.tar.zst"), manifest, contents)


def file_item(path: str, content: bytes) -> dict[str, Any]:
    digest = blake3(content).hexdigest()
    return {"path": path, "type": "file", "size": len(content), "blake3": digest, "executable": False}


def of_kind(manifest: Manifest, kind: str) -> dict[str, Any]:
    return next(path for path in manifest["paths"] if path["kind"] == kind)


def _member(name: str, item: dict[str, Any]) -> Member:
    if item["type"] == "file":
        return Member(name, "file", item["size"], item["blake3"], item["executable"])
    return Member(name, item["type"], executable=item.get("executable", False), target=item.get("target", ""))


def put(manifest: Manifest, contents: dict[str, bytes], path: dict[str, Any], item: dict[str, Any], new: bytes) -> None:
    """Another content for a file, consistently: its links, and the tree hashes of all that have it."""
    from envdsl.app.bundles.manifest import _path

    name = f"store/{path['path']}/{item['path']}"
    contents[name] = new
    facts = file_item(item["path"], new)
    item.update(facts)
    for other in manifest["paths"]:
        for member in other["members"]:
            if member.get("target") == name:
                member.update(size=facts["size"], blake3=facts["blake3"])
        other["tree-hash"] = _path(other).actual_tree_hash()


def tree(store: Path) -> dict[str, str]:
    """Every valid path with its tree hash, and that of what is on the disk."""
    with Store.open(store) as opened:
        found = {path.path: path.tree_hash for path in opened.paths()}
        for path, tree_hash in found.items():
            if not path.startswith("python/"):
                assert scan(store / path).tree_hash() == tree_hash, path
    return found

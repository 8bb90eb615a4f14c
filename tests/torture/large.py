"""Stores with very many paths, made without the work of building them; and one gc, with its time and memory.

``python -m tests.torture.large ROOT dead|alive`` collects with no layer, or every layer, for a root, and prints JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from envdsl.model.digest import store_hash
from envdsl.store.gc import collect
from envdsl.store.registry import StorePath
from envdsl.store.store import Store
from envdsl.store.treehash import Entry, Listing

_LISTING = Listing([Entry("file", "file", False, 1, blake3(b"x").hexdigest())])
_ENCODED = _LISTING.encode()


def group(number: int) -> Iterator[StorePath]:
    """A layer over three distributions, each with its wheel and its bytecode: ten paths."""

    def key(*what: object) -> str:
        return blake3(repr((number, *what)).encode()).hexdigest()

    def path(place: str, key: str, kind: str, *references: str) -> StorePath:
        return StorePath(place, key, kind, _LISTING.tree_hash(), 1, tuple(sorted(references)), 1_700_000_000)

    parts: list[str] = []
    for part in range(3):
        wheel, unpack, bytecode = key("wheel", part), key("unpack", part), key("bytecode", part)
        yield path(f"wheelhouse/{wheel}/p{part}-1-py3-none-any.whl", wheel, "wheel")
        yield path(f"unpacked/{store_hash(unpack)}-p{part}-1", unpack, "unpack", wheel)
        yield path(f"bytecode/{store_hash(bytecode)}-p{part}-1-cp312", bytecode, "bytecode", unpack)
        parts += [unpack, bytecode]
    layer = key("layer")
    yield path(f"layers/base-{store_hash(layer)}", layer, "layer", *parts)


def make(root: Path, count: int, *, more_files: int = 0) -> None:
    """A store of ``count`` paths, a multiple of ten, each with one file that counts.

    ``more_files``: names that each path has besides (hard links, for quickness), for whoever walks the store; listings
    know nothing of them.
    """
    with Store.open(root) as store, store.registry.writing() as connection:
        for number in range(count // 10):
            for path in group(number):
                connection.execute(
                    "INSERT INTO paths (path, key, kind, tree_hash, size, registered) VALUES (?, ?, ?, ?, ?, ?)",
                    (path.path, path.key, path.kind, path.tree_hash, path.size, path.registered),
                )
                connection.executemany(
                    "INSERT INTO path_references VALUES (?, ?)", [(path.key, item) for item in path.references]
                )
                connection.execute("INSERT INTO listings VALUES (?, ?)", (path.key, _ENCODED))
                place = root / path.path
                if path.kind == "wheel":
                    place.parent.mkdir()
                    place.write_bytes(b"x")
                else:
                    place.mkdir()
                    (place / "file").write_bytes(b"x")
                    for name in range(more_files):
                        os.link(place / "file", place / f"more-{name}")


def main(root: Path, state: str) -> None:
    with Store.open(root) as store:
        roots = [path.key for path in store.paths("layer")] if state == "alive" else []
        begin = time.perf_counter()
        collected = collect(store, roots)
        seconds = time.perf_counter() - begin
    # Not ru_maxrss: a child begins with that of the process that started it.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"seconds": seconds, "peak": int(peak.split()[1]) * 1024, "paths": len(collected.paths)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

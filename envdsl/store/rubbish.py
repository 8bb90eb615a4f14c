"""Rubbish: what stands in a store and belongs to nothing that lives.

What dead processes left in ``tmp/`` is known by their locks. For the rest, having no row is enough where a row makes a
path valid; files that are written beside paths go with their path; and temporaries of files that are replaced whole
have a name of their own kind, and go when they are older than any writing takes.
"""

# Strings and calls of os, not pathlib: a store has very many paths.
# ruff: noqa: PTH208

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from envdsl.model.digest import STORE_HASH_LENGTH, store_hash
from envdsl.store import replaced
from envdsl.store.census import Census
from envdsl.store.layout import Layout
from envdsl.store.process import dead_directories
from envdsl.store.store import Store
from envdsl.store.tree import remove_tree

DOWNLOADS = "downloads"
ABANDONED = 60.0  # seconds after which nobody is writing a small file any more
DOWNLOAD_AGE = 7 * 24 * 3600.0  # seconds that an interrupted download may wait to be continued
# `.name.<process id>` and `.name.new`; not what uv keeps beside interpreters (`.lock`, `.temp`)
_TEMPORARY = re.compile(r"\..+[.-](\d+|new)")
_HASH = re.compile(rf"(?:(?:base|x|iso)-)?([0-9a-z]{{{STORE_HASH_LENGTH}}})")


def find(store: Store, census: Census, *, staying: set[str], gone: set[str]) -> list[Path]:
    """The rubbish of ``store`` where the valid paths ``staying`` stay and ``gone`` go (which are no rubbish, but what
    stands beside them is). With the gate held alone."""
    layout = store.layout
    return [
        *dead_directories(layout.tmp),
        *replaced.unused(store, census),
        *_without_row(layout, staying | gone if gone else staying),
        *_beside(layout, census, staying, gone),
        *_abandoned(layout),
    ]


def members(directory: Path) -> list[str]:
    """The names in a directory, sorted; none where there is no directory."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def drop_caches(layout: Layout) -> None:
    """The caches of "nothing to do" answer without asking the database: none may outlive what it promises.

    Downloads that wait to be continued are no such cache.
    """
    for member in members(layout.cache):
        if member != DOWNLOADS:
            remove_tree(layout.cache / member)


def remove_if_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()


def _without_row(layout: Layout, valid: set[str]) -> Iterator[Path]:
    for name, depth in layout.OUTPUTS.items():
        if name == "python":  # uv keeps its own files there
            continue
        places = [f"{name}/{member}" for member in _names(layout, name)]
        if depth > 2:
            parents, places = places, []
            for parent in parents:
                names = _names(layout, parent)
                # An empty one is where somebody died between making it and filling it.
                places += [f"{parent}/{member}" for member in names] or [parent]
        for place in places:
            if place not in valid:
                yield layout.root / place


def _names(layout: Layout, place: str) -> list[str]:
    try:
        return os.listdir(f"{layout.root}/{place}")
    except (FileNotFoundError, NotADirectoryError):
        return []


def _beside(layout: Layout, census: Census, staying: set[str], gone: set[str]) -> Iterator[Path]:
    """Derivations of paths, and locks and logs of layers, that do not stay.

    What belongs to nothing may be about to: it is written beside a path that is registered in a moment.
    """
    layers, going = _layer_ids(staying), _layer_ids(gone)
    settled = time.time() - ABANDONED
    for name in _names(layout, "locks"):
        layer = name.removesuffix(".toml")
        if layer in going or (layer not in layers and _older_than(layout.locks / name, settled)):
            yield layout.locks / name
    for name in _names(layout, "logs"):
        layer = name.partition(".")[0]
        if layer in going or (layer not in layers and _HASH.match(name)):
            yield layout.logs / name
    derivations = _names(layout, "drv")
    if derivations:
        hashes = {f"{digest}.json": path in staying for path, digest in _hashes(census)}
        for name in derivations:
            stays = hashes.get(name)
            if stays is False or (stays is None and _older_than(layout.drv / name, settled)):
                yield layout.drv / name


def _layer_ids(paths: set[str]) -> set[str]:
    return {path.partition("/")[2] for path in paths if path.startswith("layers/")}


def _hashes(census: Census) -> Iterator[tuple[str, str]]:
    for key, path in census.paths.items():
        # The hash of most keys stands in the path; computing a hundred thousand takes its time.
        match = None if path.startswith("wheelhouse/") else _HASH.match(path.partition("/")[2])
        yield path, match[1] if match else store_hash(key)


def _abandoned(layout: Layout) -> Iterator[Path]:
    """Temporaries of files that are replaced whole, and downloads that nobody came back for."""
    now = time.time()
    for directory in (layout.root, layout.gcroots, layout.bin, layout.cache, layout.python):
        for name in members(directory):
            if _TEMPORARY.fullmatch(name) and _older_than(directory / name, now - ABANDONED):
                yield directory / name
    for name in members(layout.cache / DOWNLOADS):
        if _older_than(layout.cache / DOWNLOADS / name, now - DOWNLOAD_AGE):
            yield layout.cache / DOWNLOADS / name


def _older_than(place: Path, moment: float) -> bool:
    try:
        return place.lstat().st_mtime < moment
    except FileNotFoundError:
        return False

"""Rubbish: what stands in a store and belongs to nothing that lives.

What dead processes left in ``tmp/`` is known by their locks. For the rest, having no row is enough where a row makes a
path valid; records that are written beside paths go with their path; and temporaries of files that are replaced whole
have a name of their own kind, and go when they are older than any writing takes.
"""

# Strings and calls of os, not pathlib: a store has very many paths.
# ruff: noqa: PTH208

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from envdsl.model.digest import STORE_HASH_LENGTH, store_hash
from envdsl.store import replaced
from envdsl.store.census import Census, in_sandbox
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


def find(store: Store, census: Census) -> list[Path]:
    """What belongs to no valid path, and to nobody who lives. With the gate held alone."""
    layout = store.layout
    return [
        *dead_directories(layout.tmp),
        *replaced.unused(store, census),
        *_without_row(layout, set(census.paths.values())),
        *_stray(layout, census),
        *_abandoned(layout),
    ]


def records(layout: Layout, paths: Iterable[tuple[str, str]]) -> Iterator[Path]:
    """What is written beside ``paths`` (key and store path of each) and goes with them: derivations, locks, logs."""
    logs = members(layout.logs)
    for key, path in paths:
        kind, _, name = path.partition("/")
        found = [layout.drv / f"{_hash_of(key, path)}.json"]
        if kind == "layers":
            found += [layout.locks / f"{name}.toml", *(layout.logs / log for log in logs if log.startswith(name))]
        yield from (place for place in found if os.path.lexists(place))


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
    """What a running sandbox has mounted stays, even if the database that knew of it was lost."""
    mounted = {f"layers/{name}" for name in _names(layout, "layers") if f"layers/{name}" not in valid}
    mounted = {path for path in mounted if in_sandbox(layout, path)}
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
            if place not in valid and place not in mounted and not (mounted and name == "sources"):
                yield layout.root / place


def _names(layout: Layout, place: str) -> list[str]:
    try:
        return os.listdir(f"{layout.root}/{place}")
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stray(layout: Layout, census: Census) -> Iterator[Path]:
    """Records of nothing. They may be of a path that is registered in a moment, so young ones stay."""
    settled = time.time() - ABANDONED
    known: dict[Path, set[str]] = {}
    layers = {path.partition("/")[2] for path in census.paths.values() if path.startswith("layers/")}
    known[layout.locks] = {f"{layer}.toml" for layer in layers}
    logs = members(layout.logs)
    known[layout.logs] = {name for name in logs if not _HASH.match(name) or name.partition(".")[0] in layers}
    known[layout.drv] = set()
    if members(layout.drv):
        known[layout.drv] = {f"{_hash_of(key, path)}.json" for key, path in census.paths.items()}
    for directory, names in known.items():
        for name in members(directory):
            if name not in names and _older_than(directory / name, settled):
                yield directory / name


def _hash_of(key: str, path: str) -> str:
    # The hash of most keys stands in the path; computing a hundred thousand takes its time.
    match = None if path.startswith("wheelhouse/") else _HASH.match(path.partition("/")[2])
    return match[1] if match else store_hash(key)


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

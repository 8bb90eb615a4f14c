"""Trees that a repair has replaced, and that sandboxes may still see.

A running sandbox has the directories mounted that stood in the store when it started, and keeps them whatever takes
their place. So a repair moves them to ``tmp/replaced-<random>/<store path>``, where they stay until nobody can use
them: a layer while a sandbox holds its ``layer.json``, anything else that a sandbox mounts (an interpreter, a source)
while any sandbox holds any layer. All of them stay a moment in any case, for a sandbox that is just starting.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from envdsl.store.census import Census, in_sandbox
from envdsl.store.layout import Layout
from envdsl.store.locks import is_locked_by_sandbox
from envdsl.store.roots import Root
from envdsl.store.store import Store

GRACE = 2.0  # seconds between a sandbox's mounts and its locks, at the very most
_MOUNTED = ("python", "sources")


def place(layout: Layout) -> Path:
    """A new directory for replaced trees."""
    directory = layout.tmp / f"replaced-{os.urandom(8).hex()}"
    directory.mkdir(0o700)
    return directory


def unused(store: Store, census: Census) -> list[Path]:
    """The directories of replaced trees that nobody uses any more. With the gate held alone."""
    found = sorted(store.layout.tmp.glob("replaced-*"))
    return [directory for directory in found if not _in_use(store.layout, census, directory)]


def sandboxes(store: Store, census: Census, layers: Iterable[str]) -> list[Root]:
    """Those of ``layers`` (keys) that a running sandbox has mounted: as they are, or as they were before a repair."""
    before = set(_layers_in_use(store.layout))
    return [
        Root("a running sandbox", key)
        for key in layers
        if (path := census.paths[key]).startswith("layers/") and (path in before or in_sandbox(store.layout, path))
    ]


def _layers_in_use(layout: Layout) -> Iterator[str]:
    """The store paths of layers of which a replaced tree is mounted in a running sandbox."""
    for layer in sorted(layout.tmp.glob("replaced-*/layers/*")):
        if is_locked_by_sandbox(layer / "layer.json"):
            yield f"layers/{layer.name}"


def _in_use(layout: Layout, census: Census, directory: Path) -> bool:
    try:
        young = directory.stat().st_mtime > time.time() - GRACE
    except FileNotFoundError:
        return False
    if young or any(is_locked_by_sandbox(layer / "layer.json") for layer in directory.glob("layers/*")):
        return True
    return any((directory / kind).is_dir() for kind in _MOUNTED) and _any_sandbox(layout, census)


def _any_sandbox(layout: Layout, census: Census) -> bool:
    if any(True for _ in _layers_in_use(layout)):
        return True
    return any(path.startswith("layers/") and in_sandbox(layout, path) for path in census.paths.values())

"""Repair: damaged paths are built again beside what is there, and take its place by a rename.

A :class:`Repair` is the store as it would be without the damaged paths: looking one up finds nothing, so whoever
realises derivations in it makes them again, by the same steps as ever. What is registered for a damaged path has to
have the tree hash of its row, and waits below ``tmp/``; what is built from it (a layer links its parts) finds it there.
In the end all of it is written to disk, and then, with the gate held alone, changes places with what was damaged. Rows
do not change. Killed before that, nothing has happened; killed in the midst of it, some paths are repaired.

No file is written to that has a name in the store: its other names, and the sandboxes that have it open, keep it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from envdsl.errors import EnvdslError
from envdsl.store import replaced, rubbish
from envdsl.store.census import Census
from envdsl.store.failures import failures
from envdsl.store.layout import Layout
from envdsl.store.store import Store, StorePath
from envdsl.store.tree import exchange, move, remove_tree, seal, seal_root
from envdsl.store.treehash import Listing


class Repair(Store):
    """The store at ``layout`` without the paths ``damaged``; to be used as a context manager, under a lease."""

    def __init__(self, layout: Layout, damaged: Iterable[StorePath]) -> None:
        super().__init__(layout, writable=True)
        self._damaged = {path.key: path for path in damaged}
        self._fresh: dict[str, tuple[StorePath, Listing]] = {}  # where each waits, as if that were its path

    def protect(self) -> None:
        """Hold what is damaged against gc, for the open lease: it is about to be whole."""
        for key in self._damaged:
            super().lookup(key)

    def lookup(self, key: str) -> StorePath | None:
        if key in self._fresh:
            return self._fresh[key][0]
        return None if key in self._damaged else super().lookup(key)

    def lookup_path(self, path: str) -> StorePath | None:
        key = next((item.key for item in self._damaged.values() if item.path == path), None)
        return super().lookup_path(path) if key is None else self.lookup(key)

    def paths(self, kind: str | None = None) -> list[StorePath]:
        return [present for path in super().paths(kind) if (present := self.lookup(path.key)) is not None]

    def listing(self, key: str) -> Listing:
        return self._fresh[key][1] if key in self._fresh else super().listing(key)

    def register(
        self,
        temporary: Path,
        path: str,
        *,
        key: str,
        kind: str,
        listing: Listing,
        references: Iterable[str] = (),
        sealed: bool = False,
    ) -> StorePath:
        """For a damaged path: keep ``temporary`` until :meth:`swap`. Raises EnvdslError ``store-repair-differs``
        where it is not what the path was. Anything else is registered."""
        row = self._damaged.get(key)
        if row is None or key in self._fresh:
            return super().register(
                temporary, path, key=key, kind=kind, listing=listing, references=references, sealed=sealed
            )
        if listing.tree_hash() != row.tree_hash:
            raise EnvdslError.of(
                "store-repair-differs",
                f"{row.path} was built again and is something else: tree hash {listing.tree_hash()} instead of "
                f"{row.tree_hash}",
                hint="nothing was changed; what it is built from, or the program that builds it, is not the same",
            )
        with failures(f"repair {path}", self.layout.root):
            if not sealed:
                seal(temporary)
            place = self.temporary("fresh") / row.path
            place.parent.mkdir(parents=True)
            move(temporary, place)
            seal_root(place)
        waiting = replace(row, path=place.relative_to(self.layout.root).as_posix())
        self._fresh[key] = (waiting, listing)
        return waiting

    def swap(self) -> list[StorePath]:
        """Put everything that was built into its place, and remove what stood there as soon as no sandbox needs it.

        Returns the repaired paths, sorted by path.
        """
        if not self._fresh:
            return []
        with failures("put repaired paths into place", self.layout.root):
            self._file_system.sync()  # a row is for good, so its files have to be, before they have the name
            with self.gate(shared=False):
                rubbish.drop_caches(self.layout)
                old = replaced.place(self.layout)
                done = [
                    self._swap(old, key)
                    for key in sorted(self._fresh, key=self._path)
                    if self.registry.by_key(key) is not None
                ]
            self._file_system.sync()
            self._damaged.clear()
            self._fresh.clear()
            self._remove(old)
        return done

    def _path(self, key: str) -> str:
        return self._damaged[key].path

    def _swap(self, old: Path, key: str) -> StorePath:
        row, (waiting, listing) = self._damaged[key], self._fresh[key]
        place, target = old / row.path, self.layout.absolute(row.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        # First to where what it replaces will be: that must not go with this process.
        move(self.layout.absolute(waiting.path), place)
        exchange(place, target)
        seal_root(target)
        encoded = listing.encode()
        if self.registry.listing(key) != encoded:
            self.registry.replace_listing(key, encoded)
        return row

    def _remove(self, old: Path) -> None:
        """Remove what nobody can use: at once what is never mounted, after a moment the rest. Else gc does."""
        for kind in ("unpacked", "bytecode", "wheelhouse"):
            remove_tree(old / kind)
        if not any(old.iterdir()):
            old.rmdir()
            return
        time.sleep(replaced.GRACE)
        with self.gate(shared=False):
            garbage = self._process.vacant("replaced")
            if old not in replaced.unused(self, Census(self)):
                return
            os.rename(old, garbage)  # noqa: PTH104
        remove_tree(garbage)

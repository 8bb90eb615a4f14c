"""The store: looks up, registers and protects valid paths.

The order in which a path comes to be: written in ``tmp/``, made read-only, renamed into place, then one row
in the database, which makes it valid. Whatever stands in a place without having a row is rubbish.

The *gate* orders what must not overlap: registering a path and collecting garbage pass it alone, looking up
under a lease passes it together with others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import store_hash
from envdsl.store import reserve
from envdsl.store.failures import failure, failures
from envdsl.store.layout import Layout
from envdsl.store.locks import exclusive, gate, is_locked_by_sandbox
from envdsl.store.process import ProcessDirectory
from envdsl.store.registry import Registry, StorePath
from envdsl.store.syncfs import FileSystem
from envdsl.store.tree import move, remove_tree, seal, seal_root
from envdsl.store.treehash import Listing

__all__ = ["Store", "StorePath"]

_USED_RESOLUTION = 3600  # seconds


class Store:
    """An open store. Use as a context manager, from any number of threads; opening reads nothing of the database."""

    def __init__(self, layout: Layout, *, writable: bool) -> None:
        self.layout = layout
        self.writable = writable
        self._locks = layout.tmp / "locks"
        self.registry = Registry(layout.database, self._locks, writable=writable, find_lost=self._find_lost)
        self._process = ProcessDirectory(layout.tmp, lambda: self.gate(shared=True))
        self._file_system = FileSystem(layout.root)

    @classmethod
    def open(cls, root: Path, *, create: bool = True) -> Store:
        """The store at ``root``, made if there is none. One that cannot be written serves lookups.

        Without ``create`` nothing is made: where there is no store, lookups find nothing. Raises EnvdslError
        ``store-permission`` and ``store-full`` where it cannot be made.
        """
        layout = Layout(root)
        locks = layout.tmp / "locks"
        if not create and not locks.is_dir():
            return cls(layout, writable=False)
        # Directories that somebody removed are made again; what the database says of their paths, lookups notice.
        lacking = [directory for directory in (*layout.directories, locks) if not directory.is_dir()]
        if lacking:
            try:
                for directory in lacking:
                    directory.mkdir(parents=True, exist_ok=True)
                if locks in lacking:
                    _keep_out_of_git(layout)
                    reserve.fill(layout)
            except OSError as error:
                if not layout.database.exists():
                    raise failure("make directories", layout.root, error) from error
        database = layout.database if layout.database.exists() else layout.root
        return cls(layout, writable=os.access(layout.root, os.W_OK) and os.access(database, os.W_OK))

    def close(self) -> None:
        """Remove this process's temporary directories and close the database. The store may be used again."""
        self._process.close()
        self.registry.close()
        self._file_system.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def lookup(self, key: str) -> StorePath | None:
        """The valid path of ``key``; held by all leases that are open. None for a path that is gone from the disk."""
        return self._leased(lambda: self.registry.by_key(key))

    def lookup_path(self, path: str) -> StorePath | None:
        """The valid path that stands at the store path ``path``, in the same way."""
        return self._leased(lambda: self.registry.by_path(path))

    def paths(self, kind: str | None = None) -> list[StorePath]:
        """All valid paths (of one kind), sorted by path."""
        return self.registry.all(kind)

    def listing(self, key: str) -> Listing:
        """What a valid path holds. Raises EnvdslError ``store-unknown-key``, ``store-database-damaged``."""
        path, data = self.registry.by_key(key), self.registry.listing(key)
        if path is None or data is None:
            raise EnvdslError.of("store-unknown-key", f"the store {self.layout.root} has no path with the key {key}")
        try:
            listing = Listing.decode(data)
            if listing.tree_hash() != path.tree_hash:
                raise ValueError("its tree hash is another")
        except ValueError as error:
            raise EnvdslError.of(
                "store-database-damaged",
                f"the listing of {path.path} in {self.layout.database} is damaged: {error}",
                hint=f"remove {self.layout.database.name}; the next build makes again what it needs",
                exit_status=ExitStatus.ENVIRONMENT,
            ) from None
        return listing

    def building(self, key: str, *, waiting: Callable[[], None] | None = None) -> AbstractContextManager[None]:
        """Exclusive among all processes and threads: look up, build and register ``key`` inside.

        The lock of a process that dies is free at once. ``waiting`` is called once where another holds it.
        Holding one key while asking for a second is safe only if everybody asks in the same order.
        """
        return self._locked(store_hash(key), f"build {key}", waiting)

    def temporary(self, label: str) -> Path:
        """A fresh directory on the store's file system, which gc leaves alone while this process lives."""
        with failures("make a temporary directory", self.layout.root):
            self._file_system.watch()
            return self._process.temporary(label)

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
        """Move ``temporary`` (a directory, or a file whose listing is its name alone) to the store path ``path``
        and make it valid.

        ``sealed`` says that all modes and times below ``temporary`` are the store's already. Where ``key`` is
        valid already, ``temporary`` is removed and the valid path returned. Rubbish in the place is moved away.
        Raises EnvdslError ``store-full``, ``store-permission``, ``store-io``.
        """
        target = self.layout.absolute(path)
        encoded = listing.encode()
        now = int(time.time())
        row = StorePath(
            path, key, kind, listing.tree_hash(), listing.size, tuple(sorted(set(references))), now, used=now
        )
        rubbish: list[Path] = []
        with failures(f"register {path}", self.layout.root):
            self._file_system.watch()
            if not sealed:
                seal(temporary)
            vacant = self._process.vacant("rubbish")
            with self.gate(shared=False):
                present = self._on_disk(self.registry.by_key(key))
                if present is not None and present.path == path:
                    rubbish.append(temporary)
                    row = present
                else:
                    if path.startswith("layers/") and is_locked_by_sandbox(target / "layer.json"):
                        # A running sandbox has it mounted, though no row knows of it: the database was lost.
                        self._set_aside(target, path)
                    elif _exists(target):
                        move(target, vacant)
                        rubbish.append(vacant)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    move(temporary, target)
                    seal_root(target)
                    self.registry.insert(row, encoded)
                self._process.protect(key)
            for place in rubbish:
                remove_tree(place)
        return row

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Whatever is looked up or registered through this store in the block is safe from gc until its end,
        with all that it references. Ends with the process, however that ends."""
        with failures("write a lease", self.layout.root):
            lease = self._process.lease()
            keys = lease.__enter__()
        try:
            yield
        finally:
            lease.__exit__(None, None, None)
            if keys and self.writable:
                # For gc's order alone: not worth failing for.
                with suppress(EnvdslError):
                    self.registry.touch(keys, int(time.time()), resolution=_USED_RESOLUTION)

    def flush(self, *, older_than: float = 0.0) -> None:
        """Make everything that is valid now outlive a power failure: one syncfs(2), then the rows say so.

        ``older_than``: only where something waits for it for longer than so many seconds.
        Raises EnvdslError ``store-io`` where the disk could not keep what was written; the paths concerned are
        not valid any more then.
        """
        if not self.writable:  # somebody else's, who flushes what is theirs
            return
        newest = self.registry.unflushed(older_than=older_than)
        if not newest:
            return
        with failures("write everything to disk", self.layout.root):
            try:
                self._file_system.sync()
            except OSError:
                from envdsl.store.rubbish import drop_caches

                self.registry.drop_unflushed()
                drop_caches(self.layout)
                raise
        self.registry.mark_flushed(newest)

    def gate(self, *, shared: bool) -> AbstractContextManager[None]:
        """For the modules of the store alone."""
        return gate(self._locks / "gate", shared=shared)

    def _find_lost(self, unflushed: Sequence[StorePath]) -> set[str]:
        from envdsl.store.recovery import find_lost

        return find_lost(self, unflushed)

    def _leased(self, find: Callable[[], StorePath | None]) -> StorePath | None:
        if not self._process.leased:
            return self._on_disk(find())
        with failures("write a lease", self.layout.root), self.gate(shared=True):
            found = self._on_disk(find())
            if found is not None:
                self._process.protect(found.key)
            return found

    def _set_aside(self, target: Path, path: str) -> None:
        from envdsl.store import replaced

        aside = replaced.place(self.layout) / path
        aside.parent.mkdir(parents=True)
        move(target, aside)

    def _on_disk(self, path: StorePath | None) -> StorePath | None:
        return path if path is not None and _exists(self.layout.absolute(path.path)) else None

    @contextmanager
    def _locked(self, name: str, action: str, waiting: Callable[[], None] | None) -> Iterator[None]:
        lock = exclusive(self._locks / name, waiting=waiting)
        with failures(action, self.layout.root):
            lock.__enter__()
        try:
            yield
        finally:
            lock.__exit__(None, None, None)


def _keep_out_of_git(layout: Layout) -> None:
    """Nothing of a store belongs into the version control of the project that it stands in."""
    with suppress(FileExistsError), (layout.root / ".gitignore").open("x", encoding="utf-8") as file:
        file.write("*\n")


def _exists(path: Path) -> bool:
    return os.path.lexists(path)

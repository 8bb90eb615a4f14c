"""Power failures, as bad as they can be: what the kernel had not been made to write is gone, or it is all that is left.

Rows and files reach the disk by themselves at any time, in an order that nobody promises. The two extremes are tried at
every moment between two calls that make something durable: all rows are there and no file that was not synced, and all
files are there and no row that was not synced. A store that holds in both holds in between.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from envdsl.store import registry
from envdsl.store.gc import collect
from envdsl.store.registry import Registry
from envdsl.store.repair import Repair
from envdsl.store.store import Store
from envdsl.store.syncfs import FileSystem
from envdsl.store.tree import remove_tree
from envdsl.store.treehash import scan
from envdsl.store.verify import verify
from tests.store.conftest import key_of, put, write_tree


class Disk:
    """What of a store is on the disk for certain: copies of its trees and of its database, as of the last sync."""

    def __init__(self, root: Path, copies: Path) -> None:
        self.root = root
        self.copies = copies
        self.number = 0

    def sync_files(self) -> None:
        self._copy(self.root, self.copies / "files", lambda name: name.startswith("envdsl.db"))

    def sync_database(self) -> None:
        self._copy(self.root, self.copies / "database", lambda name: not name.startswith("envdsl.db"))

    def crash(self) -> Iterator[tuple[str, Path]]:
        """The store after a power failure at this moment, in both extremes."""
        self.number += 1
        for what, files, database in (
            ("rows ahead of files", self.copies / "files", self.root),
            ("files ahead of rows", self.root, self.copies / "database"),
        ):
            after = self.copies / f"crash-{self.number}-{what.partition(' ')[0]}"
            self._copy(files, after, lambda name: name.startswith("envdsl.db"))
            for file in database.glob("envdsl.db*"):
                shutil.copy2(file, after)
            yield what, after

    @staticmethod
    def _copy(source: Path, target: Path, ignored: Callable[[str], bool]) -> None:
        if target.exists():
            remove_tree(target)

        def ignore(directory: str, names: list[str]) -> list[str]:
            return [name for name in names if Path(directory) == source and ignored(name)]

        shutil.copytree(source, target, symlinks=True, ignore=ignore)


@pytest.fixture
def disk(memory: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Watches a store: each syncfs and each durable transaction takes a copy."""
    watched = Disk(memory / "store", memory / "copies")
    watched.copies.mkdir()
    Store.open(watched.root).close()
    sync, writing = FileSystem.sync, Registry.writing

    def synced(self: FileSystem) -> None:
        sync(self)
        watched.sync_files()
        watched.sync_database()  # which is on the same file system

    @contextmanager
    def written(self: Registry, *, durable: bool = False) -> Iterator[Any]:
        with writing(self, durable=durable) as connection:
            yield connection
        if durable:
            watched.sync_database()

    monkeypatch.setattr(FileSystem, "sync", synced)
    monkeypatch.setattr(Registry, "writing", written)
    with Store.open(watched.root) as store:
        put(store, "first", **{"a/b": "1"})
        store.flush()
    return watched


def survives(disk: Disk, monkeypatch: pytest.MonkeyPatch, *flushed: str) -> None:
    """After the machine is up again, every valid path is whole, and those are valid that a command had reported."""
    for what, root in disk.crash():
        with monkeypatch.context() as booted:
            booted.setattr(registry, "boot_id", lambda: "another boot")
            with Store.open(root) as store:
                assert verify(store).findings == (), what
                keys = {path.key for path in store.paths()}
                assert keys.issuperset(map(key_of, flushed)), what
                collect(store, keys)
                # what is not valid any more is built again
                for name in ("first", "second"):
                    if store.lookup(key_of(name)) is None:
                        put(store, name)
                assert verify(store).findings == (), what


def test_a_build_that_was_not_finished_is_forgotten(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3.4: what is promised under power loss."""
    with Store.open(disk.root) as store:
        put(store, "second", c="2")
        survives(disk, monkeypatch, "first")


def test_what_was_not_flushed_stays_where_the_disk_has_it(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build does not wait for the disk; what the kernel wrote by itself is compared and kept."""
    with Store.open(disk.root) as store:
        put(store, "second", c="2")
    disk.sync_files()  # files and rows, and nothing that says so
    for _, root in disk.crash():
        with monkeypatch.context() as booted:
            booted.setattr(registry, "boot_id", lambda: "another boot")
            with Store.open(root) as store:
                assert (store.lookup(key_of("second")) is not None) == root.name.endswith("rows")


def test_what_was_flushed_is_there(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(disk.root) as store:
        put(store, "second", c="2")
        store.flush()
        survives(disk, monkeypatch, "first", "second")


def test_a_failure_between_the_sync_and_the_rows(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Registry.mark_flushed

    def mark(self: Registry, newest: int) -> None:
        survives(disk, monkeypatch, "first")
        real(self, newest)

    monkeypatch.setattr(Registry, "mark_flushed", mark)
    with Store.open(disk.root) as store:
        put(store, "second", c="2")
        store.flush()


@pytest.mark.parametrize("moment", ["envdsl.store.gc.move", "envdsl.store.gc.remove_tree"])
def test_a_failure_in_the_midst_of_gc(disk: Disk, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Rows are deleted for good before a file is touched."""
    with Store.open(disk.root) as store:
        put(store, "second", c="2")
        store.flush()
    module, _, name = moment.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)
    seen = []

    def interrupted(*arguments: Any) -> Any:
        result = real(*arguments)
        if not seen:
            seen.append(1)
            survives(disk, monkeypatch, "first")
        return result

    monkeypatch.setattr(moment, interrupted)
    with Store.open(disk.root) as store:
        collect(store, [key_of("first")])
    assert seen
    monkeypatch.undo()


@pytest.mark.parametrize("when", ["before", "amid", "after"])
def test_a_failure_in_the_midst_of_a_repair(disk: Disk, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """What a repair puts into place is on the disk before; its row never says less."""
    from envdsl.store import repair

    with Store.open(disk.root) as store:
        rows = store.paths()
    damaged = disk.root / rows[0].path / "a" / "b"
    damaged.chmod(0o644)
    damaged.write_text("spoilt")
    real = repair.exchange

    def exchange(source: Path, target: Path) -> None:
        if when == "before":
            check()
        real(source, target)
        if when == "amid":
            check()

    def check() -> None:
        for what, root in disk.crash():
            with monkeypatch.context() as booted, Store.open(root) as store:
                booted.setattr(registry, "boot_id", lambda: "another boot")
                assert [path.key for path in store.paths()] == [rows[0].key], what
                content = (root / rows[0].path / "a" / "b").read_text()
                assert content == "1" or (content == "spoilt" and when != "after"), what

    monkeypatch.setattr(repair, "exchange", exchange)
    with Repair(Store.open(disk.root).layout, rows) as repairing, repairing.lease():
        fresh = write_tree(repairing.temporary("again"), {"a/b": "1"})
        repairing.register(fresh, rows[0].path, key=rows[0].key, kind="unpack", listing=scan(fresh))
        repairing.swap()
    if when == "after":
        check()
    with Store.open(disk.root) as store:
        assert verify(store).findings == ()

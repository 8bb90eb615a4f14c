from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import blake3_hex, store_hash
from envdsl.store import registry
from envdsl.store.store import Store
from tests.store.conftest import key_of, put


def refused(root: Path) -> str:
    with Store.open(root) as store, pytest.raises(EnvdslError) as caught:
        store.lookup(key_of("x"))
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.exit_status is ExitStatus.ENVIRONMENT
    assert diagnostic.hint
    assert "envdsl.db" in diagnostic.message
    return diagnostic.code


def test_a_database_of_a_newer_envdsl_is_left_alone(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, "x")
    with sqlite3.connect(tmp_path / "envdsl.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(registry.MIGRATIONS) + 1}")
    connection.close()
    before = (tmp_path / "envdsl.db").read_bytes()
    assert refused(tmp_path) == "store-database-newer"
    assert (tmp_path / "envdsl.db").read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "envdsl.db") as connection:
        connection.execute("CREATE TABLE cookies (name TEXT)")
    connection.close()
    assert refused(tmp_path) == "store-database-foreign"


@pytest.mark.parametrize("damage", ["no database", "zeroes in the middle", "cut off"])
def test_a_damaged_database_is_said_with_a_remedy_that_works(tmp_path: Path, damage: str) -> None:
    with Store.open(tmp_path) as store:
        for number in range(40):
            put(store, f"x{number}")
    database = tmp_path / "envdsl.db"
    content = database.read_bytes()
    match damage:
        case "no database":
            database.write_bytes(b"something else" * 1000)
        case "zeroes in the middle":
            database.write_bytes(content[:4096] + bytes(len(content) - 4096))
        case "cut off":
            database.write_bytes(content[: len(content) // 2])
    with Store.open(tmp_path) as store, pytest.raises(EnvdslError) as caught:
        [store.listing(path.key) for path in store.paths()]
    assert caught.value.code == "store-database-damaged"
    assert "remove envdsl.db*" in (caught.value.diagnostics[0].hint or "")
    for file in tmp_path.glob("envdsl.db*"):
        file.unlink()
    with Store.open(tmp_path) as store:
        assert store.lookup(key_of("x1")) is None
        put(store, "x1")
        assert store.lookup(key_of("x1")) is not None


def test_a_damaged_listing_is_said(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        put(store, "x")
        put(store, "y", other="tree")
    with sqlite3.connect(tmp_path / "envdsl.db") as connection:
        (other,) = connection.execute("SELECT data FROM listings WHERE key = ?", (key_of("y"),)).fetchone()
        connection.execute("UPDATE listings SET data = ? WHERE key = ?", (other, key_of("x")))
    connection.close()
    with Store.open(tmp_path) as store, pytest.raises(EnvdslError) as caught:
        store.listing(key_of("x"))
    assert caught.value.code == "store-database-damaged"


def test_what_was_not_flushed_before_a_power_failure_is_not_valid_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store.open(tmp_path) as store:
        put(store, "durable")
        store.flush()
        put(store, "kept")
        put(store, "lost", a="1")
        put(store, "dependent", references=("lost",))
        assert store.lookup(key_of("lost")) is not None
    with Store.open(tmp_path) as store:  # the same boot: nothing was lost
        assert store.lookup(key_of("lost")) is not None
    monkeypatch.setattr(registry, "boot_id", lambda: "another boot")
    torn = tmp_path / "unpacked/lost/a"  # what a delayed write leaves: the name and no content
    torn.chmod(0o644)
    torn.write_text("")
    torn.chmod(0o444)
    reader = registry.Registry(tmp_path / "envdsl.db", tmp_path / "tmp" / "locks", writable=False)
    assert [path.key for path in reader.all()] == [key_of("durable")]
    assert reader.by_key(key_of("lost")) is None
    reader.close()
    with Store.open(tmp_path) as store:
        assert {path.key for path in store.paths()} == {key_of("durable"), key_of("kept")}
        assert store.listing(key_of("durable"))
        with store.registry.reading() as connection:
            rows = dict(connection.execute("SELECT key, boot FROM paths").fetchall())
        assert rows == {key_of("durable"): None, key_of("kept"): "another boot"}
        put(store, "lost")  # in the place of the rubbish that is left
        assert store.lookup(key_of("lost")) is not None


def test_after_a_power_failure_nothing_answers_for_a_layer_that_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither ``current`` nor a cache; a torn record is removed, and linking its layer again writes it again."""
    key = blake3_hex(b"a derivation")
    with Store.open(tmp_path) as store:
        row = put(store, "base", kind="layer")
        store.layout.current.symlink_to(row.path)
        (store.layout.cache / "build").write_text("answers")
        (store.layout.drv / f"{store_hash(key)}.json").write_bytes(b"a deriv")
    monkeypatch.setattr(registry, "boot_id", lambda: "another boot")
    with Store.open(tmp_path) as store:
        assert store.paths() == []
        assert not store.layout.current.is_symlink()
        assert list(store.layout.cache.iterdir()) == []
        assert list(store.layout.drv.iterdir()) == []


def test_what_was_written_a_minute_ago_is_flushed_by_the_next_build(store: Store) -> None:
    put(store, "x")
    store.flush(older_than=60)
    assert store.registry.unflushed()
    with store.registry.writing() as connection:
        connection.execute("UPDATE paths SET registered = registered - 61")
    put(store, "y")
    store.flush(older_than=60)
    assert not store.registry.unflushed()


def test_who_cannot_write_leaves_it_to_the_owner_to_flush(store: Store) -> None:
    put(store, "x")
    store.writable = False
    store.flush()
    assert store.registry.unflushed()


def test_a_disk_that_cannot_keep_what_was_written_makes_it_invalid(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envdsl.store.syncfs import FileSystem

    put(store, "durable")
    store.flush()
    put(store, "lost")
    (store.layout.cache / "build").write_text("answers with what is lost")

    def fail(_: FileSystem) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(FileSystem, "sync", fail)
    with pytest.raises(EnvdslError) as caught:
        store.flush()
    assert caught.value.code == "store-io"
    assert [path.key for path in store.paths()] == [key_of("durable")]
    assert not (store.layout.cache / "build").exists()
    store.flush()  # nothing is left to be flushed, so nothing fails


def test_rows_that_come_while_a_flush_runs_are_not_called_durable(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envdsl.store.syncfs import FileSystem

    put(store, "early")
    monkeypatch.setattr(FileSystem, "sync", lambda _: put(store, "late"))
    store.flush()
    with store.registry.reading() as connection:
        rows = dict(connection.execute("SELECT key, boot IS NULL FROM paths").fetchall())
    assert rows == {key_of("early"): 1, key_of("late"): 0}


def first_version(root: Path) -> None:
    """A store as it was with the first schema, with one path."""
    with Store.open(root) as store:
        put(store, "x")
        store.flush()
    with sqlite3.connect(root / "envdsl.db") as connection:
        connection.execute("ALTER TABLE paths DROP COLUMN used")
        connection.execute("UPDATE paths SET registered = 1700000000")
        connection.execute("PRAGMA user_version = 1")
    connection.close()


def test_a_database_of_an_older_envdsl_is_migrated(tmp_path: Path) -> None:
    first_version(tmp_path)
    with Store.open(tmp_path) as store:
        path = store.lookup(key_of("x"))
        assert path is not None
        assert (path.registered, path.used) == (1700000000, 1700000000)
        put(store, "y")
        assert len(store.paths()) == 2


def test_an_older_database_that_cannot_be_migrated_serves_lookups(tmp_path: Path) -> None:
    first_version(tmp_path)
    reading = registry.Registry(tmp_path / "envdsl.db", tmp_path / "tmp" / "locks", writable=False)
    path = reading.by_key(key_of("x"))
    assert path is not None
    assert path.used == 1700000000
    reading.close()

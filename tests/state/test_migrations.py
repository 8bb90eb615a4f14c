"""The migrations give exactly the tables of ``tables.py``, and the triggers, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, inspect, text

from envdsl.state.columns import PlainText, UtcDateTime
from envdsl.state.database import Database
from envdsl.state.migrations import VERSION_TABLE
from envdsl.state.tables import metadata
from tests.postgres import Server


@pytest.fixture
def migrated(database_url: str) -> Iterator[Engine]:
    Database.open(database_url).close()
    engine = create_engine(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def declared(migrated: Engine, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The same tables, made from their declarations."""
    if migrated.dialect.name == "sqlite":
        url = f"sqlite:///{tmp_path}/declared.db"
    else:
        server: Server = request.getfixturevalue("postgres")
        url = server.database()
    engine = create_engine(url)
    metadata.create_all(engine)
    yield engine
    engine.dispose()


def test_alembic_finds_no_difference_between_migrations_and_tables(migrated: Engine) -> None:
    """Issue 4.4: the same migrations for both databases."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def compare_type(_context: Any, _inspected: Any, column: Any, found: Any, declared: Any) -> bool | None:
        # Types of our own are compared by what they are made of.
        if isinstance(declared, PlainText | UtcDateTime):
            return bool(found._type_affinity is not declared.impl_instance._type_affinity)
        return None

    with migrated.connect() as connection:
        options = {"compare_type": compare_type, "version_table": VERSION_TABLE}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_migrations_and_tables_agree_in_what_alembic_does_not_compare(migrated: Engine, declared: Engine) -> None:
    """Checks, conditions of indexes, nullability, names of keys."""
    assert _described(migrated) == _described(declared)


def _described(engine: Engine) -> dict[str, Any]:
    found = inspect(engine)
    return {
        table: {
            "columns": {item["name"]: (str(item["type"]), item["nullable"]) for item in found.get_columns(table)},
            "key": found.get_pk_constraint(table),
            "checks": sorted((str(item["name"]), item["sqltext"]) for item in found.get_check_constraints(table)),
            "unique": sorted((str(item["name"]), item["column_names"]) for item in found.get_unique_constraints(table)),
            "foreign": sorted((str(item["name"]), item["referred_table"]) for item in found.get_foreign_keys(table)),
            "indexes": sorted(
                (str(item["name"]), item["column_names"], bool(item["unique"]), _condition(item))
                for item in found.get_indexes(table)
            ),
        }
        for table in found.get_table_names()
        if table != VERSION_TABLE
    }


def _condition(index: Any) -> str:
    options = index.get("dialect_options", {})
    return str(options.get("sqlite_where", options.get("postgresql_where", "")))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_events SET actor = 'nobody'",
        "UPDATE audit_events SET actor = actor WHERE number = 1",
        "DELETE FROM audit_events",
        "DELETE FROM audit_events WHERE number = 2",
        "INSERT INTO audit_events SELECT 7, at, actor, action, session, subject, data, previous, hash "
        "FROM audit_events WHERE number = 1",
        "INSERT INTO audit_events SELECT 0, at, actor, action, session, subject, data, previous, hash "
        "FROM audit_events WHERE number = 1",
    ],
)
def test_the_database_itself_refuses_to_change_the_audit_log(migrated: Engine, statement: str) -> None:
    """Issue 4.4: append-only."""
    with Database.open(migrated.url.render_as_string(hide_password=False)) as database:
        for name in "ab":
            with database.transaction() as tx:
                tx.audit.append(actor=name, action="test.done")
        with pytest.raises(Exception, match="append-only"), migrated.begin() as connection:
            connection.execute(text(statement))
        with database.reading() as tx:
            assert [event.actor for event in tx.audit.range()] == ["a", "b"]
            assert tx.audit.verify() is None


def test_not_even_replacing_or_truncating_gets_around_that(migrated: Engine) -> None:
    """SQLite's REPLACE fires no trigger for the row that it deletes; TRUNCATE is no DELETE."""
    sqlite = migrated.dialect.name == "sqlite"
    columns = "1, at, 'forged', action, session, subject, data, previous, hash"
    statement = (
        f"INSERT OR REPLACE INTO audit_events SELECT {columns} FROM audit_events" if sqlite else "TRUNCATE audit_events"
    )
    with Database.open(migrated.url.render_as_string(hide_password=False)) as database:
        with database.transaction() as tx:
            tx.audit.append(actor="a", action="test.done")
        with pytest.raises(Exception, match="append-only"), migrated.begin() as connection:
            connection.execute(text(statement))


def test_a_migration_that_fails_leaves_a_database_as_it_was(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import envdsl.state.migrations as package

    def fails_late(connection: Any) -> None:
        real(connection)
        raise OSError("the disk is full")

    real = package._upgrade
    monkeypatch.setattr(package, "_upgrade", fails_late)
    with pytest.raises(OSError, match="full"):
        Database.open(database_url)
    engine = create_engine(database_url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()
    monkeypatch.undo()
    Database.open(database_url).close()

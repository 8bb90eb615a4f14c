"""Migrations of the control plane's tables, run by Alembic from inside the package.

:data:`REVISIONS` lists them in order, so that opening a database that is up to date imports no Alembic. To change a
table: change ``tables.py``, add ``versions/rNNNN_….py``, list its revision here. A migration that was released never
changes.
"""

from __future__ import annotations

import fcntl
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine, func, inspect, select, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from envdsl.state import failures
from envdsl.state.engine import READING, WAIT

REVISIONS = ("0001",)
VERSION_TABLE = "envdsl_schema"
_LOCK = 0x656E7665  # the advisory lock of a migration in PostgreSQL
_alembic = threading.Lock()  # Alembic's context is global to the process


def migrate(engine: Engine, url: URL) -> None:
    """Bring the tables behind ``engine`` to the newest revision; one process does, the others wait for it.

    The migrations that a database lacks run in one transaction, so that it has all of them or none.
    Raises :class:`EnvdslError` ``state-newer``.
    """
    if current(engine, url) == REVISIONS[-1]:
        return
    with _alone(engine, url):
        if current(engine, url) != REVISIONS[-1]:
            if engine.dialect.name == "sqlite":
                _keep_private(url)
                _use_wal(engine)
            with engine.begin() as connection:
                _upgrade(connection)


def current(engine: Engine, url: URL) -> str | None:
    """The revision that the database has; None for one without our tables."""
    with engine.execution_options(**{READING: True}).connect() as connection:
        if not inspect(connection).has_table(VERSION_TABLE):
            return None
        revision: str | None = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))
    if revision is not None and revision not in REVISIONS:
        raise failures.newer(url, revision)
    return revision


@contextmanager
def _alone(engine: Engine, url: URL) -> Iterator[None]:
    if engine.dialect.name == "sqlite":
        assert url.database is not None
        file = Path(url.database)
        try:
            lock = file.with_name(f"{file.name}.lock").open("w")
        except OSError as error:
            raise failures.unwritable(url, error) from error
        with _alembic, lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        return
    with _alembic, engine.connect() as connection:
        connection.execute(select(func.pg_advisory_lock(_LOCK)))
        try:
            yield
        finally:
            connection.execute(select(func.pg_advisory_unlock(_LOCK)))


def _keep_private(url: URL) -> None:
    """What all sessions ask for, and why, is for the file's user and group; SQLite gives its other files this mode."""
    file = Path(str(url.database))
    with suppress(PermissionError):  # somebody else made it, who chose its mode
        file.chmod(file.stat().st_mode & 0o770)


def _use_wal(engine: Engine) -> None:
    """Write-ahead logging is a property of the file, set once; it cannot be set within a transaction.

    SQLite wants the file for itself for that, and does not wait for it: others may be looking which revision it has.
    """
    connection = engine.raw_connection()
    deadline = time.monotonic() + WAIT
    try:
        while True:
            try:
                connection.cursor().execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise DBAPIError(None, None, error) from error
            time.sleep(0.01)
    finally:
        connection.close()


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

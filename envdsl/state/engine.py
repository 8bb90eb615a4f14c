"""Engines: how connections to either database are made, and how their transactions begin."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from envdsl.state import failures

WAIT = 30  # seconds that a writer waits for its turn; every transaction here is short
CONNECT_TIMEOUT = 10  # seconds
READING = "envdsl_reading"  # the execution option of transactions that only read
# Parameters of statements are nobody's business in a traceback: some are digests of tokens.
_ENGINE: dict[str, Any] = {"pool_size": 8, "max_overflow": 24, "pool_timeout": WAIT, "hide_parameters": True}


def parse(given: str | URL) -> URL:
    """Raises :class:`EnvdslError` ``state-url`` for one of another kind of database, or of one in memory."""
    try:
        url = make_url(given)
    except ArgumentError:
        raise failures.unsupported(str(given)) from None
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    in_memory = url.drivername == "sqlite" and url.database in (None, "", ":memory:")
    if url.drivername not in ("sqlite", "postgresql+psycopg") or in_memory:
        raise failures.unsupported(str(given))
    return url


def create(url: URL) -> Engine:
    """Raises ModuleNotFoundError where the driver is not installed; connects to nothing yet."""
    if url.get_backend_name() == "postgresql":
        engine = create_engine(url, pool_pre_ping=True, connect_args=_connect_arguments(url), **_ENGINE)
        event.listen(engine, "connect", _prepare_postgres)
        return engine
    engine = create_engine(url, connect_args={"timeout": WAIT}, **_ENGINE)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connect_arguments(url: URL) -> dict[str, Any]:
    return {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_TIMEOUT}


def _prepare_postgres(connection: Any, _record: Any) -> None:
    before, connection.autocommit = connection.autocommit, True
    connection.execute(f"SET lock_timeout = '{WAIT}s'")
    connection.autocommit = before


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # None: the module sqlite3 begins no transactions by itself, `_begin_sqlite` does.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    # An answered decision outlives a power cut; NORMAL would only promise that the file stays whole.
    connection.execute("PRAGMA synchronous = FULL")


def _begin_sqlite(connection: Connection) -> None:
    reading = connection.get_execution_options().get(READING, False)
    connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

"""The control plane's database: SQLite beside the store, or PostgreSQL where several hosts share one.

Both work alike (``docs/decisions/state-one-writer.md``). Writers pass one at a time: ``BEGIN IMMEDIATE`` in SQLite,
an advisory lock at the beginning of the transaction in PostgreSQL. That orders the audit chain, leaves no deadlock to
recover from, and makes a check followed by a write safe. Readers wait for nobody and see one snapshot.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine, func, select
from sqlalchemy.engine import URL

from envdsl.state import engine as engines
from envdsl.state import failures
from envdsl.state.migrations import migrate
from envdsl.state.transaction import Transaction

Clock = Callable[[], datetime]

WRITERS_LOCK = 0x656E7664  # "envd": the advisory lock that writers hold in PostgreSQL


def sqlite_url(file: Path) -> URL:
    """The URL of a database file, whatever characters are in its name."""
    return URL.create("sqlite", database=str(file))


def utc_now() -> datetime:
    return datetime.now(UTC)


class Database:
    """An open database, for any number of threads. Use as a context manager, or :meth:`close` it."""

    def __init__(self, url: URL, engine: Engine, clock: Clock) -> None:
        self.url = url
        self._engine = engine
        self._clock = clock
        self._is_postgres = url.get_backend_name() == "postgresql"
        options: dict[str, Any] = {engines.READING: True}
        if self._is_postgres:
            options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._reading_engine = engine.execution_options(**options)  # shares the connections
        # SQLite's waiting is by polling, which starves some of many threads; ours queue here first.
        self._turn = threading.Lock()
        self._local = threading.local()

    @classmethod
    def open(cls, url: str | URL, *, clock: Clock = utc_now) -> Self:
        """Connect, and bring the tables up to date; any number of processes may do that at once.

        Raises :class:`EnvdslError`: ``state-url``, ``state-no-driver``, ``state-unreachable``, ``state-newer``.
        """
        parsed = engines.parse(url)
        try:
            engine = engines.create(parsed)
        except ModuleNotFoundError as error:
            raise failures.no_driver(parsed, error.name) from error
        database = cls(parsed, engine, clock)
        try:
            with failures.translated(parsed):
                migrate(engine, parsed)
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that may write: all of it happens, or, where the block raises, nothing.

        Keep it short: every other writer waits. Raises :class:`EnvdslError`: ``state-busy`` where its turn does not
        come within :data:`envdsl.state.engine.WAIT` seconds, ``state-unreachable``.
        """
        with self._alone(), failures.translated(self.url), self._writers_turn(), self._engine.begin() as connection:
            if self._is_postgres:
                connection.execute(select(func.pg_advisory_xact_lock(WRITERS_LOCK)))
            yield Transaction(connection, self._clock(), writable=True)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that reads one snapshot, and neither waits for writers nor keeps them waiting."""
        with failures.translated(self.url), self._reading_engine.begin() as connection:
            yield Transaction(connection, self._clock(), writable=False)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A writing transaction inside another of the same thread would wait for itself."""
        if getattr(self._local, "writing", False):
            raise RuntimeError("this thread is in a writing transaction already")
        self._local.writing = True
        try:
            yield
        finally:
            self._local.writing = False

    @contextmanager
    def _writers_turn(self) -> Iterator[None]:
        if not self._turn.acquire(timeout=engines.WAIT):
            raise failures.busy(self.url, "other threads of this process write")
        try:
            yield
        finally:
            self._turn.release()

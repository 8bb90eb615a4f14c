"""One transaction, and the repositories that work in it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable

from envdsl.state.audit import Audit
from envdsl.state.bindings import Bindings
from envdsl.state.requests import Requests
from envdsl.state.sessions import Sessions
from envdsl.state.tokens import Tokens
from envdsl.state.webhooks import Webhooks
from envdsl.state.workers import Workers


class Transaction:
    """What :meth:`envdsl.state.database.Database.transaction` and ``reading`` give.

    ``now`` is one moment for everything in it. Writers pass one at a time, so that in a writing transaction whatever
    was read stays true until its end: read, check, write needs no further lock.
    """

    def __init__(self, connection: Connection, now: datetime, *, writable: bool) -> None:
        self.connection = connection
        self.now = now
        self._writable = writable

    @cached_property
    def requests(self) -> Requests:
        return Requests(self)

    @cached_property
    def bindings(self) -> Bindings:
        return Bindings(self)

    @cached_property
    def audit(self) -> Audit:
        return Audit(self)

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self)

    @cached_property
    def webhooks(self) -> Webhooks:
        return Webhooks(self)

    @cached_property
    def workers(self) -> Workers:
        return Workers(self)

    def read(self, statement: Executable, parameters: Mapping[str, Any] | None = None) -> CursorResult[Any]:
        """``parameters`` for the ``bindparam`` of a statement that was made once: to make one takes longer than SQLite
        takes to answer it, which counts where a request needs it each time."""
        return self.connection.execute(statement, parameters)

    def write(self, statement: Executable) -> CursorResult[Any]:
        if not self._writable:
            raise RuntimeError("a transaction for reading cannot write: use Database.transaction()")
        return self.connection.execute(statement)

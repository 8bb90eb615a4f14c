"""The tables, as they are after all migrations. ``tests/state/test_migrations.py`` holds the two together.

Primary keys of what people name are text ids (:mod:`envdsl.state.ids`). ``store`` tells apart the stores that share
one PostgreSQL database; it is the random id in ``<store>/id``.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)

from envdsl.state.columns import Document, PlainText, UtcDateTime
from envdsl.state.machine import OPEN
from envdsl.state.records import Status

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def _one_of(column: str, values: Iterable[str]) -> str:
    quoted = ", ".join(f"'{value}'" for value in values)
    return f"{column} IN ({quoted})"


_NOT_ENDED = text(_one_of("status", sorted(OPEN)))

requests = Table(
    "exec_env_requests",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("store", PlainText, nullable=False),
    Column("session", PlainText, nullable=False),
    Column("requester", PlainText, nullable=False),
    Column("reason", PlainText, nullable=False),
    Column("requirements", Document, nullable=False),
    Column("uploads", Document, nullable=False),
    Column("fingerprint", PlainText, nullable=False),
    Column("idempotency_key", PlainText),
    Column("status", PlainText, nullable=False),
    Column("classification", Document),
    Column("proposal", Document),
    Column("digest", PlainText),
    Column("decided_by", PlainText),
    Column("decided_choice", PlainText),
    Column("decided_digest", PlainText),
    Column("decided_at", UtcDateTime),
    Column("decided_comment", PlainText),
    Column("layer", PlainText),
    Column("problem", Document),
    Column("attempts", Integer, nullable=False),
    Column("worker", PlainText),
    Column("lease", UtcDateTime),
    Column("created", UtcDateTime, nullable=False),
    Column("updated", UtcDateTime, nullable=False),
    Column("expires", UtcDateTime),
    CheckConstraint(_one_of("status", sorted(Status)), name="status"),
    UniqueConstraint("store", "session", "idempotency_key"),
    # The same need twice is one request, for as long as it has not ended.
    Index(
        "exec_env_requests_open_key",
        "store",
        "session",
        "fingerprint",
        unique=True,
        sqlite_where=_NOT_ENDED,
        postgresql_where=_NOT_ENDED,
    ),
    Index("exec_env_requests_queue", "store", "status", "created"),
    Index("exec_env_requests_session", "store", "session", "id"),
)

bindings = Table(
    "exec_env_bindings",
    metadata,
    Column("store", PlainText, nullable=False),
    Column("session", PlainText, nullable=False),
    Column("number", Integer, nullable=False),
    Column("cause", PlainText, nullable=False),
    Column("request", PlainText, ForeignKey("exec_env_requests.id")),
    Column("actor", PlainText, nullable=False),
    Column("layers", Document, nullable=False),
    Column("manifest", PlainText, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("store", "session", "number"),
    CheckConstraint(_one_of("cause", ["create", "rebase", "request", "undo"]), name="cause"),
)

sessions = Table(
    "exec_env_sessions",
    metadata,
    Column("store", PlainText, nullable=False),
    Column("session", PlainText, nullable=False),
    Column("owner", PlainText, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("store", "session"),
)

workers = Table(
    "exec_env_workers",
    metadata,
    Column("name", PlainText, primary_key=True),
    Column("store", PlainText, nullable=False),
    Column("started", UtcDateTime, nullable=False),
    Column("seen", UtcDateTime, nullable=False),
)

# Append-only: triggers of the first migration refuse UPDATE, DELETE, TRUNCATE and an INSERT anywhere but at the end.
audit_events = Table(
    "audit_events",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", PlainText, nullable=False),
    Column("action", PlainText, nullable=False),
    Column("session", PlainText),
    Column("subject", PlainText),
    Column("data", Document, nullable=False),
    Column("previous", PlainText, nullable=False),
    Column("hash", PlainText, nullable=False),
    Index("audit_events_session", "session", "number"),
    Index("audit_events_subject", "subject", "number"),
)

tokens = Table(
    "access_tokens",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("store", PlainText, nullable=False),
    Column("digest", PlainText, nullable=False),
    Column("role", PlainText, nullable=False),
    Column("name", PlainText, nullable=False),
    Column("session", PlainText),
    Column("created", UtcDateTime, nullable=False),
    Column("expires", UtcDateTime),
    Column("revoked", UtcDateTime),
    Column("used", UtcDateTime),
    UniqueConstraint("digest"),
    CheckConstraint(_one_of("role", ["administrator", "agent", "owner", "reader"]), name="role"),
    CheckConstraint("(role = 'agent') = (session IS NOT NULL)", name="scope"),
)

webhooks = Table(
    "webhook_events",
    metadata,
    Column("id", PlainText, primary_key=True),
    Column("store", PlainText, nullable=False),
    Column("event", PlainText, nullable=False),
    Column("payload", Document, nullable=False),
    Column("created", UtcDateTime, nullable=False),
    Column("due", UtcDateTime),  # None: there is nothing more to do
    Column("attempts", Integer, nullable=False),
    Column("delivered", UtcDateTime),
    Column("problem", PlainText),
    Index("webhook_events_due", "store", "due"),
)

"""The control plane's first tables, and the triggers that keep the audit log append-only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NOT_ENDED = "status IN ('approved', 'building', 'isolated', 'pending')"
_STATUSES = (
    "'approved', 'building', 'cancelled', 'denied', 'expired', 'failed', 'isolated', 'pending', 'ready', 'refused'"
)

_SQLITE_TRIGGERS = (
    """
    CREATE TRIGGER audit_events_update BEFORE UPDATE ON audit_events
    BEGIN SELECT RAISE(ABORT, 'audit_events is append-only'); END
    """,
    """
    CREATE TRIGGER audit_events_delete BEFORE DELETE ON audit_events
    BEGIN SELECT RAISE(ABORT, 'audit_events is append-only'); END
    """,
    # Also what keeps INSERT OR REPLACE from replacing a row, which fires no trigger for the deletion.
    """
    CREATE TRIGGER audit_events_insert BEFORE INSERT ON audit_events
    WHEN NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM audit_events)
    BEGIN SELECT RAISE(ABORT, 'audit_events is append-only'); END
    """,
)
_POSTGRES_TRIGGERS = (
    """
    CREATE FUNCTION audit_events_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'audit_events is append-only'; END $$
    """,
    """
    CREATE FUNCTION audit_events_at_end() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.number <> (SELECT COALESCE(MAX(number), 0) + 1 FROM audit_events) THEN
            RAISE EXCEPTION 'audit_events is append-only';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER audit_events_change BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION audit_events_refuse()
    """,
    """
    CREATE TRIGGER audit_events_insert BEFORE INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION audit_events_at_end()
    """,
)


def upgrade() -> None:
    """Text, JSON and moments as :mod:`envdsl.state.columns` has them, written out: what was released stays as it is."""
    text, document, moment = sa.Text(), sa.JSON(), sa.DateTime(timezone=True)
    op.create_table(
        "exec_env_requests",
        sa.Column("id", text, nullable=False),
        sa.Column("store", text, nullable=False),
        sa.Column("session", text, nullable=False),
        sa.Column("requester", text, nullable=False),
        sa.Column("reason", text, nullable=False),
        sa.Column("requirements", document, nullable=False),
        sa.Column("uploads", document, nullable=False),
        sa.Column("fingerprint", text, nullable=False),
        sa.Column("idempotency_key", text),
        sa.Column("status", text, nullable=False),
        sa.Column("classification", document),
        sa.Column("proposal", document),
        sa.Column("digest", text),
        sa.Column("decided_by", text),
        sa.Column("decided_choice", text),
        sa.Column("decided_digest", text),
        sa.Column("decided_at", moment),
        sa.Column("decided_comment", text),
        sa.Column("layer", text),
        sa.Column("problem", document),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", text),
        sa.Column("lease", moment),
        sa.Column("created", moment, nullable=False),
        sa.Column("updated", moment, nullable=False),
        sa.Column("expires", moment),
        sa.PrimaryKeyConstraint("id", name="exec_env_requests_pkey"),
        sa.UniqueConstraint(
            "store", "session", "idempotency_key", name="exec_env_requests_store_session_idempotency_key_key"
        ),
        sa.CheckConstraint(f"status IN ({_STATUSES})", name=op.f("exec_env_requests_status_check")),
    )
    op.create_index(
        "exec_env_requests_open_key",
        "exec_env_requests",
        ["store", "session", "fingerprint"],
        unique=True,
        sqlite_where=sa.text(_NOT_ENDED),
        postgresql_where=sa.text(_NOT_ENDED),
    )
    op.create_index("exec_env_requests_queue", "exec_env_requests", ["store", "status", "created"])
    op.create_index("exec_env_requests_session", "exec_env_requests", ["store", "session", "id"])
    op.create_table(
        "exec_env_bindings",
        sa.Column("store", text, nullable=False),
        sa.Column("session", text, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("cause", text, nullable=False),
        sa.Column("request", text),
        sa.Column("actor", text, nullable=False),
        sa.Column("layers", document, nullable=False),
        sa.Column("manifest", text, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.PrimaryKeyConstraint("store", "session", "number", name="exec_env_bindings_pkey"),
        sa.ForeignKeyConstraint(["request"], ["exec_env_requests.id"], name="exec_env_bindings_request_fkey"),
        sa.CheckConstraint(
            "cause IN ('create', 'rebase', 'request', 'undo')", name=op.f("exec_env_bindings_cause_check")
        ),
    )
    op.create_table(
        "exec_env_sessions",
        sa.Column("store", text, nullable=False),
        sa.Column("session", text, nullable=False),
        sa.Column("owner", text, nullable=False),
        sa.Column("created", moment, nullable=False),
        sa.PrimaryKeyConstraint("store", "session", name="exec_env_sessions_pkey"),
    )
    op.create_table(
        "exec_env_workers",
        sa.Column("name", text, nullable=False),
        sa.Column("store", text, nullable=False),
        sa.Column("started", moment, nullable=False),
        sa.Column("seen", moment, nullable=False),
        sa.PrimaryKeyConstraint("name", name="exec_env_workers_pkey"),
    )
    op.create_table(
        "audit_events",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("at", moment, nullable=False),
        sa.Column("actor", text, nullable=False),
        sa.Column("action", text, nullable=False),
        sa.Column("session", text),
        sa.Column("subject", text),
        sa.Column("data", document, nullable=False),
        sa.Column("previous", text, nullable=False),
        sa.Column("hash", text, nullable=False),
        sa.PrimaryKeyConstraint("number", name="audit_events_pkey"),
    )
    op.create_index("audit_events_session", "audit_events", ["session", "number"])
    op.create_index("audit_events_subject", "audit_events", ["subject", "number"])
    op.create_table(
        "access_tokens",
        sa.Column("id", text, nullable=False),
        sa.Column("store", text, nullable=False),
        sa.Column("digest", text, nullable=False),
        sa.Column("role", text, nullable=False),
        sa.Column("name", text, nullable=False),
        sa.Column("session", text),
        sa.Column("created", moment, nullable=False),
        sa.Column("expires", moment),
        sa.Column("revoked", moment),
        sa.Column("used", moment),
        sa.PrimaryKeyConstraint("id", name="access_tokens_pkey"),
        sa.UniqueConstraint("digest", name="access_tokens_digest_key"),
        sa.CheckConstraint(
            "role IN ('administrator', 'agent', 'owner', 'reader')", name=op.f("access_tokens_role_check")
        ),
        sa.CheckConstraint("(role = 'agent') = (session IS NOT NULL)", name=op.f("access_tokens_scope_check")),
    )
    op.create_table(
        "webhook_events",
        sa.Column("id", text, nullable=False),
        sa.Column("store", text, nullable=False),
        sa.Column("event", text, nullable=False),
        sa.Column("payload", document, nullable=False),
        sa.Column("created", moment, nullable=False),
        sa.Column("due", moment),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("delivered", moment),
        sa.Column("problem", text),
        sa.PrimaryKeyConstraint("id", name="webhook_events_pkey"),
    )
    op.create_index("webhook_events_due", "webhook_events", ["store", "due"])
    postgres = op.get_bind().dialect.name == "postgresql"
    for trigger in _POSTGRES_TRIGGERS if postgres else _SQLITE_TRIGGERS:
        op.execute(trigger)

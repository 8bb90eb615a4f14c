"""What Alembic runs around the migrations: the connection and its transaction are those of the caller."""

from __future__ import annotations

from alembic import context

from envdsl.state.migrations import VERSION_TABLE
from envdsl.state.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite alters a table by making another
)
context.run_migrations()

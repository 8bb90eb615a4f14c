"""Column types that mean the same in SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from envdsl.errors import EnvdslError, ExitStatus

# A document, kept as the text that was written: nothing here looks into one by SQL, and JSONB would refuse a NUL that
# SQLite takes.
Document = JSON(none_as_null=True)


class UtcDateTime(TypeDecorator[datetime]):
    """A moment, to the microsecond: an aware datetime in, one in UTC out. SQLite, which has no type for it, gets UTC
    without a zone, so that its text sorts by time."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        assert isinstance(value, datetime)
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class PlainText(TypeDecorator[str]):
    """Text that every database can hold: no NUL, no half of a surrogate pair. Some of it is written by agents."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        check_text(value)
        return str(value)  # a driver may write the name of a StrEnum instead


def check_text(text: str) -> None:
    """Raise :class:`EnvdslError` ``state-text`` for what cannot be stored as text."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise EnvdslError.of(
            "state-text",
            f"a NUL character or half of a surrogate pair cannot be stored: {text[:80]!r}",
            hint="send text in valid UTF-8, without control characters",
            exit_status=ExitStatus.USAGE,
        )

"""``exclude-newer``: a date, a time, or an age."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

from envdsl.errors import EnvdslError
from envdsl.model.span import Span

_AGE = re.compile(r"(\d{1,5}) ?(hour|day|week)s?")


def cutoff(text: str, now: datetime, span: Span | None = None) -> str:
    """The RFC 3339 time before which a file must have been uploaded.

    A date includes its whole day (UTC); an age (``"7 days"``, ``"12 hours"``, ``"2 weeks"``) counts back from
    ``now``, which must know its time zone. Raises EnvdslError ``lock-exclude-newer-value``.
    """
    if (waiting := age(text)) is not None:
        return _spell(now - waiting)
    try:
        if len(text) == len("2026-01-31"):
            return _spell(datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC) + timedelta(days=1))
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise EnvdslError.of(
            "lock-exclude-newer-value",
            f"`exclude-newer` is neither a date nor an age: {text!r}",
            span=span,
            hint='write "2026-01-31", "2026-01-31T12:00:00Z", or "7 days"',
        ) from error
    return _spell(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def age(text: str) -> timedelta | None:
    """How old a file must be under an ``exclude-newer`` that is an age; None for a date or time."""
    match = _AGE.fullmatch(text.strip())
    return timedelta(**{f"{match[2]}s": int(match[1])}) if match else None


def _spell(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")

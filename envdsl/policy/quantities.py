"""Sizes and ages as people write them in a catalog."""

from __future__ import annotations

import re
from datetime import timedelta

_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(B|[kKMGT]i?B)")
_AGE = re.compile(r"(\d{1,5}) ?(hour|day|week)s?")
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
NONE = "none"


def parse_size(text: str) -> int:
    """Bytes: ``50 MB`` is 50,000,000, ``50 MiB`` is 52,428,800. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'{text!r} is no size: write "50 MB" or "1.5 GiB"')
    unit = match[2]
    power = _UNITS[unit.rstrip("B").rstrip("i").upper()]
    return int(float(match[1]) * (1024 if "i" in unit else 1000) ** power)


def spell_size(count: int) -> str:
    """Bytes for a person, in the powers of 1000 that a catalog mostly has: ``12.3 MB``."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value == int(value) else f"{value:.1f} {unit}"


def parse_age(text: str) -> timedelta:
    """``12 hours``, ``7 days``, ``2 weeks``. Raises ValueError."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'{text!r} is no age: write "7 days", "12 hours" or "2 weeks"')
    return timedelta(**{f"{match[2]}s": int(match[1])})


def spell_age(age: timedelta) -> str:
    """An age for a person: whole days, or hours below two days."""
    hours = max(0, int(age.total_seconds() // 3600))
    count, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"

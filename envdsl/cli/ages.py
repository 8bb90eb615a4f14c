"""Ages as options take them."""

from __future__ import annotations

import click

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_LONGEST = 100 * 365 * 24 * 3600.0  # seconds; a century is as good as for ever


def age(text: str) -> float:
    """Seconds from ``14d``, ``12h``, ``30m``, ``2w`` or ``90s``."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isascii() or not number.replace(".", "", 1).isdecimal():
        raise click.BadParameter(f"not an age: {text!r} (examples: 14d, 12h)")
    return min(float(number) * _UNITS[unit], _LONGEST)

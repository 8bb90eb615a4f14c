"""Identifiers that sort by the time they were made: 48 bits of milliseconds, 80 random bits.

The layout and the alphabet (Crockford's base 32, here in lower case) are those of ULID
(https://github.com/ulid/spec): no letter that reads like a digit, nothing that a shell or a URL would quote.
"""

from __future__ import annotations

import secrets
from datetime import datetime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_LENGTH = 26
_RANDOM_BITS = 80


def new_id(prefix: str, at: datetime) -> str:
    """``<prefix>-`` and 26 characters; of two ids, the one with the later ``at`` (in milliseconds) sorts later."""
    number = int(at.timestamp() * 1000) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
    digits = (_ALPHABET[(number >> (5 * position)) & 31] for position in reversed(range(_LENGTH)))
    return f"{prefix}-{''.join(digits)}"

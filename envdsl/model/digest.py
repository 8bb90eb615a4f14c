"""Digests and their spelling in store paths."""

from __future__ import annotations

import re

from blake3 import blake3

# Nix's base-32 alphabet: no e, o, u, t, so that no digest spells a word by accident.
_ALPHABET = "0123456789abcdfghijklmnpqrsvwxyz"
_SHA256 = re.compile(r"[0-9a-f]{64}")

STORE_HASH_LENGTH = 32


def blake3_hex(data: bytes) -> str:
    """blake3 of ``data`` as 64 lower-case hexadecimal digits, the spelling used everywhere but in paths."""
    return blake3(data).hexdigest()


def nix_base32(data: bytes) -> str:
    """``data`` in Nix's base-32 spelling (``libutil/hash.cc``: least significant digit last, bits from the end)."""
    length = (len(data) * 8 - 1) // 5 + 1
    number = int.from_bytes(data, "little")
    return "".join(_ALPHABET[(number >> (5 * position)) & 31] for position in reversed(range(length)))


def store_hash(key: str) -> str:
    """The 32 characters (160 bits) that stand for a 64-digit key in a store path."""
    return nix_base32(bytes.fromhex(key)[:20])


def is_sha256(text: str) -> bool:
    return _SHA256.fullmatch(text) is not None

"""Signatures of bundles: over the digest of ``bundle.json``, which names the digest of all else.

The manifest names the public key of its signer, so that a signature cannot be taken for another signer's; the
signature is the member after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app import signing
from envdsl.app.signing import SIZE, generate, hexadecimal, read_private
from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["NAME", "SIZE", "check", "generate", "hexadecimal", "read_private", "sign"]

NAME = "bundle.sig"
_KIND = b"envdsl bundle 1"


def sign(key: Ed25519PrivateKey, manifest: bytes) -> bytes:
    """The signature of a bundle with this ``bundle.json``; the same every time."""
    return signing.sign(key, _KIND, manifest)


def check(label: str, signer: str | None, signature: bytes, manifest: bytes, trusted: Sequence[Path]) -> None:
    """Raise :class:`EnvdslError` (exit status REFUSED) unless a key in ``trusted`` has signed this manifest:
    ``app-bundle-unsigned``, ``app-bundle-untrusted``, ``app-bundle-signature``."""
    keys = {hexadecimal(key): key for key in map(signing.read_public, trusted)}
    if signer is None:
        raise _refused("unsigned", f"{label} is not signed", "ask who made it for one that is (bundle create --sign)")
    if signer not in keys:
        raise _refused(
            "untrusted",
            f"{label} is signed with the key {signer}; trusted: {', '.join(sorted(keys))}",
            "compare the keys with who made it, by another way than the file",
        )
    if not signing.is_signed(keys[signer], signature, _KIND, manifest):
        raise _refused(
            "signature",
            f"the signature of {label} is wrong: it was changed after it was signed, or {signer} never signed it",
            "get it again from who made it",
        )


def _refused(rule: str, message: str, hint: str) -> EnvdslError:
    return EnvdslError.of(
        f"app-bundle-{rule}", message, hint=f"nothing of it was used; {hint}", exit_status=ExitStatus.REFUSED
    )

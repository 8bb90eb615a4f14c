"""Keys and signatures: ed25519 (RFC 8032) over the blake3 of a document, after a word for the kind of document.

Keys are PEM files as ``openssl genpkey -algorithm ed25519`` writes them, without a password. ``cryptography`` (the
extra ``sign``) is imported when a key is read.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SIZE = 64  # bytes of a signature


def generate(file: Path) -> tuple[Path, str]:
    """Write a new private key to ``file`` (mode 0600) and its public key beside it; returns the latter's place, and the
    key as 64 hexadecimal digits. Raises :class:`EnvdslError` ``app-key-exists`` before it replaces anything."""
    serialization = _serialization()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = file.with_name(f"{file.name}.pub")
    for place in (file, public):
        if os.path.lexists(place):
            raise EnvdslError.of(
                "app-key-exists",
                f"{place} exists, and a key that is in use would be lost with it",
                hint="name another file",
                exit_status=ExitStatus.USAGE,
            )
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(private)
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return public, hexadecimal(key.public_key())


def read_private(file: Path) -> Ed25519PrivateKey:
    """The signer's key. Raises :class:`EnvdslError` ``app-key``, ``app-no-cryptography``."""
    load = _serialization().load_pem_private_key
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _read(file, lambda data: load(data, password=None))
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(file, "holds no private ed25519 key")
    return key


def read_public(file: Path) -> Ed25519PublicKey:
    """A key to trust. Raises :class:`EnvdslError` ``app-key``, ``app-no-cryptography``."""
    load = _serialization().load_pem_public_key
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _read(file, load)
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key(file, "holds no public ed25519 key")
    return key


def hexadecimal(key: Ed25519PublicKey) -> str:
    """A public key as 64 digits: what people compare."""
    return key.public_bytes_raw().hex()


def sign(key: Ed25519PrivateKey, kind: bytes, document: bytes) -> bytes:
    """The signature of ``document``, the same every time. ``kind`` (``envdsl bundle 1``) keeps a signature of one kind
    of document from being taken for that of another."""
    return key.sign(_message(kind, document))


def is_signed(key: Ed25519PublicKey, signature: bytes, kind: bytes, document: bytes) -> bool:
    """Whether the holder of ``key`` made ``signature`` for this document of this kind."""
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, _message(kind, document))
    except InvalidSignature:
        return False
    return True


def _message(kind: bytes, document: bytes) -> bytes:
    return kind + b"\0" + blake3(document).digest()


def _read(file: Path, load: Any) -> Any:
    try:
        return load(file.read_bytes())
    except (ValueError, TypeError) as error:  # TypeError: it is encrypted
        raise _no_key(file, f"holds no key that can be used: {error}") from None


def _serialization() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError:
        raise EnvdslError.of(
            "app-no-cryptography",
            "signatures need the package cryptography, which is not installed",
            hint="install envdsl with its extra: envdsl[sign]",
            exit_status=ExitStatus.ENVIRONMENT,
        ) from None
    return serialization


def _no_key(file: Path, problem: str) -> EnvdslError:
    return EnvdslError.of(
        "app-key",
        f"{file} {problem}",
        hint="`envdsl bundle keygen FILE` makes a pair: FILE signs, FILE.pub is trusted",
        exit_status=ExitStatus.USAGE,
    )

"""Seals: what a session consists of and who decided that, as one signed document.

A seal names the head of the audit log. So whoever keeps seals elsewhere can say later whether the log still has what
it had then: rows that were cut off its end break no chain, but they miss the anchor. The key is the store's own
(``seal.key``, for its owner alone), made when it is first used; the signature is ed25519 over the canonical JSON of
the document without the member ``signature``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app import sessions, signing
from envdsl.app.control import binding
from envdsl.app.control.authorising import require
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import is_sha256
from envdsl.policy.access import Action, Principal
from envdsl.state.chain import Anchor, Break

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    from envdsl.app.control.plane import ControlPlane
    from envdsl.session.manifest import BoundLayer, Manifest
    from envdsl.state.records import BindingRecord, RequestRecord

VERSION = 1
_KIND = b"envdsl seal 1"
_KEY = "seal.key"


@dataclass(frozen=True, slots=True)
class Checked:
    """A seal whose signature is right. ``signer`` is the public key, 64 hexadecimal digits; ``broken`` says where the
    audit log is not the one that was sealed, None where it is, or where no log was asked."""

    session: str
    sealed: str
    signer: str
    anchor: Anchor
    broken: Break | None

    def to_json(self) -> dict[str, Any]:
        broken = self.broken
        return {
            "sound": broken is None,
            "session": self.session,
            "sealed": self.sealed,
            "signer": self.signer,
            "audit": {"number": self.anchor.number, "hash": self.anchor.hash},
            "broken": None if broken is None else {"number": broken.number, "problem": broken.problem},
        }


def seal(plane: ControlPlane, principal: Principal, session: str) -> dict[str, Any]:
    """The seal of ``session`` as it is now, signed; the audit log gets ``session.sealed``, which the seal names.

    Raises :class:`EnvdslError`: ``app-forbidden``, ``session-unknown``, ``app-key``, ``app-no-cryptography``.
    """
    require(plane, principal, Action.REBIND, session)
    key = _key(plane)
    signer = signing.hexadecimal(key.public_key())
    binding.history(plane, session)  # has a row for what the session is bound to now
    owner = plane.owner_of(session)
    with binding.alone(plane, session):
        manifest = sessions.show(plane.project, session).manifest
        digest = binding.digest(manifest)
        with plane.state.transaction() as tx:
            history = tx.bindings.history(plane.store_id, session)
            requests = tx.requests.list(plane.store_id, sessions=[session], limit=None)
            head = tx.audit.append(
                actor=principal.name,
                action="session.sealed",
                session=session,
                data={"store": plane.store_id, "manifest": digest, "signer": signer},
            )
    document = {
        "version": VERSION,
        "store": plane.store_id,
        "session": session,
        "owner": owner,
        "sealed": head.at.isoformat(),
        "by": principal.name,
        "manifest": digest,
        "interpreter": _interpreter(manifest),
        "base": _base(manifest.foundation),
        "layers": [_layer(layer) for layer in manifest.layers],
        "bindings": [_binding(record) for record in reversed(history)],
        "decisions": [_decision(record) for record in reversed(requests) if record.decision is not None],
        "audit": {"number": head.number, "hash": head.hash},
        "signer": signer,
    }
    return document | {"signature": signing.sign(key, _KIND, canonical_json(document)).hex()}


def write(document: Mapping[str, Any], file: Path) -> None:
    """Write a seal beside ``file`` and rename it: never half a seal under that name."""
    new = file.with_name(f".{file.name}.new")
    with new.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


def public_key(plane: ControlPlane) -> str:
    """The store's public key, 64 hexadecimal digits: what others need to check its seals; made if there is none.

    Raises :class:`EnvdslError`: ``app-key``, ``app-no-cryptography``.
    """
    return signing.hexadecimal(_key(plane).public_key())


def check(file: Path, *, trusted: Collection[str] = (), plane: ControlPlane | None = None) -> Checked:
    """Whether a seal is what one of the ``trusted`` keys has signed (64 hexadecimal digits, or the name of a
    PEM file); without any, the
    key of ``plane``'s store. With a ``plane``, also whether its audit log still has what was sealed.

    Raises :class:`EnvdslError` (exit status REFUSED): ``app-seal-untrusted``, ``app-seal-signature``; and
    ``app-seal-invalid`` for a file that is no seal.
    """
    document = _read(file)
    keys = _trusted(trusted) if trusted or plane is None else {public_key(plane)}
    signer = document["signer"]
    if signer not in keys:
        raise _refused(
            "untrusted",
            f"{file} is signed with the key {signer}; trusted: {', '.join(sorted(keys)) or 'none'}",
            "compare the keys with who made it, by another way than the file",
        )
    unsigned = {name: value for name, value in document.items() if name != "signature"}
    try:
        content = canonical_json(unsigned)
        right = signing.is_signed(_public(signer), bytes.fromhex(document["signature"]), _KIND, content)
    except (TypeError, ValueError):
        right = False
    if not right:
        raise _refused(
            "signature",
            f"the signature of {file} is wrong: it was changed after it was signed, or {signer} never signed it",
            "get it again from who made it",
        )
    anchor = Anchor(document["audit"]["number"], document["audit"]["hash"])
    broken = None
    if plane is not None:
        with plane.state.reading() as tx:
            broken = tx.audit.verify(anchor=anchor)
    return Checked(document["session"], document["sealed"], signer, anchor, broken)


def _key(plane: ControlPlane) -> Ed25519PrivateKey:
    from envdsl.store.locks import exclusive

    layout = plane.project.store.layout
    file = layout.root / _KEY
    if not file.exists():
        with exclusive(layout.tmp / "locks" / _KEY):
            if not file.exists():
                _make_key(file)
    return signing.read_private(file)


def _make_key(file: Path) -> None:
    """By renaming, the private key last: there is a whole pair, or one that is made again."""
    new = file.with_name(f".{file.name}")
    public = new.with_name(f"{new.name}.pub")
    for leftover in (new, public):  # of a process that died
        leftover.unlink(missing_ok=True)
    signing.generate(new)
    public.replace(file.with_name(f"{file.name}.pub"))
    new.replace(file)


def _interpreter(manifest: Manifest) -> dict[str, Any]:
    interpreter = manifest.interpreter
    return {"name": interpreter.name, "key": interpreter.key, "tree-hash": interpreter.tree_hash}


def _base(layer: BoundLayer) -> dict[str, Any]:
    return {"id": str(layer.id), "key": layer.key, "tree-hash": layer.tree_hash}


def _layer(layer: BoundLayer) -> dict[str, Any]:
    return {
        "name": layer.name,
        "kind": layer.kind.value,
        "id": str(layer.id),
        "key": layer.key,
        "tree-hash": layer.tree_hash,
        "lock": layer.lock,
        "wheels": [
            {"name": item.name, "version": item.version, "filename": item.filename, "sha256": item.sha256}
            for item in layer.packages
        ],
        "sources": [{"key": source.key, "tree-hash": source.tree_hash} for source in layer.sources],
    }


def _binding(record: BindingRecord) -> dict[str, Any]:
    return {
        "number": record.number,
        "cause": record.cause,
        "request": record.request,
        "actor": record.actor,
        "at": record.at.isoformat(),
        "manifest": record.manifest,
        "layers": [layer["id"] for layer in record.layers],
    }


def _decision(record: RequestRecord) -> dict[str, Any]:
    decision = record.decision
    assert decision is not None
    return {
        "request": record.id,
        "requester": record.requester,
        "requirements": list(record.requirements),
        "uploads": [{"filename": item["filename"], "sha256": item["sha256"]} for item in record.uploads],
        "status": record.status.value,
        "layer": record.layer,
        "by": decision.by,
        "choice": decision.choice,
        "digest": decision.digest,
        "at": decision.at.isoformat(),
        "comment": decision.comment,
    }


_MEMBERS = {"session": str, "sealed": str, "signer": str, "signature": str, "audit": dict}


def _read(file: Path) -> dict[str, Any]:
    problem = "is not JSON"
    try:
        document = json.loads(file.read_bytes())
        problem = "is no seal"
        if isinstance(document, dict) and document.get("version") not in (None, VERSION):
            problem = f"has version {document['version']} of the format, and this envdsl reads version {VERSION}"
        elif (
            isinstance(document, dict)
            and document.get("version") == VERSION
            and all(isinstance(document.get(name), kind) for name, kind in _MEMBERS.items())
            and isinstance(document["audit"].get("number"), int)
            and isinstance(document["audit"].get("hash"), str)
        ):
            return document
    except (ValueError, RecursionError):
        pass
    raise EnvdslError.of(
        "app-seal-invalid", f"{file} {problem}", hint="`envdsl session seal` writes one", exit_status=ExitStatus.USAGE
    )


def _trusted(keys: Iterable[str]) -> set[str]:
    return {key if is_sha256(key) else signing.hexadecimal(_public_of(key)) for key in keys}


def _public_of(name: str) -> Ed25519PublicKey:
    """The key in the file ``name``; whoever named no file, or another, is told what is expected."""
    try:
        return signing.read_public(Path(name))
    except OSError as error:
        problem = f"{error.strerror}: {name}"
    except EnvdslError as error:
        if error.code != "app-key":
            raise
        problem = error.diagnostics[0].message
    raise EnvdslError.of(
        "app-key",
        f"{name} is no key to trust: {problem}",
        hint="a key is 64 hexadecimal digits, as `signer` in a seal, or a PEM file with a public ed25519 key",
        exit_status=ExitStatus.USAGE,
    )


def _public(signer: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer))


def _refused(rule: str, message: str, hint: str) -> EnvdslError:
    return EnvdslError.of(f"app-seal-{rule}", message, hint=hint, exit_status=ExitStatus.REFUSED)

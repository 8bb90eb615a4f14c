"""Sessions: what they are bound to, were bound to, and would be."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError
from envdsl.policy.access import Action, may
from envdsl.policy.encoding import to_json
from envdsl.web.api.endpoint import Call

if TYPE_CHECKING:
    from envdsl.session.bindings import Session
    from envdsl.session.difference import Difference


def listing(call: Call) -> dict[str, Any]:
    """The sessions that the caller may see, by name: up to ``limit`` of those that come ``after``."""
    from envdsl.app import sessions

    after, limit = call.query.get("after", ""), call.query.get("limit", 100)
    seen = [
        (name, owner)
        for name, owner in call.plane.owners().items()
        if name > after and may(call.principal, Action.SEE_SESSION, session=name, owner=owner)
    ]
    found = []
    for name, owner in seen[:limit]:
        with suppress(EnvdslError):  # removed meanwhile, or damaged: `doctor` says so
            found.append(_session(sessions.show(call.plane.project, name), owner))
    return {"sessions": found, "more": len(seen) > limit}


def show(call: Call) -> dict[str, Any]:
    from envdsl.app import sessions

    found = sessions.show(call.plane.project, call.session)
    packages = [
        {"name": package.name, "version": package.version, "sha256": package.sha256, "layer": layer.name}
        for layer in found.manifest.layers
        for package in layer.packages
    ]
    return _session(found, call.plane.owner_of(call.session)) | {"installed": packages}


def history(call: Call) -> dict[str, Any]:
    from envdsl.app.control import binding

    return {
        "session": call.session,
        "bindings": [to_json(record) for record in binding.history(call.plane, call.session)],
    }


def rebase(call: Call) -> dict[str, Any]:
    from envdsl.app.control import binding

    dry_run = bool(call.body.get("dry-run", False))
    change = binding.rebase(
        call.plane,
        call.principal,
        call.session,
        call.body.get("base"),
        add=call.body.get("add", ()),
        drop=call.body.get("drop", ()),
        dry_run=dry_run,
        expected=call.body.get("digest"),
    )
    return _change(call.session, change, dry_run=dry_run)


def undo(call: Call) -> dict[str, Any]:
    from envdsl.app.control import binding

    change = binding.undo(call.plane, call.principal, call.session, number=call.body.get("number"))
    return _change(call.session, change, dry_run=False)


def seal(call: Call) -> dict[str, Any]:
    from envdsl.app.control import sealing

    return sealing.seal(call.plane, call.principal, call.session)


def _session(found: Session, owner: str) -> dict[str, Any]:
    manifest = found.manifest
    return {
        "name": found.name,
        "owner": owner,
        "python": str(manifest.interpreter.version),
        "layers": [
            {
                "name": layer.name,
                "id": str(layer.id),
                "kind": layer.kind.value,
                "packages": len(layer.packages),
            }
            for layer in manifest.layers
        ],
    }


def _change(session: str, change: Difference, *, dry_run: bool) -> dict[str, Any]:
    return {
        "session": session,
        "dry-run": dry_run,
        "digest": change.digest,
        "changes": change.lines(),
        "packages": to_json(change.packages),
    }

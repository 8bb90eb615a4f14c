"""Layers of the store, what keeps them, garbage, and the catalog."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

from envdsl.policy.access import Action, may
from envdsl.policy.encoding import to_json
from envdsl.web.api.endpoint import Call

if TYPE_CHECKING:
    from envdsl.app.control.inventory import StoredLayer
    from envdsl.policy.catalog import Catalog
    from envdsl.store.gc import Collected


def listing(call: Call) -> dict[str, Any]:
    from envdsl.app.control import inventory

    seen = _seen(call)
    return {"layers": [_layer(layer, seen) for layer in inventory.layers(call.plane.project)]}


def show(call: Call) -> dict[str, Any]:
    from envdsl.app.control import inventory

    found = inventory.layer(call.plane.project, call.path["layer"])
    return {
        "layer": _layer(found.layer, _seen(call)),
        "key": found.key,
        "tree-hash": found.tree_hash,
        "environment": dict(found.environment),
        "packages": to_json(found.packages),
    }


def users(call: Call) -> dict[str, Any]:
    from envdsl.app.control import inventory

    found, seen = inventory.layer(call.plane.project, call.path["layer"]), _seen(call)
    roots = [root for root in found.held_by if not root.startswith("session ")]
    sessions = _layer(found.layer, seen)
    return {"id": found.layer.id, "sessions": sessions["sessions"], "others": sessions["others"], "held-by": roots}


def _layer(layer: StoredLayer, seen: Container[str]) -> dict[str, Any]:
    """A layer with the sessions that the caller may see; of ``others`` it hears how many."""
    value: dict[str, Any] = to_json(layer)
    sessions = [session for session in layer.sessions if session in seen]
    return value | {"sessions": sessions, "others": len(layer.sessions) - len(sessions)}


def _seen(call: Call) -> set[str]:
    """The sessions that the caller may see."""
    owners = call.plane.owners().items()
    return {name for name, owner in owners if may(call.principal, Action.SEE_SESSION, session=name, owner=owner)}


def preview(call: Call) -> dict[str, Any]:
    return _collect(call, dry_run=True, **_policy(call.query))


def collect(call: Call) -> dict[str, Any]:
    return _collect(call, dry_run=False, **_policy(call.body))


def _policy(given: Any) -> dict[str, Any]:
    return {
        "free": given.get("free"),
        "older_than": given.get("older-than"),
        "keep_last": given.get("keep-last", 0),
    }


def _collect(call: Call, **options: Any) -> dict[str, Any]:
    from envdsl.app import collecting

    call.plane.project.reread()  # gc keeps what is locked now
    collected: Collected = collecting.collect(call.plane.project, **options)
    return {
        "dry-run": collected.dry_run,
        "paths": [path.path for path in collected.paths],
        "rubbish": list(collected.rubbish),
        "freed": collected.freed,
        "alive": collected.alive,
        "kept": collected.kept,
    }


def catalog(call: Call) -> dict[str, Any]:
    from envdsl.app.control import catalogue

    return catalogue.whole(_catalog(call), call.query.get("session"))


def explain(call: Call) -> dict[str, Any]:
    from envdsl.app.control import catalogue

    explanation = _catalog(call).explain(call.path["package"], call.query.get("version"))
    return catalogue.described(explanation, call.query.get("session"))


def _catalog(call: Call) -> Catalog:
    session = call.query.get("session")
    return call.plane.catalog if session is None else call.plane.catalog.for_session(session)

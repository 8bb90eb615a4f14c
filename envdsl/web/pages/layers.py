"""Layers: what the store has, what is in them, who uses them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.web.pages import names
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.app.control.inventory import LayerContents, StoredLayer


@dataclass(frozen=True, slots=True)
class LayersView:
    """Layers with the sessions that the visitor may see, and how many ``others`` each has, by its id."""

    layers: Sequence[StoredLayer]
    others: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LayerView:
    """One layer, with the sessions that the visitor may see; ``others`` are bound to it, too."""

    found: LayerContents
    others: int


def layers(visit: Visit) -> Response:
    from envdsl.app.control import inventory

    seen = set(names.visible(visit))
    found = inventory.layers(visit.plane.project)
    shown = [_seen(layer, seen) for layer in found]
    others = {full.id: len(full.sessions) - len(layer.sessions) for full, layer in zip(found, shown, strict=True)}
    return visit.page("layers.html", LayersView(shown, others))


def layer(visit: Visit) -> Response:
    from envdsl.app.control import inventory

    found = inventory.layer(visit.plane.project, visit.request.path_params["layer"])
    shown = _seen(found.layer, set(names.visible(visit)))
    hidden = {f"session {name}" for name in found.layer.sessions if name not in shown.sessions}
    held_by = tuple(root for root in found.held_by if root not in hidden)
    view = LayerView(replace(found, layer=shown, held_by=held_by), len(hidden))
    return visit.page("layer.html", view)


def _seen(layer: StoredLayer, seen: Container[str]) -> StoredLayer:
    return replace(layer, sessions=tuple(name for name in layer.sessions if name in seen))

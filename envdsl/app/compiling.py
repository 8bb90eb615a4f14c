"""From names to a graph: what the project's locks and sources say, compiled for this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.graph.compile import Graph


def compile_layers(project: Project, layers: Sequence[LayerSpec]) -> Graph:
    """The graph of ``layers``, whose locks must exist.

    Layers that no platform of this machine is declared for are in :attr:`Graph.skipped`. Raises
    :class:`EnvdslError` (``app-lock-missing`` for each that has none, ``graph-…``, and ``app-host-too-old`` for a C
    library older than a layer asks for).
    """
    from envdsl.app.locking import lock_missing
    from envdsl.graph.compile import compile_graph
    from envdsl.realise.source import tree_hash

    locks = {layer.name: lock for layer in layers if (lock := project.lock(layer.name)) is not None}
    if without := [lock_missing(layer) for layer in layers if layer.name not in locks]:
        raise EnvdslError(*without)
    places = {source.path for layer in layers for source in layer.sources}
    trees = {path: tree_hash(project.config.root / path) for path in sorted(places)}
    graph = compile_graph(project.spec, locks, project.platform, trees, layers=[layer.name for layer in layers])
    for name, layer in graph.layers.items():
        if layer.platform > project.platform:
            raise EnvdslError.of(
                "app-host-too-old",
                f"layer `{name}` is for {layer.platform}, and this machine is {project.platform}",
                span=project.spec.layers[name].span,
                hint="declare an older platform in the layer, or build on a newer machine",
                exit_status=ExitStatus.ENVIRONMENT,
            )
    return graph

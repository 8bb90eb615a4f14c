"""From what people name, layers of the project, families, ids, to layers as a session binds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LayerId, LayerKind

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.graph.derivation import Layer
    from envdsl.session.manifest import BoundLayer

_NOT_YET = "0" * 64  # the tree hash of what is not built


def bind(project: Project, wanted: Sequence[str]) -> list[BoundLayer]:
    """Bind layers by name, family or id. Named ones are built if they are not; the family of an x layer is read
    as the variant that stands on the chosen base."""
    from envdsl.app import building

    identifiers, named = _identifiers(wanted)
    chosen = _on_one_base(project, named)
    if chosen:
        building.build(project, chosen)
    return [*bind_built(project, chosen), *(bind_id(project, identifier) for identifier in identifiers)]


def foresee(project: Project, wanted: Sequence[str]) -> list[BoundLayer]:
    """What :func:`bind` would bind, without building or writing anything.

    A layer that does not stand yet has no tree hash: 64 zeros stand for it. Raises as :func:`bind` does, but for what
    only a build finds out.
    """
    from envdsl.app import locking
    from envdsl.app.compiling import compile_layers

    identifiers, named = _identifiers(wanted)
    chosen = _on_one_base(project, named)
    found: list[BoundLayer] = []
    if chosen:
        layers = project.select(chosen)
        locking.require_current(project, [layer.name for layer in layers])
        graph = compile_layers(project, layers)
        found = [_foreseen(project, name, graph.layers[name]) for name in chosen]
    return [*found, *(bind_id(project, identifier) for identifier in identifiers)]


def _foreseen(project: Project, name: str, layer: Layer) -> BoundLayer:
    lock = project.lock(name)
    digest = lock.digest if lock else None
    if project.store.lookup(layer.key) is not None:
        from envdsl.session.layers import bind_layer

        return bind_layer(project.store, name, layer.id, lock=digest)
    return as_bound(project, name, layer, lock=digest)


def as_bound(project: Project, name: str, layer: Layer, *, lock: str | None) -> BoundLayer:
    """A layer that does not stand yet as a session would bind it, as far as that is known before it is built."""
    from envdsl.session.manifest import BoundLayer, BoundPackage, BoundSource

    layout = project.store.layout
    packages = [BoundPackage(item.name, item.version, item.wheel.filename, item.wheel.sha256) for item in layer.unpacks]
    return BoundLayer(
        kind=layer.layer_kind,
        name=name,
        id=layer.id,
        key=layer.key,
        tree_hash=_NOT_YET,
        path=str(layout.absolute(layout.layer_path(layer.id))),
        python=layer.python,
        platform=layer.platform,
        base=layer.base.id if layer.base else None,
        lock=lock,
        packages=tuple(sorted(packages, key=lambda package: package.name)),
        sources=tuple(
            BoundSource(item.key, _NOT_YET, str(layout.absolute(layout.source_path(item.key))))
            for item in layer.sources
        ),
        environment=layer.env,
        directories=("site-packages",),
    )


def _identifiers(wanted: Sequence[str]) -> tuple[list[LayerId], list[str]]:
    identifiers: list[LayerId] = []
    named: list[str] = []
    for item in wanted:
        try:
            identifiers.append(LayerId.parse(item))
        except ValueError:
            named.append(item)
    return identifiers, named


def _on_one_base(project: Project, wanted: Sequence[str]) -> list[str]:
    layers = project.spec.layers
    chosen = [name if name in layers else project.layer(name).name for name in wanted]
    foundation = next((layers[name] for name in chosen if layers[name].kind is not LayerKind.X), None)
    if foundation is None:
        _refuse_without_base(layers, chosen)
        return chosen
    suffix = f"-py3{foundation.python.minor}"
    return [
        f"{asked}{suffix}" if asked not in layers and _stands_on(layers.get(f"{asked}{suffix}"), foundation) else name
        for asked, name in zip(wanted, chosen, strict=True)
    ]


def _refuse_without_base(layers: Mapping[str, LayerSpec], chosen: Sequence[str]) -> None:
    chosen = list(dict.fromkeys(chosen))
    bases = sorted({base for name in chosen if (base := layers[name].base) is not None})
    if bases:
        what = "is an x layer" if len(chosen) == 1 else "are x layers"
        raise EnvdslError.of(
            "app-session-without-base",
            f"a session stands on a base or an iso layer, and {' and '.join(chosen)} {what}",
            hint=f"name {' or '.join(bases)} as well: `session create --layer {bases[0]} --layer {chosen[0]}`, "
            f"`session rebase --to {bases[0]} --add {chosen[0]}`",
            exit_status=ExitStatus.USAGE,
        )


def _stands_on(layer: LayerSpec | None, foundation: LayerSpec) -> bool:
    return layer is not None and layer.base == foundation.name


def family(name: str) -> str:
    """``data`` of ``data-py312``; any other name as it is."""
    family, separator, minor = name.rpartition("-py3")
    return family if separator and minor.isdecimal() else name


def bind_built(project: Project, names: Sequence[str]) -> list[BoundLayer]:
    from envdsl.app.compiling import compile_layers
    from envdsl.session.layers import bind_layer

    if not names:
        return []
    graph = compile_layers(project, project.select(names))
    bound = []
    for name in names:
        lock = project.lock(name)
        bound.append(bind_layer(project.store, name, graph.layers[name].id, lock=lock.digest if lock else None))
    return bound


def bind_id(project: Project, identifier: LayerId) -> BoundLayer:
    from envdsl.session.layers import bind_layer

    return bind_layer(project.store, str(identifier), identifier)

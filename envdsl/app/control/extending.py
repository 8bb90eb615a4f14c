"""From a plan that was shown to the layer that a session binds: exactly the lock that was shown is built.

No project declares such a layer. Its declaration follows from the lock, the derivation of the base that it stands on
from what that base's build wrote down, so that it does not matter what the project has become since.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app.control import uploads as kept_uploads
from envdsl.errors import EnvdslError
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LAYER_NAME, LayerKind
from envdsl.policy.proposal import Plan, Upload

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.graph.compile import Graph
    from envdsl.graph.derivation import Layer
    from envdsl.lock.lock import Lock
    from envdsl.realise.fetch import Fetcher
    from envdsl.session.manifest import BoundLayer

_PREFIX = "requested"
_SHOWN = 3  # names in the name of a layer


def layer_name(requirements: Iterable[str], uploads: Iterable[Upload], taken: Collection[str] = ()) -> str:
    """What a session calls the layer of a request: ``requested-polars-rich``, with a number where that is ``taken``."""
    names = [re.split(r"[^A-Za-z0-9_-]", text, maxsplit=1)[0] for text in requirements]
    names += [upload.filename.partition("-")[0].replace("_", "-") for upload in uploads]
    unique = list(dict.fromkeys(name.lower() for name in names if name))
    more = [f"and-{len(unique) - _SHOWN}-more"] if len(unique) > _SHOWN else []
    name = "-".join([_PREFIX, *unique[:_SHOWN], *more])
    if LAYER_NAME.fullmatch(name) is None:
        name = f"{_PREFIX}-{blake3_hex(name.encode())[:12]}"
    found, number = name, 2
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    return found


def compiled(plane: ControlPlane, plan: Plan, name: str, foundation: BoundLayer) -> tuple[Lock, Graph]:
    """The lock of ``plan`` and the graph of its layer, called ``name``, over ``foundation``. An iso layer stands alone,
    with the variables and sources of the foundation whose place it takes.

    Raises EnvdslError ``app-plan-damaged`` where the lock is not the one that its digest names; ``lock-…``,
    ``realise-no-record``.
    """
    from envdsl.evaluate.spec import LayerSpec, ProjectPath, Spec
    from envdsl.graph.compile import compile_graph
    from envdsl.lock.pylock import parse_lock
    from envdsl.realise.records import Records

    data = plan.lock.encode()
    if blake3_hex(data) != plan.digest:
        raise EnvdslError.of("app-plan-damaged", "the plan of the request is not the one that was shown")
    store = plane.project.store
    lock = parse_lock(data, store.layout.locks / f"pylock.{name}.toml")
    base = Records(store, {}).layer(foundation.key, f"the layer {foundation.name} ({foundation.id})")
    extends = lock.kind is LayerKind.X
    sources = {} if extends else {str(number): source.tree_hash for number, source in enumerate(base.sources)}
    spec = LayerSpec(
        name=name,
        kind=lock.kind,
        base=foundation.name if extends else None,
        python=lock.python,
        platforms=lock.platforms,
        sources=tuple(map(ProjectPath, sources)),
        env=() if extends else base.env,
    )
    bases: dict[str, Layer] = {foundation.name: base} if extends else {}
    spec_of_one = Spec({name: spec}, {})
    return lock, compile_graph(spec_of_one, {name: lock}, foundation.platform, sources, layers=[name], bases=bases)


def foresee(plane: ControlPlane, plan: Plan, name: str, foundation: BoundLayer) -> BoundLayer:
    """The layer as :func:`realise` would return it; nothing is built."""
    from envdsl.app.bound_layers import as_bound

    _, graph = compiled(plane, plan, name, foundation)
    return as_bound(plane.project, name, graph.layers[name], lock=plan.digest)


def realise(
    plane: ControlPlane,
    plan: Plan,
    name: str,
    foundation: BoundLayer,
    uploads: Sequence[Upload] = (),
    *,
    jobs: int | None = None,
) -> BoundLayer:
    """Build the layer of ``plan`` unless it stands, and return it as a session binds it.

    The caller holds a lease of the store until a session is bound to it. Raises EnvdslError as :func:`compiled` does,
    and what fetching, intake and building raise.
    """
    from envdsl.app import interpreters
    from envdsl.realise import scheduler
    from envdsl.session.layers import bind_layer

    project = plane.project
    lock, graph = compiled(plane, plan, name, foundation)
    realisation = scheduler.realise(
        graph,
        [name],
        project.store,
        fetch=_fetcher(plane, lock, uploads),
        interpreters=lambda python: interpreters.provide(project, python, offline=False).executable,
        project=project.config.root,
        jobs=jobs,
        reporter=project.reporter,
        locks={name: plan.lock.encode()},
    )
    for warning in realisation.warnings:
        project.reporter.warn(warning)
    project.store.flush()
    return bind_layer(project.store, name, graph.layers[name].id, lock=plan.digest)


def _fetcher(plane: ControlPlane, lock: Lock, uploads: Sequence[Upload]) -> Fetcher:
    from envdsl.app.locking import index_configuration
    from envdsl.lock.candidates import Candidates, known_places
    from envdsl.realise.fetch import Fetcher

    store = plane.project.store
    places: dict[str, tuple[Path | str, ...]] = dict(plane.project.seen_at)
    places |= known_places(lock, store.layout.locks)
    places |= {upload.sha256: (kept_uploads.place(store.layout, upload),) for upload in uploads}
    return Fetcher(store, Candidates(index_configuration(plane.project), known=places), reporter=plane.project.reporter)

"""``envdsl gc`` and ``why-alive``, and the roots that a project registers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.model.digest import blake3_hex, store_hash

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.graph.compile import Graph
    from envdsl.store.gc import Collected
    from envdsl.store.layout import Layout
    from envdsl.store.roots import Root
    from envdsl.store.why import Reasons


def collect(
    project: Project,
    *,
    dry_run: bool,
    free: int | None = None,
    older_than: float | None = None,
    keep_last: int = 0,
) -> Collected:
    """Delete what no root needs: see :mod:`envdsl.store.census` for the roots that the store knows by itself.

    ``free``: stop when that many bytes of disk are free; ``older_than``: only what was not used for so many seconds;
    ``keep_last``: keep the last so many layers of each name. Raises :class:`EnvdslError` for a session whose manifest
    cannot be read: nothing is deleted on a guess.
    """
    from envdsl.store import reserve

    # Where the disk is full, nothing of this could begin without what is set aside for it.
    with nullcontext() if dry_run else reserve.released(project.store.layout):
        return _collect(project, dry_run, free, older_than, keep_last)


def _collect(project: Project, dry_run: bool, free: int | None, older_than: float | None, keep_last: int) -> Collected:
    from envdsl.session import bindings
    from envdsl.store import gc
    from envdsl.store.retention import Policy

    graph = register_locked(project)
    # Of a layer that is not built yet, what is there of it.
    locked = list(graph.derivations) if graph is not None else []
    layout = project.store.layout

    def roots() -> list[str | Root]:
        # Asked for when nobody else can change the store: a session made meanwhile keeps its layers.
        return [*locked, *_session_roots(layout)]

    policy = Policy(
        free=free,
        unused_since=None if older_than is None else int(time.time() - older_than),
        keep_last=keep_last,
    )
    collected = gc.collect(project.store, roots, policy=policy, dry_run=dry_run, reporter=project.reporter)
    bindings.prune(layout, dry_run=dry_run)
    return collected


def why_alive(project: Project, wanted: str) -> Reasons:
    """The roots that hold a path of the store, which is named in any way: path, layer id or name, key.

    Raises :class:`EnvdslError` ``store-unknown-path``.
    """
    from envdsl.model.names import LayerId
    from envdsl.store.roots import Root
    from envdsl.store.why import why_alive as ask

    store, graph = project.store, None
    with suppress(EnvdslError):  # as gc would do first; what is asked for may be of no project
        graph = register_locked(project) if store.writable else locked_graph(project)
    roots = {name: layer.key for name, layer in graph.layers.items()} if graph is not None else {}
    wanted = roots.get(wanted, wanted)
    with suppress(ValueError):
        wanted = store.layout.layer_path(LayerId.parse(wanted))
    title = " ".join(_title(project))
    locked = [Root(f"{name} of {title}", key) for name, key in roots.items()]
    return ask(store, wanted, lambda: [*locked, *_session_roots(store.layout)])


def _session_roots(layout: Layout) -> Iterator[Root]:
    from envdsl.session import bindings
    from envdsl.store.roots import Root

    for name, keys in bindings.roots(layout).items():
        for key in keys:
            yield Root(f"session {name}", key)


def register_locked(project: Project) -> Graph | None:
    """Let the project's list of roots name all of its layers that have a lock, current or not, and return their graph.

    With a warning and None for a project with errors: what its list names stays.
    """
    from envdsl.store import roots

    graphs: list[Graph] = []

    def find() -> dict[str, str]:
        graphs.append(locked_graph(project))
        return {name: layer.key for name, layer in graphs[0].layers.items()}

    try:
        roots.write(project.store.layout, _file(project), _title(project), find, complete=True)
    except EnvdslError as error:
        if error.code.startswith("store-"):
            raise
        project.reporter.warn(
            Diagnostic(
                "app-gc-project-broken",
                f"the project has errors ({error}), so the layers of its last builds are kept",
                hint="`envdsl check` and `envdsl lock --check` say what is wrong",
                severity="warning",
            )
        )
    return graphs[0] if graphs else None


def locked_graph(project: Project) -> Graph:
    """The graph of all layers of the project that have a lock. Raises :class:`EnvdslError` where it has errors."""
    from envdsl.app.compiling import compile_layers

    layers = [layer for layer in project.select(()) if project.lock(layer.name) is not None]
    bound = {layer.name for layer in layers}
    return compile_layers(project, [layer for layer in layers if layer.base is None or layer.base in bound])


def register_roots(project: Project, layers: Mapping[str, str] | Iterable[str], *, complete: bool) -> None:
    """Keep layers of this project (keys, by name where they have one) from every ``gc`` of the store, whoever runs it:
    ``gcroots/project-<hash>``.

    ``complete`` says that these are all that the project needs; otherwise they join what is there.
    """
    from envdsl.store import roots

    by_name = layers if isinstance(layers, Mapping) else {}
    unnamed = () if isinstance(layers, Mapping) else layers
    layout = project.store.layout
    roots.write(layout, _file(project), _title(project), lambda: by_name, complete=complete, unnamed=unnamed)


def _file(project: Project) -> str:
    return f"project-{store_hash(blake3_hex(os.fsencode(project.config.root.resolve())))}"


def _title(project: Project) -> tuple[str, str]:
    return "project", str(project.config.root.resolve())

"""``envdsl gc`` and ``why-alive``, and the roots that a project registers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.digest import blake3_hex, store_hash

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.graph.compile import Graph
    from envdsl.session.bindings import Session
    from envdsl.store.gc import Collected
    from envdsl.store.layout import Layout
    from envdsl.store.retention import Policy
    from envdsl.store.roots import Root
    from envdsl.store.why import Reasons


def collect(
    project: Project,
    *,
    dry_run: bool,
    free: int | None = None,
    older_than: float | None = None,
    keep_last: int = 0,
    drop_missing: bool = False,
) -> Collected:
    """Delete what no root needs: see :mod:`envdsl.store.census` for the roots that the store knows by itself.

    ``free``: stop when that many bytes of disk are free; ``older_than``: only what was not used for so many seconds;
    ``keep_last``: keep the last so many layers of each name; ``drop_missing``: let projects go whose directory is
    missing, and not only those that are missing for :data:`envdsl.store.roots.MISSING_AGE`. Raises
    :class:`EnvdslError` for a session whose manifest cannot be read, or whose layers the database does not know:
    nothing is deleted on a guess.
    """
    from envdsl.store import reserve
    from envdsl.store.gc import Collected
    from envdsl.store.layout import Layout
    from envdsl.store.retention import Policy
    from envdsl.store.roots import MISSING_AGE

    layout = Layout(project.config.store)
    if not layout.tmp.is_dir() and not layout.database.exists():  # no store, and nothing to make one for
        return Collected((), (), 0, 0, dry_run)
    # Where the disk is full, nothing of this could begin without what is set aside for it.
    with nullcontext() if dry_run else reserve.released(layout):
        policy = Policy(
            free=free,
            unused_since=None if older_than is None else int(time.time() - older_than),
            keep_last=keep_last,
            missing_age=0.0 if drop_missing else MISSING_AGE,
        )
        return _collect(project, dry_run, policy)


def _collect(project: Project, dry_run: bool, policy: Policy) -> Collected:
    from envdsl.session import bindings
    from envdsl.store import gc, roots

    graph = register_locked(project)
    # Of a layer that is not built yet, what is there of it.
    locked = list(graph.derivations) if graph is not None else []
    layout = project.store.layout

    def given() -> list[str | Root]:
        # Asked for when nobody else can change the store: a session made meanwhile keeps its layers.
        return [*locked, *_session_roots(layout)]

    _refuse_without_rows(project, dry_run=dry_run)
    if not dry_run:
        roots.note_missing(layout)
    _say_what_is_missing(project, policy.missing_age)
    collected = gc.collect(project.store, given, policy=policy, dry_run=dry_run, reporter=project.reporter)
    if not dry_run:
        roots.forget_missing(layout, missing_age=policy.missing_age)
    bindings.prune(layout, dry_run=dry_run)
    return collected


def _refuse_without_rows(project: Project, *, dry_run: bool) -> None:
    """A database that was lost or is an older one knows nothing of what sessions stand on: to gc it would be rubbish.

    Raises :class:`EnvdslError` ``app-gc-unknown-layers`` where a session's layer is on the disk and has no row.
    """
    from envdsl.store import rubbish

    layout = project.store.layout
    # The sessions first: what they bind was registered before they appeared.
    bound = list(sessions(layout))
    known = project.store.registry.places() if bound else {}
    unknown: dict[str, list[str]] = {}
    for session in bound:
        manifest = session.manifest
        places = {layer.key: layout.layer_path(layer.id) for layer in manifest.layers}
        places |= {source.key: layout.source_path(source.key) for layer in manifest.layers for source in layer.sources}
        for key, path in places.items():
            if key not in known and os.path.lexists(layout.absolute(path)):
                unknown.setdefault(session.name, []).append(path)
    if not unknown:
        return
    if not dry_run:
        rubbish.drop_caches(layout)  # or a build would have nothing to do
    raise EnvdslError.of(
        "app-gc-unknown-layers",
        f"nothing is deleted: {layout.database.name} does not know the layers of the sessions {', '.join(unknown)}, "
        "which are on the disk; it was lost, or is an older one",
        hint="`envdsl build` registers what a project declares; remove or rebase the sessions that stand on anything "
        "else, then run gc again",
        details={"sessions": unknown},
        exit_status=ExitStatus.ENVIRONMENT,
    )


def _say_what_is_missing(project: Project, missing_age: float) -> None:
    from envdsl.store import roots

    for item in roots.missing(project.store.layout):
        if item.since <= time.time() - missing_age:
            message = f"the project {item.project} is gone: its layers are no roots any more"
            hint = "a build in it makes them again"
        else:
            until = time.strftime("%Y-%m-%d", time.localtime(item.since + missing_age))
            message = f"the project {item.project} is missing; its layers are kept until {until}"
            hint = "if it was deleted, `envdsl gc --drop-missing` lets them go now"
        project.reporter.warn(Diagnostic("app-gc-project-missing", message, hint=hint, severity="warning"))


def why_alive(project: Project, wanted: str) -> Reasons:
    """The roots that hold a path of the store, which is named in any way: path, layer id or name, key.

    Raises :class:`EnvdslError` ``store-unknown-path``.
    """
    from envdsl.app.project import family
    from envdsl.model.names import LayerId
    from envdsl.store.roots import Root
    from envdsl.store.why import why_alive as ask

    store, graph = project.store, None
    with suppress(EnvdslError):  # as gc would do first; what is asked for may be of no project
        graph = register_locked(project) if store.writable else locked_graph(project)
    roots = {name: layer.key for name, layer in graph.layers.items()} if graph is not None else {}
    if graph is not None and wanted not in roots and wanted in map(family, project.spec.layers.values()):
        wanted = project.layer(wanted).name
    wanted = roots.get(wanted, wanted)
    with suppress(ValueError):
        wanted = store.layout.layer_path(LayerId.parse(wanted))
    title = " ".join(_title(project))
    locked = [Root(f"{name} of {title}", key) for name, key in roots.items()]
    return ask(store, wanted, lambda: [*locked, *_session_roots(store.layout)])


def _session_roots(layout: Layout) -> Iterator[Root]:
    from envdsl.store.roots import Root

    for session in sessions(layout):
        for key in session.manifest.store_keys():
            yield Root(f"session {session.name}", key)


def sessions(layout: Layout) -> Iterator[Session]:
    """All sessions; one that is removed while we look is none. Raises :class:`EnvdslError` for a damaged manifest."""
    from envdsl.session import bindings

    for name in bindings.names(layout):
        try:
            yield bindings.show(layout, name)
        except FileNotFoundError:
            continue
        except EnvdslError as error:
            if error.code != "session-unknown":
                raise


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

"""``envdsl gc`` and ``envdsl verify``, and the roots that a project registers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from envdsl.app.files import write_file
from envdsl.errors import Diagnostic, EnvdslError
from envdsl.model.digest import blake3_hex, store_hash

if TYPE_CHECKING:
    from pathlib import Path

    from envdsl.app.project import Project
    from envdsl.store.gc import Collected
    from envdsl.store.verify import Verified


def collect(project: Project, *, dry_run: bool) -> Collected:
    """Delete what no root needs: see :mod:`envdsl.store.gc` for the roots that the store knows by itself.

    Raises :class:`EnvdslError` for a session whose manifest cannot be read: nothing is deleted on a guess.
    """
    from envdsl.session import bindings
    from envdsl.store import gc

    try:
        locked = _locked_keys(project)
    except EnvdslError as error:
        locked = set()
        project.reporter.warn(
            Diagnostic(
                "app-gc-project-broken",
                f"the project has errors ({error}), so the layers of its last builds are kept",
                hint="`envdsl check` and `envdsl lock --check` say what is wrong",
                severity="warning",
            )
        )
    else:
        register_roots(project, locked, complete=True)
    layout = project.store.layout

    def roots() -> set[str]:
        # Asked for when nobody else can change the store: a session made meanwhile keeps its layers.
        return locked.union(*bindings.roots(layout).values())

    collected = gc.collect(project.store, roots, dry_run=dry_run, reporter=project.reporter)
    bindings.prune(layout, dry_run=dry_run)
    return collected


def _locked_keys(project: Project) -> set[str]:
    """The keys of all layers of the project that have a lock, current or not."""
    from envdsl.app.compiling import compile_layers

    layers = [layer for layer in project.select(()) if project.lock(layer.name) is not None]
    bound = {layer.name for layer in layers}
    layers = [layer for layer in layers if layer.base is None or layer.base in bound]
    return {layer.key for layer in compile_layers(project, layers).layers.values()} if layers else set()


def register_roots(project: Project, keys: Iterable[str], *, complete: bool) -> None:
    """Keep layers of this project from every ``gc`` of the store, whoever runs it: ``gcroots/project-<hash>``.

    ``complete`` says that ``keys`` are all that the project needs; otherwise they join what is there.
    """
    place = _roots_file(project)
    wanted = set(keys)
    if not complete and place.exists():
        wanted.update(place.read_text(encoding="utf-8").split())
    write_file(place, "".join(f"{key}\n" for key in sorted(wanted)).encode())


def _roots_file(project: Project) -> Path:
    name = f"project-{store_hash(blake3_hex(os.fsencode(project.config.root.resolve())))}"
    return project.store.layout.gcroots / name


def verify(project: Project) -> Verified:
    """Compare every valid path with what it held when it was registered."""
    from envdsl.store import verify as verifying

    return verifying.verify(project.store, jobs=os.cpu_count() or 1, reporter=project.reporter)

"""``envdsl fetch``: wheels into the wheelhouse before they are needed, for work without a network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from envdsl.app import building, interpreters, locking
from envdsl.app.bundles.content import Wanted, locked_wheels, project_locks
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.digest import blake3_hex, store_hash
from envdsl.model.names import Platform

if TYPE_CHECKING:
    from pathlib import Path

    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.realise.python import Interpreter


@dataclass(frozen=True, slots=True)
class WheelState:
    """One wheel of the wheelhouse: where it stands, whom it serves, and whether it was ``present`` before."""

    filename: str
    sha256: str
    size: int
    path: Path
    platforms: tuple[str, ...]
    layers: tuple[str, ...]
    present: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "filename": self.filename,
            "sha256": self.sha256,
            "size": self.size,
            "path": str(self.path),
            "platforms": list(self.platforms),
            "layers": list(self.layers),
            "status": "present" if self.present else "fetched",
        }


@dataclass(frozen=True, slots=True)
class Fetched:
    """What ``fetch`` prints."""

    wheels: tuple[WheelState, ...]
    interpreters: tuple[Interpreter, ...]


def fetch(
    project: Project,
    names: Sequence[str] = (),
    *,
    all_platforms: bool = False,
    interpreter: bool = True,
    offline: bool = False,
) -> Fetched:
    """Make everything that a build of these layers (all without names) on this machine needs stand in the store.

    ``all_platforms``: the wheels of all platforms that the locks are for. An interpreter that cannot be had is an
    error for layers that were named, else a warning. The wheels are kept from ``gc`` while a lock of the project
    pins them. Raises :class:`EnvdslError`.
    """
    layers = project.select(names)
    locking.require_current(project, [layer.name for layer in layers])
    wanted = wanted_wheels(project, layers, names, all_platforms=all_platforms)
    with project.store.lease():
        present = {item.wheel.key for item in wanted if project.store.lookup(item.wheel.key) is not None}
        try:
            building.fetcher(project, layers, offline)([item.wheel for item in wanted])
        finally:
            project.store.flush()
            keep_wheels(project, [item.wheel.key for item in wanted])
        found = provide_interpreters(project, layers, strict=bool(names), offline=offline) if interpreter else ()
    return Fetched(tuple(_state(project, item, item.wheel.key in present) for item in wanted), found)


def wanted_wheels(
    project: Project, layers: Sequence[LayerSpec], names: Sequence[str], *, all_platforms: bool
) -> tuple[Wanted, ...]:
    """The wheels of ``layers``: of this machine's platform, or of all.

    Layers of ``names`` that are for other machines are an error, others are left out with a note.
    """
    from envdsl.graph.compile import choose_platform

    platforms: dict[str, Iterable[Platform]] = {}
    for layer in layers:
        mine = choose_platform(layer.platforms, project.platform)
        if all_platforms:
            platforms[layer.name] = layer.platforms
        elif mine is not None:
            platforms[layer.name] = [mine]
        elif layer.name in {project.layer(name).name for name in names}:
            raise EnvdslError.of(
                "app-other-machine",
                f"layer `{layer.name}` is declared for {', '.join(map(str, layer.platforms))}; this machine is "
                f"{project.platform}",
                span=layer.span,
                hint="--all-platforms takes the wheels of other machines, too",
                exit_status=ExitStatus.ENVIRONMENT,
            )
        else:
            platforms[layer.name] = []
            project.reporter.note(f"{layer.name} is for other machines")
    return locked_wheels(project_locks(project, layers), platforms)


def provide_interpreters(
    project: Project, layers: Iterable[LayerSpec], *, strict: bool, offline: bool
) -> tuple[Interpreter, ...]:
    """The interpreters of ``layers``, installed where they are missing; a warning for each that cannot be had
    (``strict``: an error for all of them together)."""
    found: list[Interpreter] = []
    without: list[EnvdslError] = []
    for python in sorted({layer.python for layer in layers}):
        try:
            found.append(interpreters.provide(project, python, offline=offline))
        except EnvdslError as error:
            without.append(error)
    if without and strict:
        raise EnvdslError.all(without)
    for failure in without:
        for item in failure.diagnostics:
            project.reporter.warn(
                Diagnostic("app-interpreter-missing", item.message, hint=item.hint, severity="warning")
            )
    return tuple(found)


def keep_wheels(project: Project, keys: Iterable[str], *, prune: bool = True) -> None:
    """Keep wheels from ``gc`` although nothing is built from them yet: ``gcroots/wheels-<hash>``.

    ``prune``: those that no lock of the project pins any more are let go.
    """
    from envdsl.store import roots

    root = project.config.root.resolve()
    file = f"wheels-{store_hash(blake3_hex(os.fsencode(root)))}"
    layout = project.store.layout
    kept = {*keys, *(entry.target for entry in roots.read(layout.gcroots / file)[1])}
    if prune:
        try:
            kept &= pinned_keys(project)
        except EnvdslError as error:
            project.reporter.note(f"wheels that no lock needs any more are kept: {error}")
    roots.write(layout, file, ("wheels-of", str(root)), dict, complete=True, unnamed=kept)


def pinned_keys(project: Project) -> set[str]:
    """The keys of all wheels that a lock of the project pins, for whatever platform."""
    layers = project.select(())
    platforms = {layer.name: layer.platforms for layer in layers}
    return {item.wheel.key for item in locked_wheels(project_locks(project, layers), platforms)}


def _state(project: Project, item: Wanted, present: bool) -> WheelState:
    wheel = item.wheel
    return WheelState(
        wheel.filename,
        wheel.sha256,
        wheel.size,
        project.store.layout.absolute(project.store.layout.wheel_path(wheel.sha256, wheel.filename)),
        tuple(str(platform) for platform in sorted(item.platforms)),
        item.layers,
        present,
    )

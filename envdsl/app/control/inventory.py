"""What layers the store has, what is in them, and who uses them: for people who look after it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LayerId, LayerKind

if TYPE_CHECKING:
    from pathlib import Path

    from envdsl.app.project import Project
    from envdsl.store.store import Store, StorePath


@dataclass(frozen=True, slots=True)
class StoredLayer:
    """A layer that stands in the store.

    ``names`` are what projects and sessions call it, ``packages`` how many distributions it holds, ``size`` the bytes
    of its files (most of them shared with other layers by hard links). ``registered`` is when it was built,
    ``used`` when it was last needed (up to a day early). ``base`` is the id of the base that an x layer stands on.
    """

    id: str
    kind: str
    names: tuple[str, ...]
    python: str
    platform: str
    packages: int
    size: int
    registered: datetime
    used: datetime
    base: str | None
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LayerPackage:
    """A distribution of a layer and the wheel that it came from. ``licence`` is what its metadata says."""

    name: str
    version: str
    wheel: str
    sha256: str
    size: int
    imports: tuple[str, ...]
    licence: str | None
    summary: str


@dataclass(frozen=True, slots=True)
class LayerContents:
    """All that is known of one layer. ``environment`` are variables that it sets, ``held_by`` the roots that keep it
    from gc: none where it is garbage."""

    layer: StoredLayer
    key: str
    tree_hash: str
    path: str
    environment: tuple[tuple[str, str], ...]
    packages: tuple[LayerPackage, ...]
    held_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A store at a glance: ``unused`` counts the layers that no session is bound to, ``free`` is in bytes of disk."""

    sessions: int
    layers: int
    unused: int
    free: int


def summary(project: Project) -> Summary:
    from envdsl.session import bindings

    layout, found = project.store.layout, layers(project)
    return Summary(
        sessions=len(bindings.names(layout)),
        layers=len(found),
        unused=sum(not layer.sessions for layer in found),
        free=shutil.disk_usage(layout.root).free,
    )


def foundations(project: Project) -> tuple[str, ...]:
    """The base and iso layers that the project declares; none where it has errors, which ``envdsl check`` shows."""
    with suppress(EnvdslError):
        return tuple(sorted(layer.name for layer in project.spec.layers.values() if layer.kind is not LayerKind.X))
    return ()


def layers(project: Project) -> tuple[StoredLayer, ...]:
    """All layers of the store: bases, then iso, then x layers, by name."""
    bound = _bindings(project)
    names, sessions = _names(project, bound), _users(bound)
    found = [
        _layer(path, facts, names, sessions)
        for path in project.store.paths("layer")
        if (facts := _facts(project.store.layout.absolute(path.path))) is not None
    ]
    order = {"base": 0, "iso": 1, "x": 2}
    return tuple(sorted(found, key=lambda layer: (order[layer.kind], layer.names or ("~",), layer.id)))


def layer(project: Project, identifier: str) -> LayerContents:
    """The layer with this id. Raises :class:`EnvdslError` ``app-unknown-layer``."""
    from envdsl.app.collecting import why_alive

    path, facts = _find(project.store, identifier)
    place = project.store.layout.absolute(path.path)
    about = _metadata(place / "site-packages")
    bound = _bindings(project)
    return LayerContents(
        layer=_layer(path, facts, _names(project, bound), _users(bound)),
        key=path.key,
        tree_hash=path.tree_hash,
        path=str(place),
        environment=tuple(sorted(facts["env"].items())),
        packages=tuple(
            replace(_package(item), licence=licence, summary=summary)
            for item in facts["packages"]
            for licence, summary in [about.get((item["name"], item["version"]), (None, ""))]
        ),
        held_by=tuple(chain.root for chain in why_alive(project, path.key).chains),
    )


def _find(store: Store, identifier: str) -> tuple[StorePath, dict[str, Any]]:
    try:
        path = store.lookup_path(store.layout.layer_path(LayerId.parse(identifier)))
    except ValueError:
        path = None
    facts = _facts(store.layout.absolute(path.path)) if path is not None else None
    if path is None or facts is None:
        raise EnvdslError.of(
            "app-unknown-layer",
            f"there is no layer {identifier} in the store",
            hint="it may have been collected as garbage; `envdsl ls` lists those that there are",
            exit_status=ExitStatus.USAGE,
        )
    return path, facts


def _facts(place: Path) -> dict[str, Any] | None:
    """What ``layer.json`` says; None for a row whose directory somebody removed by hand."""
    try:
        facts: dict[str, Any] = json.loads((place / "layer.json").read_bytes())
    except (OSError, ValueError):
        return None
    return facts


def _layer(
    path: StorePath, facts: Mapping[str, Any], names: Mapping[str, set[str]], sessions: Mapping[str, list[str]]
) -> StoredLayer:
    return StoredLayer(
        id=facts["id"],
        kind=facts["kind"],
        names=tuple(sorted(names.get(path.key, ()))),
        python=facts["python"],
        platform=facts["platform"],
        packages=len(facts["packages"]),
        size=path.size,
        registered=datetime.fromtimestamp(path.registered, UTC),
        used=datetime.fromtimestamp(path.used, UTC),
        base=facts["base"]["id"] if facts["base"] else None,
        sessions=tuple(sessions.get(path.key, ())),
    )


def _package(item: Mapping[str, Any]) -> LayerPackage:
    return LayerPackage(
        name=item["name"],
        version=item["version"],
        wheel=item["wheel"],
        sha256=item["sha256"],
        size=item["size"],
        imports=tuple(item["imports"]),
        licence=None,
        summary="",
    )


class _Bound(NamedTuple):
    """A layer of a session: its key, and what the session calls it (None: by its id)."""

    session: str
    key: str
    name: str | None


def _names(project: Project, bound: Iterable[_Bound]) -> dict[str, set[str]]:
    """By key, what projects (their lists of roots) and sessions call a layer."""
    from envdsl.store import roots

    found: dict[str, set[str]] = {}
    gcroots = project.store.layout.gcroots
    for place in gcroots.iterdir() if gcroots.is_dir() else ():
        if place.is_file() and not place.is_symlink():
            for entry in roots.read(place)[1]:
                if entry.name:
                    found.setdefault(entry.target, set()).add(entry.name)
    for item in bound:
        if item.name is not None:
            found.setdefault(item.key, set()).add(item.name)
    return found


def _users(bound: Iterable[_Bound]) -> dict[str, list[str]]:
    """By key, the sessions that are bound to a layer."""
    found: dict[str, list[str]] = {}
    for item in bound:
        found.setdefault(item.key, []).append(item.session)
    return found


def _bindings(project: Project) -> list[_Bound]:
    """What sessions are bound to. Their manifests are not validated: there may be thousands, and one that is damaged
    is for ``doctor`` to report."""
    from envdsl.session import bindings

    layout = project.store.layout
    found: list[_Bound] = []
    for session in bindings.names(layout):
        with suppress(OSError, ValueError, LookupError, TypeError):
            manifest = json.loads((layout.sessions / session / bindings.MANIFEST).read_bytes())
            for layer in manifest["layers"]:
                name = layer["name"] if layer["name"] != layer["id"] else None
                found.append(_Bound(session, layer["key"], name))
    return found


def _metadata(site: Path) -> dict[tuple[str, str], tuple[str | None, str]]:
    """By normalised name and version, the licence and the summary that a distribution's metadata gives."""
    from envdsl.lock.metadata import parse_metadata

    found: dict[tuple[str, str], tuple[str | None, str]] = {}
    for place in site.glob("*.dist-info/METADATA") if site.is_dir() else ():
        with suppress(ValueError):
            metadata = parse_metadata(place.read_bytes())
            found[metadata.name, metadata.version] = (metadata.licence, metadata.summary)
    return found

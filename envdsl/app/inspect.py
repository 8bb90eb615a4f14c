"""Commands that only look: ``show``, ``graph``, ``show-derivation``, ``path``, ``ls``."""

from __future__ import annotations

import difflib
import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app.compiling import compile_layers
from envdsl.app.project import family, unknown_layer
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import store_hash
from envdsl.model.names import LayerId

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.graph.derivation import Derivation, Layer
    from envdsl.store.store import StorePath


@dataclass(frozen=True, slots=True)
class PackageFacts:
    """One distribution of a layer; ``size`` (bytes) and ``files`` are known once it is unpacked."""

    name: str
    version: str
    filename: str
    sha256: str
    wheel_size: int
    size: int | None
    files: int | None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "wheel": self.filename,
            "sha256": self.sha256,
            "wheel-size": self.wheel_size,
            "size": self.size,
            "files": self.files,
        }


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """What ``show`` prints. ``size`` (bytes) and ``files`` are None where the layer is not built, and
    ``lock_age`` (seconds) where there is no lock; ``stale`` says why that lock, or the base's, is no answer to the
    layer files any more."""

    name: str
    kind: str
    id: str
    key: str
    path: str | None
    tree_hash: str | None
    python: str
    platform: str
    platforms: tuple[str, ...]
    base: str | None
    description: str
    sources: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    waivers: tuple[str, ...]
    lock: str | None
    lock_age: float | None
    stale: tuple[str, ...]
    size: int | None
    files: int | None
    packages: tuple[PackageFacts, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "id": self.id,
            "key": self.key,
            "path": self.path,
            "tree-hash": self.tree_hash,
            "python": self.python,
            "platform": self.platform,
            "platforms": list(self.platforms),
            "base": self.base,
            "description": self.description,
            "sources": list(self.sources),
            "env": dict(self.env),
            "waivers": list(self.waivers),
            "lock": self.lock,
            "lock-age": None if self.lock_age is None else int(self.lock_age),
            "stale": list(self.stale),
            "size": self.size,
            "files": self.files,
            "packages": [package.to_json() for package in self.packages],
        }


def show(project: Project, name: str) -> LayerFacts:
    """The facts of a layer of the project, by name or id; it need not be built."""
    spec = _declared(project, name)
    layer = compile_layers(project, project.select([spec.name])).layers.get(spec.name)
    if layer is None:
        raise _not_for_this_machine(project, spec)
    present = project.store.lookup(layer.key)
    path = project.config.lock_path(spec.name)
    return LayerFacts(
        name=spec.name,
        kind=spec.kind.value,
        id=str(layer.id),
        key=layer.key,
        path=str(project.store.layout.absolute(present.path)) if present else None,
        tree_hash=present.tree_hash if present else None,
        python=str(spec.python),
        platform=str(layer.platform),
        platforms=tuple(str(platform) for platform in spec.platforms),
        base=spec.base,
        description=spec.description,
        sources=tuple(source.path for source in spec.sources),
        env=spec.env,
        waivers=(
            *(f"record-mismatch: {item}" for item in spec.allow.record_mismatch),
            *(f"collisions: {item}" for item in spec.allow.collisions),
        ),
        lock=path.relative_to(project.config.root).as_posix() if path.exists() else None,
        lock_age=_lock_age(path),
        stale=_stale(project, spec),
        size=present.size if present else None,
        files=_files(project, present),
        packages=tuple(_package(project, unpack) for unpack in layer.unpacks),
    )


def _package(project: Project, unpack: Any) -> PackageFacts:
    present = project.store.lookup(unpack.key)
    return PackageFacts(
        unpack.name,
        unpack.version,
        unpack.wheel.filename,
        unpack.wheel.sha256,
        unpack.wheel.size,
        present.size if present else None,
        _files(project, present),
    )


def _files(project: Project, path: StorePath | None) -> int | None:
    if path is None:
        return None
    return sum(entry.type == "file" for entry in project.store.listing(path.key))


def _stale(project: Project, spec: LayerSpec) -> tuple[str, ...]:
    from envdsl.app import locking

    return tuple(
        reason if outcome.layer == spec.name else f"base `{outcome.layer}`: {reason}"
        for outcome in locking.check(project, [spec.name])
        for reason in outcome.reasons
    )


def _lock_age(path: Path) -> float | None:
    """Seconds since the lock was last committed; of one that git does not know, since it was written."""
    try:
        asked = subprocess.run(
            ["git", "log", "-1", "--format=%ct", "--", path.name],
            cwd=path.parent,
            capture_output=True,
            text=True,
            check=True,
        )
        return time.time() - int(asked.stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        pass
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return None


def graph(project: Project, names: Sequence[str], style: str) -> str:
    """The graph of these layers (all without names) as ``tree``, ``dot``, ``mermaid`` or ``json``."""
    from envdsl.graph.render import render

    return render(compile_layers(project, project.select(names)), style)


def derivation(project: Project, wanted: str) -> str:
    """One derivation as JSON: of a layer by name, of anything by its id or key, or the beginning of these."""
    from envdsl.graph.render import describe

    return describe(_find(project, wanted))


def _find(project: Project, wanted: str) -> Derivation:
    """The derivation that ``wanted`` names: a layer's name or family, an id or a key, or the beginning of one."""
    from envdsl.app.collecting import locked_graph

    if wanted in (names := {*project.spec.layers, *map(family, project.spec.layers.values())}):
        spec = project.layer(wanted)
        layer = compile_layers(project, project.select([spec.name])).layers.get(spec.name)
        if layer is None:
            raise _not_for_this_machine(project, spec)
        return layer
    known = locked_graph(project).derivations.values()
    found = [item for item in known if wanted and any(name.startswith(wanted) for name in _ids(item))]
    if not found and difflib.get_close_matches(wanted, names, 1):
        raise unknown_layer(wanted, names)
    if len(found) != 1:
        raise EnvdslError.of(
            "app-unknown-derivation",
            f"{len(found)} derivations have an id or key that begins with `{wanted}`"
            if found
            else f"no layer of this project is called `{wanted}`, and no derivation has such an id or key",
            hint="`envdsl ls` lists the layers, `envdsl graph` all that they are made of",
            exit_status=ExitStatus.USAGE,
        )
    return found[0]


def _ids(item: Derivation) -> tuple[str, ...]:
    """All that a derivation is called; ``graph`` prints the beginning of the second."""
    return item.key, store_hash(item.key), str(getattr(item, "id", ""))


def ids(project: Project, beginning: str) -> list[str]:
    """For shell completion: what :func:`derivation` takes that begins so. Keys only once something of one is there."""
    from envdsl.app.collecting import locked_graph

    layers = project.spec.layers
    names = sorted({*layers, *map(family, layers.values())})
    if beginning:
        names += sorted(name for item in locked_graph(project).derivations.values() for name in _ids(item) if name)
    return [name for name in names if name.startswith(beginning)]


def path(project: Project, name: str) -> str:
    """The absolute store path of a layer by name, of anything by its id or key, or the beginning of these. Raises
    ``app-not-built``."""
    layout = project.store.layout
    try:
        found = project.store.lookup_path(layout.layer_path(LayerId.parse(name)))
    except ValueError:
        found = project.store.lookup(_find(project, name).key)
    if found is None:
        raise EnvdslError.of("app-not-built", f"`{name}` is not in the store", hint=f"run `envdsl build {name}`")
    return str(layout.absolute(found.path))


@dataclass(frozen=True, slots=True)
class ListedLayer:
    """A row of ``ls``: ``state`` is ``built``, ``not built``, ``stale`` (or its base is), ``not locked``, ``other
    machine``, or ``undeclared`` for a layer of the store that no declared one stands for."""

    name: str | None
    kind: str
    python: str
    state: str
    id: str | None
    path: str | None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind,
            "python": self.python,
            "state": self.state,
            "id": self.id,
            "path": self.path,
        }


def listing(project: Project) -> tuple[ListedLayer, ...]:
    """The layers of the project by name, then the other ones of the store."""
    from envdsl.app import locking

    states = {outcome.layer: outcome.status for outcome in locking.check(project, ())}
    current = [layer for layer in project.select(()) if states[layer.name] == "current"]
    # An x layer cannot be compiled without its base.
    current = [layer for layer in current if layer.base is None or states[layer.base] == "current"]
    compiled = compile_layers(project, current) if current else None
    rows = []
    for spec in project.spec.layers.values():
        layer = compiled.layers.get(spec.name) if compiled else None
        state = states[spec.name]
        if state == "current" and spec.base is not None and states[spec.base] != "current":
            state = "stale"
        rows.append(_row(project, spec, layer, state))
    known = {row.path for row in rows}
    for stored in project.store.paths("layer"):
        place = str(project.store.layout.absolute(stored.path))
        # A row whose directory somebody removed by hand: the next build or gc notices, and there is nothing to list.
        if place not in known and Path(place, "layer.json").exists():
            rows.append(_undeclared(place))
    return tuple(rows)


def _row(project: Project, spec: LayerSpec, layer: Layer | None, state: str) -> ListedLayer:
    if layer is None:
        shown = {"missing": "not locked", "current": "other machine"}.get(state, state)
        return ListedLayer(spec.name, spec.kind.value, str(spec.python), shown, None, None)
    found = project.store.lookup(layer.key)
    place = str(project.store.layout.absolute(found.path)) if found else None
    return ListedLayer(
        spec.name, spec.kind.value, str(spec.python), "built" if found else "not built", str(layer.id), place
    )


def _undeclared(place: str) -> ListedLayer:
    identifier = LayerId.parse(Path(place).name)
    facts = json.loads((Path(place) / "layer.json").read_bytes())
    return ListedLayer(None, identifier.kind.value, str(facts["python"]), "undeclared", str(identifier), place)


def _declared(project: Project, name: str) -> LayerSpec:
    """A declared layer by name, family or id."""
    try:
        wanted = LayerId.parse(name)
    except ValueError:
        return project.layer(name)
    locked = [layer for layer in project.select(()) if project.lock(layer.name) is not None]
    for declared, layer in compile_layers(project, locked).layers.items():
        if layer.id == wanted:
            return project.spec.layers[declared]
    raise unknown_layer(name, ())


def _not_for_this_machine(project: Project, spec: LayerSpec) -> EnvdslError:
    return EnvdslError.of(
        "app-other-machine",
        f"layer `{spec.name}` is declared for {', '.join(map(str, spec.platforms))}; this machine is "
        f"{project.platform}",
        span=spec.span,
        hint="add a platform of this machine to `platforms`, and lock again",
        exit_status=ExitStatus.ENVIRONMENT,
    )

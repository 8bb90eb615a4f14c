"""What a bundle of a project has to hold: decided from its files and locks alone, on both sides.

Who makes a bundle packs this; who gets one demands it: a store path that does not follow from the locks in the
bundle is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envdsl.config import FILE_NAME
from envdsl.model.names import Platform

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.graph.derivation import Derivation, WheelFile
    from envdsl.lock.lock import Lock
    from envdsl.store.treehash import Entry

REALISED = ("unpack", "bytecode", "source", "layer")


@dataclass(frozen=True)
class Wanted:
    """A wheel that locks pin: the ``platforms`` it is for and the ``layers`` that pin it. ``local`` ones are files
    of the project."""

    wheel: WheelFile
    platforms: frozenset[Platform]
    layers: tuple[str, ...]
    local: bool


def locked_wheels(locks: Mapping[str, Lock], platforms: Mapping[str, Iterable[Platform]]) -> tuple[Wanted, ...]:
    """The wheels that ``locks`` (by layer name) pin for ``platforms`` (of each layer), sorted by name and hash."""
    from envdsl.graph.derivation import WheelFile

    found: dict[str, Wanted] = {}
    for name, lock in sorted(locks.items()):
        wanted = set(platforms[name])
        for package in lock.packages:
            for platform, wheel in package.platforms:
                if platform not in wanted:
                    continue
                file = WheelFile(wheel.filename, wheel.sha256, wheel.size)
                known = found.get(file.key)
                found[file.key] = Wanted(
                    file,
                    frozenset({platform}) | (known.platforms if known else frozenset()),
                    tuple(sorted({name, *(known.layers if known else ())})),
                    wheel.path is not None,
                )
    return tuple(sorted(found.values(), key=lambda item: (item.wheel.filename, item.wheel.sha256)))


def realised(project: Project, layers: Sequence[LayerSpec], platform: Platform) -> dict[str, Derivation]:
    """What building ``layers`` on a machine of ``platform`` makes, apart from wheels: derivations by store path, each
    behind what it is made from."""
    from envdsl.graph.compile import compile_graph
    from envdsl.graph.output import output_path
    from envdsl.realise.source import tree_hash

    locks = project_locks(project, layers)
    places = {source.path for layer in layers for source in layer.sources}
    trees = {path: tree_hash(project.config.root / path) for path in sorted(places)}
    graph = compile_graph(project.spec, locks, platform, trees, layers=[layer.name for layer in layers])
    return {output_path(item): item for item in graph.derivations.values() if item.kind in REALISED}


def project_locks(project: Project, layers: Iterable[LayerSpec]) -> dict[str, Lock]:
    """The locks of ``layers`` by name; those that have none are left out."""
    return {layer.name: lock for layer in layers if (lock := project.lock(layer.name)) is not None}


def project_files(project: Project, layers: Sequence[LayerSpec]) -> tuple[str, ...]:
    """The files (not the sources) that a build of ``layers`` reads, relative to the project's root."""
    config = project.config
    locks = [config.lock_path(layer.name).relative_to(config.root).as_posix() for layer in layers]
    wheels = [wheel.path for layer in layers for wheel in layer.wheels]
    own = [FILE_NAME] if config.file.is_file() else []
    return tuple(sorted({*own, *project.spec.inputs, *locks, *wheels}))


def source_files(project: Project, layers: Iterable[LayerSpec]) -> dict[str, Entry]:
    """The files and links of the directories under ``sources``, by path relative to the project's root; directories may
    overlap."""
    from envdsl.realise.source import listing

    found: dict[str, Entry] = {}
    for path in sorted({source.path for layer in layers for source in layer.sources}):
        prefix = "" if path == "." else f"{path}/"
        found |= {
            prefix + entry.path: entry for entry in listing(project.config.root / path) if entry.type != "directory"
        }
    return found

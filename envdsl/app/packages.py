"""What locked layers hold, and why: ``why``, ``tree``, ``licenses``, ``search-import``, ``outdated``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app import locking
from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from packaging.version import Version

    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.lock.dependencies import Chain, DependencyGraph
    from envdsl.lock.facts import WheelFacts
    from envdsl.lock.index import IndexConfiguration
    from envdsl.lock.lock import Lock, LockedPackage, LockedWheel
    from envdsl.lock.pages import Pages
    from envdsl.lock.source import IndexSource

_THREADS = 8


@dataclass(frozen=True, slots=True)
class Licensed:
    """A package of some layers and the licence that it states; None where it states none, or nobody could look."""

    name: str
    version: str
    licence: str | None
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """A distribution that gives the import name that was looked for, and the layers that hold it."""

    name: str
    version: str
    imports: tuple[str, ...]
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outdated:
    """A package of which the indexes have a newer version with wheels for all platforms that need it.

    ``direct``: the layer itself asks for it; ``allowed``: its own requirements would let the newer version in.
    """

    layer: str
    name: str
    locked: str
    newest: str
    direct: bool
    allowed: bool


def graph_of(project: Project, name: str, *, offline: bool = False) -> DependencyGraph:
    """The requirements of a layer and of its base, in their own words as far as those can be had."""
    from envdsl.lock.dependencies import dependency_graph

    layer = project.layer(name)
    lock = require_lock(project, layer)
    base = require_lock(project, project.spec.layers[layer.base]) if layer.base is not None else None
    parts = [part for part in (base, lock) if part is not None]
    facts = facts_of(project, parts, offline=offline)
    requires = {
        package.name: found.metadata.requires
        for part in parts
        for package in part.packages
        if (found := fact_of(package, facts)) is not None and found.metadata is not None
    }
    return dependency_graph(lock, base, requires)


def why(project: Project, layer: str, package: str, *, offline: bool = False) -> Iterator[tuple[str, Chain]]:
    """The chains of requirements that bring ``package`` into ``layer``, each with the layer that it begins in.

    Raises EnvdslError ``app-package-unknown``.
    """
    from packaging.utils import canonicalize_name

    graph = graph_of(project, layer, offline=offline)
    name = canonicalize_name(package)
    if name not in graph.nodes:
        import difflib

        close = difflib.get_close_matches(name, graph.nodes, 1)
        raise EnvdslError.of(
            "app-package-unknown",
            f"neither {layer} nor its base holds a package {name}",
            hint=f"did you mean {close[0]}?" if close else f"`envdsl tree {layer}` shows what it holds",
            exit_status=ExitStatus.USAGE,
        )
    return graph.chains(name)


def licences(project: Project, layers: Sequence[str], *, offline: bool = False) -> tuple[Licensed, ...]:
    """The packages of ``layers`` (of all without names) with what they state, by name and version."""
    locks = [require_lock(project, layer) for layer in project.select_families(layers)]
    facts = facts_of(project, locks, offline=offline)
    found: dict[tuple[str, str], tuple[str | None, list[str]]] = {}
    for lock in locks:
        for package in lock.packages:
            fact = fact_of(package, facts)
            entry = found.setdefault((package.name, package.version), (fact.licence if fact else None, []))
            entry[1].append(lock.layer)
    return tuple(Licensed(*key, licence, tuple(names)) for key, (licence, names) in sorted(found.items()))


def search_import(project: Project, wanted: str) -> tuple[tuple[Provider, ...], int]:
    """Which locked distributions give the import name ``wanted`` (``google.protobuf`` too), and of how many others
    nothing is known, since their wheels are not on this machine."""
    from envdsl.app.traits import read_traits

    found: dict[tuple[str, str], tuple[tuple[str, ...], list[str]]] = {}
    unknown: set[tuple[str, str]] = set()
    known: dict[tuple[str, str], tuple[str, ...]] = {}
    for layer in project.spec.layers.values():
        lock = project.lock(layer.name)
        if lock is None:
            continue
        for package in lock.packages:
            key = (package.name, package.version)
            if key not in known:
                traits = next(
                    (traits for _, wheel in package.platforms if (traits := read_traits(project, lock, wheel))), None
                )
                if traits is None:
                    unknown.add(key)
                    continue
                known[key] = traits.imports
            unknown.discard(key)
            if any(_gives(name, wanted) for name in known[key]):
                found.setdefault(key, (known[key], []))[1].append(layer.name)
    providers = tuple(Provider(*key, imports, tuple(layers)) for key, (imports, layers) in sorted(found.items()))
    return providers, len(unknown)


def _gives(name: str, wanted: str) -> bool:
    return name == wanted or wanted.startswith(f"{name}.") or name.startswith(f"{wanted}.")


def outdated(project: Project, layers: Sequence[str]) -> tuple[Outdated, ...]:
    """What the indexes have newer than the locks of ``layers`` (of all without names).

    Raises EnvdslError ``lock-index-unreachable`` where an index does not answer.
    """
    from envdsl.lock.pages import Pages

    configuration = locking.index_configuration(project)
    pages = Pages(configuration)
    work = [
        (layer, package)
        for layer in project.select_families(layers)
        for package in require_lock(project, layer).packages
        if not any(wheel.path is not None for _, wheel in package.platforms)
    ]
    with ThreadPoolExecutor(_THREADS) as pool, project.reporter.task("Asking the indexes", len(work)) as task:
        newest = []
        for version in pool.map(lambda item: _newest(pages, configuration, *item), work):
            newest.append(version)
            task.advance()
    found = [_compare(layer, package, version) for (layer, package), version in zip(work, newest, strict=True)]
    return tuple(item for item in found if item is not None)


def _compare(layer: LayerSpec, package: LockedPackage, newest: Version | None) -> Outdated | None:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import Version

    if newest is None or newest <= Version(package.version):
        return None
    own = [Requirement(item.text) for item in (*layer.packages, *layer.constraints)]
    asked = [item for item in own if canonicalize_name(item.name) == package.name]
    allowed = all(item.specifier.contains(newest, prereleases=True) for item in asked)
    direct = any(canonicalize_name(Requirement(item.text).name) == package.name for item in layer.packages)
    return Outdated(layer.name, package.name, package.version, str(newest), direct, allowed)


def _newest(
    pages: Pages, configuration: IndexConfiguration, layer: LayerSpec, package: LockedPackage
) -> Version | None:
    """The newest version with a wheel for each platform that needs the package, looked for where ``lock`` would: in
    flat sources and the first index that knows it, or with another strategy (as pip's) in all indexes."""
    from envdsl.lock.ambient import FIRST_INDEX

    found: list[Version] = []
    for source in configuration.sources_for(package.name):
        by_version = _by_version(pages, source, layer, package)
        if (newest := _newest_of(pages, source, layer, package, by_version)) is not None:
            found.append(newest)
        if by_version and not source.flat and configuration.strategy == FIRST_INDEX:
            break
    return max(found, default=None)


def _by_version(
    pages: Pages, source: IndexSource, layer: LayerSpec, package: LockedPackage
) -> dict[Version, list[str]]:
    """The wheels that an index has of a package, without pre-releases where the layer takes none."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    found: dict[Version, list[str]] = {}
    for filename in pages.filenames(source, package.name):
        try:
            name, version, _, _ = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            continue
        if name == package.name and (layer.prereleases or not version.is_prerelease):
            found.setdefault(version, []).append(filename)
    return found


def _newest_of(
    pages: Pages,
    source: IndexSource,
    layer: LayerSpec,
    package: LockedPackage,
    by_version: Mapping[Version, Sequence[str]],
) -> Version | None:
    """The newest of ``by_version`` that suits every platform of the package and was not yanked."""
    from envdsl.lock import tags

    for version in sorted(by_version, reverse=True):
        chosen = [tags.best(by_version[version], layer.python, platform) for platform, _ in package.platforms]
        files = [pages.find(source, package.name, name) for name in chosen if name is not None]
        if None not in chosen and all(file is not None and file.yanked is None for file in files):
            return version
    return None


def facts_of(project: Project, locks: Iterable[Lock], *, offline: bool = False) -> Mapping[str, WheelFacts]:
    """The facts of one wheel of each package, by sha256: those of one version say the same."""
    from envdsl.app.traits import place_of
    from envdsl.lock.facts import FactsReader

    wanted = {_smallest(package): lock for lock in locks for package in lock.packages}

    def at_hand(wheel: LockedWheel) -> Path | None:
        return place_of(project, wanted[wheel], wheel)

    reader = FactsReader(locking.index_configuration(project), at_hand, offline=offline)
    return reader.read(wanted)


def fact_of(package: LockedPackage, facts: Mapping[str, WheelFacts]) -> WheelFacts | None:
    return facts.get(_smallest(package).sha256)


def _smallest(package: LockedPackage) -> LockedWheel:
    return min((wheel for _, wheel in package.platforms), key=lambda wheel: (wheel.size, wheel.filename))


def require_lock(project: Project, layer: LayerSpec) -> Lock:
    lock = project.lock(layer.name)
    if lock is None:
        raise EnvdslError.of(
            "app-lock-missing",
            f"layer {layer.name} has no lock",
            span=layer.span,
            hint=f"run `envdsl lock {layer.name}`",
        )
    return lock

"""What ``exclude-newer`` keeps from a lock: newer versions that are too young, and when they will be old enough."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from envdsl.evaluate.spec import LayerSpec
from envdsl.lock import tags
from envdsl.lock.cutoff import age, cutoff
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import LockedPackage
from envdsl.lock.pages import IndexedFile, Pages
from envdsl.lock.source import IndexSource
from envdsl.lock.uv import newest_patch
from envdsl.model.names import Platform

if TYPE_CHECKING:
    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The newest version of a package that only ``exclude-newer`` keeps away from a layer.

    ``uploaded`` is when its wheels for all platforms were there (UTC), ``eligible`` when they are old enough; None
    under a fixed date, which waiting does not change.
    """

    name: str
    locked: str
    version: str
    uploaded: datetime
    eligible: datetime | None


@dataclass(frozen=True, slots=True)
class Undated:
    """A source that has a newer version, but does not say since when (PEP 700): nobody can tell how long it waits."""

    source: IndexSource


def held_back(
    spec: LayerSpec,
    package: LockedPackage,
    *,
    pages: Pages,
    configuration: IndexConfiguration,
    now: datetime,
) -> HeldBack | Undated | None:
    """What ``spec.exclude_newer`` keeps of ``package``, a package of its lock; None for nothing.

    A version counts if it is newer than the pin, has wheels for all platforms that need the package, is not yanked
    and lies within what the layer itself says of it. Whether all the others would agree, only a resolver knows.
    Raises as :meth:`Pages.find`.
    """
    from packaging.version import Version

    if spec.exclude_newer is None or any(wheel.path is not None for _, wheel in package.platforms):
        return None
    undated: Undated | None = None
    limit = datetime.fromisoformat(cutoff(spec.exclude_newer, now, spec.span))
    for source in configuration.sources_for(package.name):
        versions = _versions(source, package.name, spec, pages)
        dated = {name: _moment(file) for files in versions.values() for name, file in files.items()}
        platforms = [platform for platform, _ in package.platforms]
        newer = [item for item in versions if item > Version(package.version) and _allowed(spec, package.name, item)]
        if newer and not any(dated.values()):
            undated = undated or Undated(source)
        for version in sorted(newer, reverse=True):
            times = {name: moment for name in versions[version] if (moment := dated[name]) is not None}
            complete = _complete_at(spec, platforms, times)
            if complete is not None and complete >= limit:
                waiting = age(spec.exclude_newer)
                eligible = complete + waiting if waiting is not None else None
                return HeldBack(package.name, package.version, str(version), complete, eligible)
        if versions and not source.flat:  # flat sources add to the first index that knows the name
            break
    return undated


def _versions(
    source: IndexSource, project: str, spec: LayerSpec, pages: Pages
) -> dict[Version, dict[str, IndexedFile]]:
    """The wheels by version that the layer's Python may use."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    found: dict[Version, dict[str, IndexedFile]] = {}
    for filename in pages.filenames(source, project):
        try:
            name, version, _, _ = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            continue
        if name != project or (version.is_prerelease and not spec.prereleases):
            continue
        file = pages.find(source, project, filename)
        if file is not None and file.yanked is None and _runs(file, newest_patch(spec.python)):
            found.setdefault(version, {})[filename] = file
    return found


def _runs(file: IndexedFile, python: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(file.requires_python or "").contains(python)
    except InvalidSpecifier:
        return True


def _allowed(spec: LayerSpec, project: str, version: Version) -> bool:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    overriding = [Requirement(item.text) for item in spec.overrides]
    own = [Requirement(item.text) for item in (*spec.packages, *spec.constraints)]
    said = [item for item in overriding if canonicalize_name(item.name) == project]
    said = said or [item for item in own if canonicalize_name(item.name) == project]
    return all(item.specifier.contains(version, prereleases=True) for item in said)


def _complete_at(spec: LayerSpec, platforms: Iterable[Platform], times: Mapping[str, datetime]) -> datetime | None:
    """When there was a wheel for each platform; None where there is none for some."""
    moments = []
    for platform in platforms:
        fitting = [time for name, time in times.items() if tags.rank(name, spec.python, platform) is not None]
        if not fitting:
            return None
        moments.append(min(fitting))
    return max(moments, default=None)


def _moment(file: IndexedFile) -> datetime | None:
    try:
        moment = datetime.fromisoformat(file.uploaded or "")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)

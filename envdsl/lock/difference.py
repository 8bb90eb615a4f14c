"""What lies between two sets of locks, as a reviewer asks: what came, what went, what moved, and is anything odd? Pure.

The odd thing is a *repin*: the same version of a package with another hash under the same file name. An index never
serves that; it is a wheel that was swapped, or a lock that somebody edited.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

from envdsl.lock.lock import Lock, LockedPackage, LockedWheel
from envdsl.model.names import Platform


class Kind(StrEnum):
    """What happened to a package, the gravest first."""

    REPINNED = "repinned"  # same version, same file name, another hash
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"  # another version
    REBUILT = "rebuilt"  # same version, another wheel: a build or a tag that fits better
    PLATFORMS = "platforms"  # same wheels, needed on more platforms or on fewer


@dataclass(frozen=True, slots=True)
class Traits:
    """What a wheel's own metadata says. ``licence`` is None where it says nothing."""

    licence: str | None
    imports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PackageDifference:
    """One package of one layer. ``before`` and ``after`` are versions, None where it is not there.

    ``size`` is by how many bytes the wheels of all platforms together grew. Licences and the import names ``gained``
    and ``lost`` are given where the traits of both versions are known.
    """

    kind: Kind
    name: str
    before: str | None
    after: str | None
    size: int
    files: tuple[tuple[LockedWheel | None, LockedWheel | None], ...] = ()
    platforms_gained: tuple[Platform, ...] = ()
    platforms_lost: tuple[Platform, ...] = ()
    licence_before: str | None = None
    licence_after: str | None = None
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LockDifference:
    """One layer. ``before`` and ``after`` name the sides' layers, None where there is none; packages are sorted by
    gravity, then name. ``settings`` are lines about Python, base, kind and platforms."""

    before: str | None
    after: str | None
    packages: tuple[PackageDifference, ...]
    settings: tuple[str, ...]
    size_before: int
    size_after: int

    def __bool__(self) -> bool:
        return bool(self.packages or self.settings or self.before is None or self.after is None)

    @property
    def name(self) -> str:
        """What a heading calls it."""
        if self.before is not None and self.after is not None and self.before != self.after:
            return f"{self.before} → {self.after}"
        return self.after or self.before or ""

    def of_kind(self, kind: Kind) -> tuple[PackageDifference, ...]:
        return tuple(package for package in self.packages if package.kind is kind)


def difference(before: Lock | None, after: Lock | None, traits: Mapping[str, Traits] | None = None) -> LockDifference:
    """Between two locks of a layer, one of which may not exist. ``traits`` by the sha256 of wheels, as far as known."""
    known = traits or {}
    # Where a platform comes or goes for the whole layer, that is one line, not one for each package.
    common = set(before.platforms) & set(after.platforms) if before and after else None
    old = {package.name: package for package in before.packages} if before else {}
    new = {package.name: package for package in after.packages} if after else {}
    found = [
        change
        for name in old.keys() | new.keys()
        if (change := _package(old.get(name), new.get(name), common, known)) is not None
    ]
    order = list(Kind)
    return LockDifference(
        before.layer if before else None,
        after.layer if after else None,
        tuple(sorted(found, key=lambda change: (order.index(change.kind), change.name))),
        tuple(_settings(before, after)) if before and after else (),
        _size(old.values()),
        _size(new.values()),
    )


def grouped(differences: Iterable[LockDifference]) -> list[tuple[tuple[str, ...], LockDifference]]:
    """Layers that changed alike (the variants of a family, mostly), with one of their differences for all.

    Wheels differ between variants, and so do sizes; a repin is never put together with another.
    """
    groups: dict[object, list[LockDifference]] = {}
    for item in differences:
        likeness = (
            item.before is None,
            item.after is None,
            item.settings,
            tuple(
                (package.kind, package.name, package.before, package.after, package.platforms_gained)
                + (package.platforms_lost, package.licence_before, package.licence_after, package.gained, package.lost)
                + (package.files if package.kind is Kind.REPINNED else ())
                for package in item.packages
            ),
        )
        groups.setdefault(likeness, []).append(item)
    return [(tuple(item.name for item in group), group[0]) for group in groups.values()]


def _package(
    before: LockedPackage | None,
    after: LockedPackage | None,
    common: Set[Platform] | None,
    traits: Mapping[str, Traits],
) -> PackageDifference | None:
    present = after or before
    assert present is not None
    old, new = _wheels(before, common), _wheels(after, common)
    if not old and not new:
        return None
    changed = tuple(
        sorted(
            {(old.get(platform), new.get(platform)) for platform in old.keys() | new.keys()},
            key=lambda pair: [wheel.filename if wheel else "" for wheel in pair],
        )
    )
    files = tuple((one, other) for one, other in changed if _hash(one) != _hash(other))
    kind = _kind(before, after, files)
    if kind is None:
        return None
    was, now = _traits(old.values(), traits), _traits(new.values(), traits)
    both = was is not None and now is not None
    return PackageDifference(
        kind,
        present.name,
        before.version if before else None,
        after.version if after else None,
        _size([after] if after else []) - _size([before] if before else []),
        files,
        tuple(sorted(new.keys() - old.keys())) if before else (),
        tuple(sorted(old.keys() - new.keys())) if after else (),
        was.licence if was and (both or after is None) else None,
        now.licence if now and (both or before is None) else None,
        tuple(sorted(set(now.imports) - set(was.imports if was else ()))) if now and (both or before is None) else (),
        tuple(sorted(set(was.imports) - set(now.imports if now else ()))) if was and (both or after is None) else (),
    )


def _kind(
    before: LockedPackage | None,
    after: LockedPackage | None,
    files: Iterable[tuple[LockedWheel | None, LockedWheel | None]],
) -> Kind | None:
    if before is None:
        return Kind.ADDED
    if after is None:
        return Kind.REMOVED
    if before.version != after.version:
        return Kind.MOVED
    pairs = [(one, other) for one, other in files if one is not None and other is not None]
    if any(one.filename == other.filename for one, other in pairs):
        return Kind.REPINNED
    if pairs:
        return Kind.REBUILT
    return Kind.PLATFORMS if any(True for _ in files) else None


def _settings(before: Lock, after: Lock) -> Iterable[str]:
    if before.kind is not after.kind:
        yield f"kind {before.kind.value} → {after.kind.value}"
    if before.python != after.python:
        yield f"Python {before.python} → {after.python}"
    old_base, new_base = (lock.base.name if lock.base else "none" for lock in (before, after))
    if old_base != new_base:
        yield f"base {old_base} → {new_base}"
    for sign, platforms in (
        ("+", set(after.platforms) - set(before.platforms)),
        ("-", set(before.platforms) - set(after.platforms)),
    ):
        for platform in sorted(platforms):
            yield f"{sign} platform {platform}"


def _wheels(package: LockedPackage | None, platforms: Set[Platform] | None) -> dict[Platform, LockedWheel]:
    if package is None:
        return {}
    return {platform: wheel for platform, wheel in package.platforms if platforms is None or platform in platforms}


def _hash(wheel: LockedWheel | None) -> str | None:
    return wheel.sha256 if wheel else None


def _traits(wheels: Iterable[LockedWheel], known: Mapping[str, Traits]) -> Traits | None:
    """Of the first wheel that is known: those of one version say the same, but for what a platform adds."""
    return next((known[wheel.sha256] for wheel in wheels if wheel.sha256 in known), None)


def _size(packages: Iterable[LockedPackage]) -> int:
    wheels = {wheel.sha256: wheel.size for package in packages for _, wheel in package.platforms}
    return sum(wheels.values())

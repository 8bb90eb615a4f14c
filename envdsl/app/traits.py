"""Licences and import names of wheels that are at hand, or can be got."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.lock.difference import Traits
    from envdsl.lock.lock import Lock, LockedPackage, LockedWheel


def traits_of(
    project: Project, pairs: Sequence[tuple[Lock | None, Lock | None]], *, fetch: bool
) -> tuple[dict[str, Traits], int]:
    """Traits by sha256 of the packages that differ within ``pairs``, one wheel for each version, and of how many
    nothing is known. ``fetch`` puts what is missing into the wheelhouse. Raises EnvdslError for what can't be got."""
    wanted = list(_changed(pairs))
    places = {wheel.sha256: place_of(project, lock, wheel) for lock, package in wanted for wheel in _wheels(package)}
    if fetch:
        missing = [(lock, package) for lock, package in wanted if not any(places[w.sha256] for w in _wheels(package))]
        _fetch(project, missing)
        places |= {wheel.sha256: place_of(project, lock, wheel) for lock, item in missing for wheel in _wheels(item)}
    known: dict[str, Traits] = {}
    unknown = set()
    for _, package in wanted:
        at_hand = next(((wheel, place) for wheel in _wheels(package) if (place := places[wheel.sha256])), None)
        found = read_file(at_hand[1]) if at_hand else None
        if at_hand is None or found is None:
            unknown.add((package.name, package.version))
            continue
        known |= {wheel.sha256: found for wheel in _wheels(package)}
    return known, len(unknown)


def _changed(pairs: Iterable[tuple[Lock | None, Lock | None]]) -> Iterator[tuple[Lock, LockedPackage]]:
    for pair in pairs:
        sides = [{package.name: package for package in lock.packages} if lock else {} for lock in pair]
        for lock, own, other in zip(pair, sides, reversed(sides), strict=True):
            for name, package in own.items():
                if lock is not None and package != other.get(name):
                    yield lock, package


def _wheels(package: LockedPackage) -> list[LockedWheel]:
    """The smallest first: what one wheel of a version says of licence and imports, all say."""
    return sorted({wheel for _, wheel in package.platforms}, key=lambda wheel: wheel.size)


def read_traits(project: Project, lock: Lock, wheel: LockedWheel) -> Traits | None:
    """Of one wheel that ``lock`` pins; None where it is not on this machine."""
    place = place_of(project, lock, wheel)
    return read_file(place) if place is not None else None


def place_of(project: Project, lock: Lock, wheel: LockedWheel) -> Path | None:
    """The file of a wheel that ``lock`` pins, in the store or the project."""
    from envdsl.store.layout import Layout

    layout = Layout(project.config.store)
    stored = layout.absolute(layout.wheel_path(wheel.sha256, wheel.filename))
    candidates = [stored]
    if wheel.path is not None:
        candidates.append(project.config.lock_path(lock.layer).parent / wheel.path)
    return next((path for path in candidates if path.is_file()), None)


def _fetch(project: Project, wanted: Iterable[tuple[Lock, LockedPackage]]) -> None:
    from envdsl.app.building import fetcher
    from envdsl.graph.derivation import WheelFile

    smallest = {_wheels(package)[0] for _, package in wanted}
    if smallest:
        with project.store.lease():
            fetcher(project, project.select(()), False)(
                [WheelFile(wheel.filename, wheel.sha256, wheel.size) for wheel in sorted(smallest, key=str)]
            )


def read_file(path: Path) -> Traits | None:
    """Of a wheel file; None for what is no wheel."""
    from envdsl.app.control.importnames import import_names
    from envdsl.lock.difference import Traits
    from envdsl.lock.metadata import read_wheel

    try:
        with path.open("rb") as stream:
            metadata, members = read_wheel(stream)
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    return Traits(metadata.licence, import_names(_installed(members), name=metadata.name))


def _installed(members: Iterable[str]) -> Iterator[str]:
    """Where members lie below site-packages once installed: ``x.data/purelib/a.py`` is ``a.py``."""
    for member in members:
        top, _, rest = member.partition("/")
        if top.endswith(".data"):
            scheme, _, rest = rest.partition("/")
            if scheme in ("purelib", "platlib"):
                yield rest
        else:
            yield member

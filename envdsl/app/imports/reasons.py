"""Why locking found no answer: for each package, what the indexes have of the version that was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envdsl.app.imports.found import VENDORED, Pin, refusal
from envdsl.errors import Diagnostic
from envdsl.lock import tags
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.pages import Pages
from envdsl.model.names import PythonVersion

if TYPE_CHECKING:
    from packaging.version import Version


@dataclass(frozen=True, slots=True)
class _Offers:
    """The files of one version, and all versions that there are."""

    wheels: tuple[str, ...]
    sdists: tuple[str, ...]
    versions: tuple[str, ...]


def reasons(
    label: str, pins: Iterable[Pin], python: PythonVersion, configuration: IndexConfiguration, *, offline: bool
) -> list[Diagnostic]:
    """A diagnostic for each of ``pins`` that cannot be had: ``import-not-found``, ``import-sdist-only``,
    ``import-wrong-platform``. Raises EnvdslError where an index cannot be asked."""
    pages = Pages(configuration)
    found = []
    for pin in pins:
        offers = _offers(pin, pages, configuration, offline)
        if not offers.wheels and not offers.sdists:
            known = f"; it has {', '.join(offers.versions[-5:])}" if offers.versions else ""
            hint = "name the index that has it in envdsl.toml"
            found.append(refusal(label, pin.name, "not-found", f"{pin.version} is on no index{known}", hint))
        elif not offers.wheels:
            found.append(
                refusal(label, pin.name, "sdist-only", f"{pin.version} has a source distribution only", VENDORED)
            )
        elif missing := [item for item in sorted(pin.platforms) if tags.best(offers.wheels, python, item) is None]:
            reason = f"{pin.version} has no wheel for {', '.join(map(str, missing))} with Python {python}"
            hint = f"there are: {', '.join(offers.wheels[:5])}"
            found.append(refusal(label, pin.name, "wrong-platform", reason, hint))
    return found


def _offers(pin: Pin, pages: Pages, configuration: IndexConfiguration, offline: bool) -> _Offers:
    from packaging.version import Version

    wheels: list[str] = []
    sdists: list[str] = []
    versions: set[Version] = set()
    for source in configuration.sources_for(pin.name):
        if offline and source.directory is None:
            continue
        for filename, version in _files(pages.filenames(source, pin.name), pin.name):
            versions.add(version)
            if version == Version(pin.version):
                (wheels if filename.endswith(".whl") else sdists).append(filename)
    return _Offers(tuple(wheels), tuple(sdists), tuple(str(version) for version in sorted(versions)))


def _files(filenames: Iterable[str], project: str) -> Iterator[tuple[str, Version]]:
    from packaging.utils import (
        InvalidSdistFilename,
        InvalidWheelFilename,
        parse_sdist_filename,
        parse_wheel_filename,
    )

    for filename in filenames:
        try:
            if filename.endswith(".whl"):
                name, version, _, _ = parse_wheel_filename(filename)
            else:
                name, version = parse_sdist_filename(filename)
        except (InvalidWheelFilename, InvalidSdistFilename):
            continue
        if name == project:
            yield filename, version

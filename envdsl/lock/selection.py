"""From a resolution to what is locked: the best wheel for each platform, and the increment over a base."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from envdsl.errors import EnvdslError
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock import tags
from envdsl.lock.local import LocalWheels
from envdsl.lock.lock import Lock, LockedPackage, LockedWheel
from envdsl.lock.measure import Measurer
from envdsl.lock.question import Answer, Distribution
from envdsl.lock.resolver import Resolution
from envdsl.model.names import Platform
from envdsl.redaction import public_url

Place: TypeAlias = Path | str


class Selection:
    """Chooses wheels for ``spec``; ``locks`` is the directory of its lock file.

    ``kept`` are the wheels of the old lock by name, version and platform, which stay where they are still offered.
    :attr:`places` says afterwards where each chosen wheel was seen, by sha256.
    """

    def __init__(
        self,
        spec: LayerSpec,
        base: Lock | None,
        local: LocalWheels,
        locks: Path,
        urls: bool,
        measurer: Measurer,
        kept: Mapping[tuple[str, str, Platform], LockedWheel],
    ) -> None:
        self._spec = spec
        self._local = local
        self._locks = locks
        self._urls = urls
        self._measurer = measurer
        self._kept = kept
        self._base = {package.name: package for package in base.packages} if base else {}
        self.places: dict[str, tuple[Place, ...]] = {}

    def packages(self, resolution: Resolution) -> tuple[LockedPackage, ...]:
        """The packages that the layer brings, by name.

        Raises EnvdslError ``lock-no-wheel-for-platform``, ``lock-hash-mismatch``, ``lock-index-unreachable``.
        """
        known = {*resolution.pins, *self._base}
        packages = []
        for name, version in sorted(resolution.pins.items()):
            platforms = self._needed(name, resolution.answers)
            if platforms:
                wheels = tuple(
                    (platform, self._wheel(name, version, platform, resolution.answers)) for platform in platforms
                )
                dependencies = tuple(sorted(resolution.dependencies.get(name, set()) & known))
                packages.append(LockedPackage(name, version, wheels, dependencies))
        return tuple(packages)

    def _needed(self, name: str, answers: Mapping[Platform, Answer]) -> list[Platform]:
        """The platforms where the layer has to bring ``name``. Markers tell machines apart, not C libraries, so a
        package that one platform of a machine needs is there on all of them."""
        platforms = [
            platform
            for platform, answer in answers.items()
            if name in answer.packages and not (name in self._base and self._base[name].wheel(platform))
        ]
        machines = {platform.machine for platform in platforms}
        return sorted(platform for platform in answers if platform.machine in machines)

    def _wheel(self, name: str, version: str, platform: Platform, answers: Mapping[Platform, Answer]) -> LockedWheel:
        if name in self._local:
            wheel = self._local.best(name, self._spec.python, platform)
            if wheel is None:
                raise self._no_wheel(name, platform, [w.path.name for w in self._local.of_name(name)])
            self.places[wheel.sha256] = (wheel.path,)
            size = wheel.path.stat().st_size
            return LockedWheel(wheel.path.name, wheel.sha256, size, path=relative(wheel.path, self._locks))
        offers: dict[str, Distribution] = {}
        for answer in (answers[platform], *answers.values()):
            if name in answer.packages:
                for offer in answer.packages[name].wheels:
                    offers.setdefault(offer.filename, offer)
        kept = self._kept.get((name, version, platform))
        if kept is not None and kept.filename in offers:
            filename: str | None = kept.filename
        else:
            filename = tags.best(offers, self._spec.python, platform)
        if filename is None:
            raise self._no_wheel(name, platform, offers)
        offer = self._measurer.complete(offers[filename])
        assert offer.sha256 is not None
        assert offer.size is not None
        if kept is not None and kept.filename == filename and kept.sha256 != offer.sha256:
            raise self._other_bytes(name, kept, offer)
        place: Place = public_url(offer.url or "") if offer.path is None else offer.path.resolve()
        self.places[offer.sha256] = (place,)
        url = kept.url if kept is not None and kept.filename == filename else None
        if self._urls and url is None:
            url = place if isinstance(place, str) else place.as_uri()
        return LockedWheel(offer.filename, offer.sha256, offer.size, url=url if self._urls else None)

    def _other_bytes(self, name: str, kept: LockedWheel, offer: Distribution) -> EnvdslError:
        return EnvdslError.of(
            "lock-hash-mismatch",
            f"{offer.path or public_url(offer.url or '')} has the sha256 {offer.sha256}, and the lock of "
            f"`{self._spec.name}` pins {kept.sha256} for {kept.filename}",
            span=self._spec.span,
            hint="a released file does not change: ask who changed it; "
            f"`envdsl lock {self._spec.name} --upgrade-package {name}` accepts it",
        )

    def _no_wheel(self, name: str, platform: Platform, offers: Iterable[str]) -> EnvdslError:
        return EnvdslError.of(
            "lock-no-wheel-for-platform",
            f"{name} has no wheel for {platform} with Python {self._spec.python}",
            span=self._spec.span,
            hint=f"there are: {', '.join(sorted(offers))}",
            details={"layer": self._spec.name, "platform": str(platform), "package": name},
        )


def relative(path: Path, directory: Path) -> str:
    """``path`` as a lock in ``directory`` names it: never to be taken for a file of the wheelhouse."""
    relative = Path(os.path.relpath(path, directory.resolve())).as_posix()
    return relative if relative.startswith("../") else f"./{relative}"

"""Locking one layer, from its declaration and its present lock to the text of its new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock import tags
from envdsl.lock.cutoff import cutoff
from envdsl.lock.freshness import digest_of, resolution_inputs, staleness
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.local import LocalWheels
from envdsl.lock.lock import BaseReference, Lock, LockedPackage, LockedWheel
from envdsl.lock.measure import Measurer
from envdsl.lock.pylock import finish, read_lock
from envdsl.lock.question import Answer, Distribution
from envdsl.lock.recovery import recover_pins
from envdsl.lock.resolver import Resolution, Resolver
from envdsl.lock.uv import Uv
from envdsl.model.names import LayerKind, Platform
from envdsl.redaction import public_url
from envdsl.reporter import Reporter

Place: TypeAlias = Path | str
_REPAIRABLE = frozenset({"lock-merge-conflict", "lock-damaged", "lock-inconsistent"})


@dataclass(frozen=True, slots=True)
class LockOptions:
    """How to lock. ``now`` is what ages in ``exclude-newer`` count back from."""

    upgrade: bool = False
    upgrade_packages: frozenset[str] = frozenset()
    offline: bool = False
    urls: bool = False
    now: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Locked:
    """The outcome: the bytes for the lock file and what they say.

    ``resolved`` tells whether the indexes were asked at all; ``places`` is where wheels were seen, by sha256, for
    whoever fetches them next.
    """

    text: str
    lock: Lock
    resolved: bool
    places: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)


def lock_layer(
    spec: LayerSpec,
    path: Path,
    *,
    base: Lock | None,
    root: Path,
    configuration: IndexConfiguration,
    interpreter: Path,
    options: LockOptions,
    reporter: Reporter,
    wheelhouse: Path | None = None,
) -> Locked:
    """Lock ``spec``; ``path`` is its lock file, which is read if it is there and never written.

    ``base`` is the lock of an x layer's base, current and standing in the same directory; ``root`` the project's;
    ``interpreter`` any Python, absolute, for uv; ``wheelhouse`` (``<sha256>/<file name>``) serves where ``options``
    are offline. A current lock comes back as it is, without a question to anybody. A damaged one is resolved anew
    from the pins that can be recovered.

    Raises EnvdslError (``lock-…``); nothing is written then, so the old lock stays.
    """
    _check_base(spec, base)
    existing, pins = _existing(path, reporter)
    moved = pins if options.upgrade else options.upgrade_packages & pins.keys()
    if (
        existing is not None
        and not moved
        and _names_urls(existing) in (None, options.urls)
        and not staleness(spec, existing, base, root)
    ):
        return Locked(path.read_text(encoding="utf-8"), existing, resolved=False)

    local = LocalWheels.of(spec, root, base, path.parent)
    uv = Uv(configuration.restricted(spec.index, spec.span), interpreter, offline=options.offline)
    with _flat(wheelhouse if options.offline else None) as find_links:
        resolver = Resolver(
            spec,
            uv,
            base=base,
            local=local,
            reporter=reporter,
            exclude_newer=cutoff(spec.exclude_newer, options.now, spec.span) if spec.exclude_newer else None,
            find_links=find_links,
            upgrade=options.upgrade or tuple(sorted(options.upgrade_packages)),
        )
        resolution = resolver.resolve({name: version for name, version in pins.items() if name not in moved})
        kept = {
            (package.name, package.version, platform): wheel
            for package in (existing.packages if existing else ())
            for platform, wheel in package.platforms
            if package.name not in moved
        }
        measurer = Measurer(uv.configuration, {wheel.sha256: wheel.size for wheel in kept.values()})
        builder = _Builder(spec, base, local, path.parent, options.urls, measurer, kept)
        packages = builder.packages(resolution)
    for name in local.names:
        if name not in resolution.pins and local.of_name(name)[0].span is not None:
            _warn_unused(name, local, reporter)
    inputs = resolution_inputs(spec, root)
    lock = Lock(
        layer=spec.name,
        kind=spec.kind,
        python=spec.python,
        platforms=tuple(sorted(spec.platforms)),
        inputs=digest_of(inputs),
        base=BaseReference(base.layer, base.digest) if base is not None else None,
        packages=packages,
        digest="",
        recorded=inputs,
    )
    text, lock = finish(lock, path)
    return Locked(text, lock, resolved=True, places=builder.places)


class _Builder:
    """Makes locked packages out of a resolution: the best wheel for each platform, and the increment over a base."""

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
            return LockedWheel(wheel.path.name, wheel.sha256, size, path=_relative(wheel.path, self._locks))
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

    def _no_wheel(self, name: str, platform: Platform, offers: object) -> EnvdslError:
        there = ", ".join(sorted(offers)) if isinstance(offers, list | dict) else ""
        return EnvdslError.of(
            "lock-no-wheel-for-platform",
            f"{name} has no wheel for {platform} with Python {self._spec.python}",
            span=self._spec.span,
            hint=f"there are: {there}",
            details={"layer": self._spec.name, "platform": str(platform), "package": name},
        )


def _check_base(spec: LayerSpec, base: Lock | None) -> None:
    if spec.kind is not LayerKind.X:
        return
    if base is None or base.python != spec.python or set(base.platforms) != set(spec.platforms):
        state = "has no lock" if base is None else "has a lock for another Python or other platforms"
        raise EnvdslError.of(
            "lock-base-not-locked",
            f"the base `{spec.base}` of `{spec.name}` {state}",
            span=spec.span,
            hint=f"`envdsl lock {spec.base} {spec.name}` locks both, the base first",
        )


def _existing(path: Path, reporter: Reporter) -> tuple[Lock | None, dict[str, str]]:
    """The present lock and its pins; of a damaged file, the pins that can be recovered."""
    if not path.exists():
        return None, {}
    try:
        lock = read_lock(path)
    except EnvdslError as error:
        if error.code not in _REPAIRABLE:
            raise
        pins = recover_pins(path.read_text(encoding="utf-8", errors="replace"))
        reporter.note(f"{error} Its {len(pins)} pins are kept where they still fit.")
        return None, pins
    return lock, {package.name: package.version for package in lock.packages}


def _names_urls(lock: Lock) -> bool | None:
    """Whether a lock names URLs; None where it could not, having none but local wheels."""
    wheels = [wheel for package in lock.packages for _, wheel in package.platforms if wheel.path is None]
    return any(wheel.url for wheel in wheels) if wheels else None


def _relative(path: Path, directory: Path) -> str:
    """``path`` as a lock in ``directory`` names it: never to be taken for a file of the wheelhouse."""
    import os

    relative = Path(os.path.relpath(path, directory.resolve())).as_posix()
    return relative if relative.startswith("../") else f"./{relative}"


@contextmanager
def _flat(wheelhouse: Path | None) -> Iterator[tuple[Path, ...]]:
    """The wheels of a wheelhouse (``<sha256>/<file name>``) as the flat directory that uv can search."""
    if wheelhouse is None or not wheelhouse.is_dir():
        yield ()
        return
    with TemporaryDirectory(prefix="envdsl-wheelhouse-") as name:
        directory = Path(name)
        for wheel in sorted(wheelhouse.glob("*/*.whl")):
            link = directory / wheel.name
            if not link.is_symlink():
                link.symlink_to(wheel.absolute())
        yield (directory,)


def _warn_unused(name: str, local: LocalWheels, reporter: Reporter) -> None:
    wheel = local.of_name(name)[0]
    reporter.warn(
        Diagnostic(
            "lock-wheel-unused",
            f"{wheel.label} takes no part: nothing in the layer requires {name}",
            span=wheel.span,
            hint=f'add "{name}" to `packages`, or remove the wheel',
            severity="warning",
        )
    )

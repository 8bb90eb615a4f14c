"""Locking one layer, from its declaration and its present lock to the text of its new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock.cutoff import cutoff
from envdsl.lock.freshness import digest_of, resolution_inputs, staleness
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.local import LocalWheels
from envdsl.lock.lock import BaseReference, Lock
from envdsl.lock.measure import Measurer
from envdsl.lock.pylock import finish, read_lock
from envdsl.lock.recovery import recover_pins
from envdsl.lock.resolver import Resolver
from envdsl.lock.routing import flat_wheels, routed
from envdsl.lock.selection import Place, Selection
from envdsl.lock.uv import Uv
from envdsl.model.names import LayerKind
from envdsl.reporter import Reporter

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
    preferred: Mapping[str, str] | None = None,
) -> Locked:
    """Lock ``spec``; ``path`` is its lock file, which is read if it is there and never written.

    ``base`` is the lock of an x layer's base, current and standing in the same directory; ``root`` the project's;
    ``interpreter`` any Python, absolute, for uv; ``wheelhouse`` (``<sha256>/<file name>``) serves where ``options``
    are offline; ``preferred`` are versions to take where they fit and no lock says another. A current lock comes back
    as it is, without a question to anybody. A damaged one is resolved anew from the pins that can be recovered.

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
    sources = configuration.restricted(spec.index, spec.span)
    with (
        routed(sources, offline=options.offline) as route,
        _flat(*_offline_wheels(wheelhouse, sources if route else None) if options.offline else ()) as find_links,
    ):
        uv = Uv(sources, interpreter, offline=options.offline, route=route)
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
        kept_pins = {name: version for name, version in pins.items() if name not in moved}
        resolution = resolver.resolve({**(preferred or {}), **kept_pins})
        kept = {
            (package.name, package.version, platform): wheel
            for package in (existing.packages if existing else ())
            for platform, wheel in package.platforms
            if package.name not in moved
        }
        measurer = Measurer(sources, {wheel.sha256: wheel.size for wheel in kept.values()})
        selection = Selection(spec, base, local, path.parent, options.urls, measurer, kept)
        packages = selection.packages(resolution)
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
    return Locked(text, lock, resolved=True, places=selection.places)


def _check_base(spec: LayerSpec, base: Lock | None) -> None:
    if spec.kind is not LayerKind.X:
        return
    if base is None or base.python != spec.python or not set(spec.platforms) <= set(base.platforms):
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
        reporter.note(f"{error} Its pins ({len(pins)}) are kept where they still fit.")
        return None, pins
    return lock, {package.name: package.version for package in lock.packages}


def _names_urls(lock: Lock) -> bool | None:
    """Whether a lock names URLs; None where it could not, having none but local wheels."""
    wheels = [wheel for package in lock.packages for _, wheel in package.platforms if wheel.path is None]
    return any(wheel.url for wheel in wheels) if wheels else None


def _offline_wheels(wheelhouse: Path | None, routed_sources: IndexConfiguration | None) -> Iterator[Path]:
    """What uv may have besides its cache: a wheelhouse (``<sha256>/<file name>``), flat sources behind a route."""
    if wheelhouse is not None:
        yield from sorted(wheelhouse.glob("*/*.whl"))
    if routed_sources is not None:
        yield from flat_wheels(routed_sources)


@contextmanager
def _flat(*wheels: Path) -> Iterator[tuple[Path, ...]]:
    """``wheels`` as the flat directory that uv can search."""
    if not wheels:
        yield ()
        return
    with TemporaryDirectory(prefix="envdsl-wheelhouse-") as name:
        directory = Path(name)
        for wheel in wheels:
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

"""The locks that a session's layers were built from: of the store, which keeps them, not of the project, whose layers
and locks may have moved on since the session was bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.lock import Lock, LockedWheel
from envdsl.model.names import LAYER_NAME

if TYPE_CHECKING:
    from envdsl.session.manifest import BoundLayer
    from envdsl.store.layout import Layout


def name_of(layer: BoundLayer) -> str:
    """What locks and specifications call a bound layer."""
    return layer.name if LAYER_NAME.fullmatch(layer.name) else str(layer.id)


def lock_of(layout: Layout, layer: BoundLayer) -> Lock:
    """The lock that a bound layer was built from, its wheels that no index has at their places in the store.

    Raises EnvdslError ``app-lock-not-kept`` where the store does not have it; ``lock-…`` for a damaged one.
    """
    from envdsl.lock.pylock import parse_lock

    path = layout.locks / f"{layer.id}.toml"
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise EnvdslError.of(
            "app-lock-not-kept",
            f"the store has no lock of the layer {layer.name} ({layer.id})",
            hint="`envdsl build` in the project that declares it puts it there",
            exit_status=ExitStatus.ENVIRONMENT,
        ) from error
    lock = parse_lock(data, layout.locks / f"pylock.{name_of(layer)}.toml")
    packages = tuple(
        replace(package, platforms=tuple((platform, _placed(layout, wheel)) for platform, wheel in package.platforms))
        for package in lock.packages
    )
    return replace(lock, packages=packages)


def kept_wheel(layout: Layout, wheel: LockedWheel) -> Path | None:
    """The file of a wheel that no index has: as it was uploaded, or as it was fetched for a build."""
    upload = layout.root / "uploads" / wheel.sha256 / wheel.filename
    fetched = layout.absolute(layout.wheel_path(wheel.sha256, wheel.filename))
    return next((path for path in (upload, fetched) if path.is_file()), None)


def _placed(layout: Layout, wheel: LockedWheel) -> LockedWheel:
    """A local wheel with its path from ``locks/``. One that is not kept is a pin like others: it hinders only who
    requires it."""
    if wheel.path is None:
        return wheel
    path = kept_wheel(layout, wheel)
    return replace(wheel, path=f"../{path.relative_to(layout.root).as_posix()}" if path is not None else None)

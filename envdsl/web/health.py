"""What of the service works, as checks that a person can act on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from envdsl import __version__
from envdsl.errors import EnvdslError

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

_ALIVE = 60  # seconds within which a worker has to have been seen


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``detail`` is a sentence, ``hint`` what to do where it is not sound."""

    name: str
    sound: bool
    detail: str
    hint: str | None = None


def health(plane: ControlPlane) -> dict[str, Any]:
    """Every check, and whether all are sound."""
    checks = list(_checks(plane))
    return {
        "sound": all(check.sound for check in checks),
        "version": __version__,
        "checks": [{key: value for key, value in asdict(check).items() if value is not None} for check in checks],
    }


def _checks(plane: ControlPlane) -> Iterator[Check]:
    looks = {
        "database": _database,
        "store": _store,
        "sandbox": _sandbox,
        "workers": _workers,
        "catalog": _catalog,
        "webhook": _webhook,
    }
    for name, look in looks.items():
        yield _checked(name, plane, look)


def _checked(name: str, plane: ControlPlane, look: Callable[[ControlPlane], Check]) -> Check:
    try:
        return look(plane)
    except EnvdslError as error:
        return Check(name, False, str(error), error.diagnostics[0].hint)
    except OSError as error:
        return Check(name, False, error.strerror or type(error).__name__)


def _database(plane: ControlPlane) -> Check:
    with plane.state.reading() as tx:
        number = tx.audit.head().number
    return Check("database", True, f"{plane.state.url.get_backend_name()} answers; {number} audit events")


def _store(plane: ControlPlane) -> Check:
    root = plane.project.store.layout.root
    free = os.statvfs(root)
    if not os.access(root, os.W_OK):
        return Check("store", False, "the store is not writable", "run the service as the user who owns it")
    left = free.f_bavail * free.f_frsize
    if left < 1 << 30:
        return Check("store", False, f"{left >> 20} MiB are free", "`envdsl gc` deletes what nothing needs")
    return Check("store", True, f"writable, {left >> 30} GiB free")


def _sandbox(plane: ControlPlane) -> Check:
    from envdsl.sandbox import bwrap
    from envdsl.session.bindings import shared_directory

    found = bwrap.find(shared_directory(plane.project.store.layout))
    return Check("sandbox", True, f"bubblewrap works ({found})")


def _workers(plane: ControlPlane) -> Check:
    with plane.state.reading() as tx:
        alive = tx.workers.alive(plane.store_id, _ALIVE)
    if not alive:
        return Check("workers", False, "no worker is alive", "start `envdsl worker`, or `envdsl serve --workers 1`")
    return Check("workers", True, f"{len(alive)} alive")


def _catalog(plane: ControlPlane) -> Check:
    try:
        found = plane.catalog
    except EnvdslError as error:
        first, more = error.diagnostics[0], len(error.diagnostics) - 1
        place = f"{first.span}: " if first.span is not None else ""
        detail = f"{place}{first.message}" + (f" (and {more} more)" if more else "")
        return Check("catalog", False, detail, "no request goes on until it is mended; `envdsl catalog check` says all")
    return Check("catalog", True, f"{len(found.listed)} entries allow, {len(found.rules.deny)} deny")


def _webhook(plane: ControlPlane) -> Check:
    from envdsl.app.control import webhooks

    setting = plane.project.config.service.webhook
    if setting is None:
        return Check("webhook", True, "none is set")
    webhooks.read_secret(setting.secret_file)
    with plane.state.reading() as tx:
        left = tx.webhooks.undelivered(plane.store_id)
    detail = f"{left.count} to deliver"
    if left.oldest is not None:
        detail += f", the oldest for {max(0, int((plane.now() - left.oldest).total_seconds()))} s"
    if left.failing:
        return Check("webhook", False, f"{detail}; {left.failing} failed and are tried again", "the log says why")
    return Check("webhook", True, detail)

"""What a person names to look at or to take along: a layer with the base that it stands on, or a session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.lock.lock import Lock
    from envdsl.model.names import Platform


@dataclass(frozen=True, slots=True)
class Subject:
    """``locks``: a base before what stands on it. ``platform`` is the one whose wheels are meant, which all locks are
    for. ``kind`` is that of the layer, or ``session``."""

    name: str
    kind: str
    locks: tuple[Lock, ...]
    platform: Platform

    def merged(self) -> Lock:
        """All packages in one lock, which stands on no base."""
        packages = {package.name: package for lock in self.locks for package in lock.packages}
        platforms = tuple(sorted(set.intersection(*(set(lock.platforms) for lock in self.locks))))
        return replace(
            self.locks[0],
            layer=self.name,
            base=None,
            platforms=platforms,
            packages=tuple(packages[name] for name in sorted(packages)),
        )


def subject_of(project: Project, wanted: str, platform: Platform | None = None) -> Subject:
    """The layer (or family) or session called ``wanted``; a layer goes before a session of the same name.

    ``platform``: by default that of this machine. Raises EnvdslError ``app-unknown-layer``, ``app-lock-missing``,
    ``app-platform``, ``app-lock-not-kept``.
    """
    from envdsl.app.packages import require_lock

    if wanted not in project.spec.layers and (session := session_of(project, wanted, platform)) is not None:
        return session
    layer = project.layer(wanted)
    locks = tuple(require_lock(project, item) for item in project.select([layer.name]))
    return _subject(layer.name, layer.kind.value, locks, platform or _of_machine(project, locks[-1]))


def session_of(project: Project, name: str, platform: Platform | None = None) -> Subject | None:
    """The session called ``name``, or None. Raises EnvdslError ``app-platform``, ``app-lock-not-kept``."""
    from envdsl.session import bindings
    from envdsl.store.layout import Layout

    layout = Layout(project.config.store)
    if name not in bindings.names(layout):
        return None
    from envdsl.app.control.bound_locks import lock_of

    manifest = bindings.show(layout, name).manifest
    locks = tuple(lock_of(layout, layer) for layer in manifest.layers)
    return _subject(name, "session", locks, platform or manifest.foundation.platform)


def _subject(name: str, kind: str, locks: tuple[Lock, ...], platform: Platform) -> Subject:
    for lock in locks:
        if platform not in lock.platforms:
            raise _other_platform(lock, platform)
    return Subject(name, kind, locks, platform)


def _of_machine(project: Project, lock: Lock) -> Platform:
    from envdsl.graph.compile import choose_platform

    chosen = choose_platform(lock.platforms, project.platform)
    if chosen is None:
        raise _other_platform(lock, project.platform)
    return chosen


def _other_platform(lock: Lock, wanted: Platform) -> EnvdslError:
    return EnvdslError.of(
        "app-platform",
        f"the lock of {lock.layer} is for {', '.join(map(str, lock.platforms))}, not for {wanted}",
        hint="say which is meant: --platform",
        exit_status=ExitStatus.USAGE,
    )

"""Resolving what a request needs: as an extension of what the session stands on, else in place of it.

The extension is resolved under the pins of the session's foundation and of the x layers that are bound already. A
first attempt keeps to what the catalog allows by itself (its specifiers, its minimum age), so that a request gets
the newest version that needs nobody's leave; only where there is none is it resolved without.

Where there is no extension, whether the need *contradicts* what is there is found out by asking again without the
pins, not by reading explanations: first without those of the x layers, then as an iso layer.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app.control.bound_locks import kept_wheel, lock_of, name_of
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.evaluate.spec import LayerSpec, ProjectPath, Requirement
from envdsl.lock.freshness import digest_of, resolution_inputs
from envdsl.lock.lock import Lock
from envdsl.lock.locking import LockOptions, lock_layer
from envdsl.lock.pylock import finish
from envdsl.model.names import LayerKind

if TYPE_CHECKING:
    from envdsl.app.control.need import Need
    from envdsl.lock.index import IndexConfiguration
    from envdsl.policy.catalog import Catalog
    from envdsl.reporter import Reporter
    from envdsl.session.manifest import Manifest
    from envdsl.store.layout import Layout

NAME = "request"  # what a layer is called as long as nobody has named it; its lock's text does not hold it


@dataclass(frozen=True, slots=True)
class Resolved:
    """A lock for what was asked; ``text`` is what would be built."""

    text: str
    lock: Lock


class Resolver:
    """Resolves the need of one session. Everything about the session is read from ``layout``'s store."""

    def __init__(
        self,
        session: Manifest,
        need: Need,
        *,
        layout: Layout,
        configuration: IndexConfiguration,
        reporter: Reporter,
        now: datetime,
    ) -> None:
        self._session = session
        self._need = need
        self._layout = layout
        self._configuration = configuration
        self._reporter = reporter
        self._now = now

    @cached_property
    def present(self) -> Mapping[str, str]:
        """What the session has: versions by name."""
        return {package.name: package.version for layer in self._session.layers for package in layer.packages}

    @cached_property
    def foundation(self) -> Lock:
        return lock_of(self._layout, self._session.foundation)

    @cached_property
    def bound(self) -> tuple[Lock, ...]:
        """The locks of the x layers, but of those that a dry run only foresees."""
        kept = [layer for layer in self._session.layers[1:] if (self._layout.locks / f"{layer.id}.toml").is_file()]
        return tuple(lock_of(self._layout, layer) for layer in kept)

    @property
    def pins(self) -> dict[str, str]:
        """The distributions that only x layers have."""
        return {
            package.name: package.version
            for layer in self._session.layers[1:]
            for package in layer.packages
            if package.name not in self._of_foundation
        }

    def extension(self, catalog: Catalog, *, pins: Mapping[str, str]) -> Resolved:
        """The x layer over the foundation, with ``pins`` held. Raises EnvdslError ``lock-…``."""
        spec = self._spec(LayerKind.X, self._need.requirements, self._local(self.bound))
        constraints = [f"{name}=={version}" for name, version in sorted(pins.items())]
        return self._preferring(catalog, spec, constraints, self.foundation)

    def isolated(self, catalog: Catalog, requirements: Sequence[str]) -> Resolved:
        """The iso layer with ``requirements``, under the settings of the foundation. Raises EnvdslError ``lock-…``."""
        inputs = self.foundation.recorded
        spec = replace(
            self._spec(LayerKind.ISO, requirements, self._local([self.foundation, *self.bound])),
            constraints=self._recorded("constraints"),
            overrides=self._recorded("overrides"),
            excludes=tuple(_strings(inputs.get("excludes"))),
            index=tuple(_strings(inputs.get("index"))),
            prereleases=bool(inputs.get("prereleases", False)),
        )
        return self._preferring(catalog, spec, [], None)

    def requirements_in_place(self, *, without: Collection[str] = ()) -> tuple[str, ...]:
        """What an iso layer that keeps everything has to require: the need, and what foundation and x layers were
        declared with, but for what the need names itself, and for the names ``without``."""
        from packaging.requirements import Requirement as Parsed
        from packaging.utils import canonicalize_name

        dropped = {*self._need.names, *without}
        declared = {
            text
            for lock in (self.foundation, *self.bound)
            for text in _strings(lock.recorded.get("packages"))
            if canonicalize_name(Parsed(text).name) not in dropped
        }
        return tuple(sorted(declared | set(self._need.requirements)))

    @cached_property
    def _of_foundation(self) -> frozenset[str]:
        return frozenset(package.name for package in self._session.foundation.packages)

    def _recorded(self, key: str) -> tuple[Requirement, ...]:
        """Requirements that the foundation was declared with, but for what the need names itself."""
        from packaging.requirements import Requirement as Parsed
        from packaging.utils import canonicalize_name

        texts = _strings(self.foundation.recorded.get(key))
        return tuple(
            Requirement(text) for text in texts if canonicalize_name(Parsed(text).name) not in self._need.names
        )

    def _spec(self, kind: LayerKind, requirements: Sequence[str], local: Sequence[Path]) -> LayerSpec:
        """A layer with ``requirements`` for the one platform of the session: other machines resolve for themselves."""
        foundation = self._session.foundation
        return LayerSpec(
            name=NAME,
            kind=kind,
            base=name_of(foundation) if kind is LayerKind.X else None,
            python=foundation.python,
            platforms=(foundation.platform,),
            packages=tuple(map(Requirement, requirements)),
            wheels=tuple(ProjectPath(path.relative_to(self._layout.root).as_posix()) for path in local),
        )

    def _local(self, locks: Iterable[Lock]) -> list[Path]:
        """The wheels that no index has: the uploaded ones, and those of the session's layers beside them."""
        root = self._layout.root / "uploads"
        found = {root / item.sha256 / item.filename for items in self._need.wheels.values() for item in items}
        found |= {
            path
            for lock in locks
            for package in lock.packages
            for _, wheel in package.platforms
            if wheel.path is not None and package.name not in self._need.wheels
            if (path := kept_wheel(self._layout, wheel)) is not None
        }
        return sorted(found)

    def _preferring(self, catalog: Catalog, spec: LayerSpec, constraints: Sequence[str], base: Lock | None) -> Resolved:
        """First within what the catalog allows by itself, then without."""
        allowed = self._allowed(catalog)
        # Flat directories have no dates, and a file without one is newer than any cutoff to uv.
        dated = any(not source.flat for source in self._configuration.sources)
        minimum = catalog.rules.minimum_age if dated else None
        if allowed or minimum:
            hours = f"{int(minimum.total_seconds() // 3600)} hours" if minimum else None
            try:
                return self._lock(spec, [*constraints, *allowed], base, hours)
            except EnvdslError as error:
                if error.exit_status is ExitStatus.ENVIRONMENT:
                    raise
        return self._lock(spec, constraints, base, None)

    def _allowed(self, catalog: Catalog) -> list[str]:
        """The catalog's specifiers as constraints, for the names that have one, and that the session lacks."""
        specifiers: dict[str, set[str]] = {}
        for entry in catalog.listed:
            specifiers.setdefault(entry.name, set()).add(entry.specifier)
        return sorted(
            f"{name}{next(iter(found))}"
            for name, found in specifiers.items()
            if len(found) == 1 and "" not in found and name not in self.present and name not in self._need.wheels
        )

    def _lock(
        self, spec: LayerSpec, constraints: Sequence[str], base: Lock | None, exclude_newer: str | None
    ) -> Resolved:
        locks = self._layout.locks
        path = locks / f"pylock.{NAME}.toml"
        locked = lock_layer(
            replace(
                spec,
                constraints=(*spec.constraints, *map(Requirement, constraints)),
                exclude_newer=exclude_newer,
            ),
            path,
            base=base,
            root=self._layout.root,
            configuration=self._configuration,
            interpreter=Path(sys.executable),
            options=LockOptions(now=self._now),
            reporter=self._reporter,
            preferred=self.present if base is None else None,
        )
        # What led to these pins beside the request (the catalog of the day, other layers of the session) is no part
        # of what was asked: two sessions that come to the same wheels have the same lock.
        used = {wheel.filename for package in locked.lock.packages for _, wheel in package.platforms if wheel.path}
        wheels = tuple(wheel for wheel in spec.wheels if Path(wheel.path).name in used)
        inputs = resolution_inputs(replace(spec, wheels=wheels), self._layout.root)
        return Resolved(*finish(replace(locked.lock, inputs=digest_of(inputs), recorded=inputs), path))


def _strings(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []

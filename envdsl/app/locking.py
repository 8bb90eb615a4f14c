"""``envdsl lock``: layers in dependency order, each lock written when its layer is resolved."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.errors import Diagnostic, EnvdslError

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.lock.heldback import HeldBack
    from envdsl.lock.index import IndexConfiguration
    from envdsl.lock.lock import Lock


@dataclass(frozen=True, slots=True)
class LockOutcome:
    """What became of one lock, or is the matter with it.

    ``status`` is ``created``, ``updated`` or ``unchanged`` after locking; ``current``, ``stale``, ``missing`` or
    ``orphaned`` (no layer of that name is declared) from a check. ``added``, ``removed`` and ``changed`` are
    packages with their versions; ``reasons`` say why a lock is stale, or was. ``held_back`` is what an upgrade did not
    take because of ``exclude-newer``.
    """

    layer: str
    path: str
    status: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    held_back: tuple[HeldBack, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "path": self.path,
            "status": self.status,
            "added": list(self.added),
            "removed": list(self.removed),
            "changed": list(self.changed),
            "reasons": list(self.reasons),
            "held-back": [
                {
                    "name": item.name,
                    "locked": item.locked,
                    "version": item.version,
                    "uploaded": item.uploaded.isoformat(),
                    "eligible": item.eligible.isoformat() if item.eligible else None,
                }
                for item in self.held_back
            ],
        }


def lock(
    project: Project,
    names: Sequence[str],
    *,
    upgrade: bool = False,
    upgrade_packages: Iterable[str] = (),
    offline: bool = False,
) -> tuple[LockOutcome, ...]:
    """Lock these layers (all without names) and the bases that they stand on.

    Raises :class:`EnvdslError` with what failed for each layer; the locks of the others are written all the same.
    ``app-no-project`` for the curated layers.
    """
    from packaging.utils import canonicalize_name

    from envdsl.app.curated import refuse_curated
    from envdsl.lock.locking import LockOptions

    refuse_curated(project)
    options = LockOptions(
        upgrade=upgrade,
        upgrade_packages=frozenset(canonicalize_name(name) for name in upgrade_packages),
        offline=offline,
        urls=project.config.urls,
    )
    configuration = index_configuration(project)
    layers = project.select_families(names)
    outcomes: list[LockOutcome] = []
    failed: dict[str, EnvdslError] = {}
    with project.reporter.task("Locking", total=len(layers)) as task:
        for layer in layers:
            task.describe(layer.name)
            if layer.base not in failed:
                try:
                    outcomes.append(_lock_one(project, layer, configuration, options))
                except EnvdslError as error:
                    failed[layer.name] = error
            task.advance()
    _check_upgraded(options.upgrade_packages, project, layers)
    if failed:
        skipped = [layer.name for layer in layers if layer.base in failed]
        errors = EnvdslError.all(failed.values())
        if skipped:
            project.reporter.note(f"not locked, because their base was not: {', '.join(skipped)}")
        raise errors
    if (upgrade or options.upgrade_packages) and not offline:
        from envdsl.app.cooldown import with_held_back

        return with_held_back(project, outcomes, configuration, now=options.now, names=options.upgrade_packages)
    return tuple(outcomes)


def _lock_one(project: Project, layer: LayerSpec, configuration: IndexConfiguration, options: Any) -> LockOutcome:
    from envdsl.lock.freshness import staleness
    from envdsl.lock.locking import lock_layer
    from envdsl.lock.pylock import write_lock
    from envdsl.lock.recovery import recover_pins

    path = project.config.lock_path(layer.name)
    before = _readable_lock(project, layer.name)
    existed = path.exists()
    recovered: dict[str, str] = {}
    unreadable = ""
    if existed and before is None:  # a merge left it in pieces: what it pinned is what locking starts from
        unreadable = _why_unreadable(path)
        recovered = recover_pins(path.read_text(encoding="utf-8", errors="replace"))
    locked = lock_layer(
        layer,
        path,
        base=project.lock(layer.base) if layer.base is not None else None,
        root=project.config.root,
        configuration=configuration,
        interpreter=Path(sys.executable),
        options=options,
        reporter=project.reporter,
        wheelhouse=project.config.store / "wheelhouse",
    )
    written = write_lock(path, locked.text)
    project.forget_lock(layer.name)
    project.seen_at.update(locked.places)
    shown = path.relative_to(project.config.root).as_posix()
    if not written:
        return LockOutcome(layer.name, shown, "unchanged")
    base = project.lock(layer.base) if layer.base is not None else None
    reasons = staleness(layer, before, base, project.config.root) if before else ()
    if existed and before is None:
        reasons = (unreadable,)
    old = {package.name: package.version for package in before.packages} if before else recovered
    new = {package.name: package.version for package in locked.lock.packages}
    return LockOutcome(
        layer.name,
        shown,
        "updated" if existed else "created",
        added=tuple(f"{name} {new[name]}" for name in sorted(new.keys() - old.keys())),
        removed=tuple(f"{name} {old[name]}" for name in sorted(old.keys() - new.keys())),
        changed=tuple(
            f"{name} {old[name]} -> {new[name]}" for name in sorted(old.keys() & new.keys()) if old[name] != new[name]
        ),
        reasons=reasons,
    )


def _why_unreadable(path: Path) -> str:
    """Why a lock could not be taken as it is, in the words of :attr:`LockOutcome.reasons`."""
    from envdsl.lock.pylock import read_lock

    try:
        read_lock(path)
    except EnvdslError as error:
        if error.code == "lock-inconsistent":
            return "its packages were merged or edited, and not resolved together yet"
    return "it was damaged"


def _readable_lock(project: Project, name: str) -> Lock | None:
    try:
        return project.lock(name)
    except EnvdslError:
        return None  # damaged; locking repairs it, or says why it can't


def _check_upgraded(wanted: frozenset[str], project: Project, layers: Sequence[LayerSpec]) -> None:
    """A name that no lock holds is most likely misspelled."""
    known = {package.name for layer in layers if (lock := project.lock(layer.name)) for package in lock.packages}
    for name in sorted(wanted - known):
        project.reporter.warn(
            Diagnostic(
                "app-upgrade-unknown", f"no lock holds a package `{name}`: nothing to upgrade", severity="warning"
            )
        )


def check(project: Project, names: Sequence[str]) -> tuple[LockOutcome, ...]:
    """Whether each lock answers its layer: from files alone. Without names, locks that no layer has are found too.

    A damaged lock is an error: :class:`EnvdslError` of the room ``lock``.
    """
    outcomes = [_state(project, layer) for layer in project.select_families(names)]
    if not names:
        declared = {project.config.lock_path(name) for name in project.spec.layers}
        for path in sorted((project.config.root / project.config.locks).glob("pylock.*.toml")):
            if path not in declared:
                layer = path.name.removeprefix("pylock.").removesuffix(".toml")
                shown = path.relative_to(project.config.root).as_posix()
                reason = "no layer of this name is declared; remove the file"
                outcomes.append(LockOutcome(layer, shown, "orphaned", reasons=(reason,)))
    return tuple(outcomes)


def _state(project: Project, layer: LayerSpec) -> LockOutcome:
    from envdsl.lock.freshness import staleness

    path = project.config.lock_path(layer.name)
    shown = path.relative_to(project.config.root).as_posix()
    lock = project.lock(layer.name)
    if lock is None:
        return LockOutcome(layer.name, shown, "missing")
    base = project.lock(layer.base) if layer.base is not None else None
    reasons = staleness(layer, lock, base, project.config.root)
    return LockOutcome(layer.name, shown, "stale" if reasons else "current", reasons=reasons)


def lock_missing(layer: LayerSpec) -> Diagnostic:
    """What to say of a layer that was never locked."""
    message = f"layer `{layer.name}` has no lock"
    return Diagnostic("app-lock-missing", message, layer.span, hint=f"run `envdsl lock {layer.name}`")


def require_current(project: Project, names: Sequence[str]) -> None:
    """Raises :class:`EnvdslError` with ``app-lock-missing`` and ``app-lock-stale`` for each lock that needs work."""
    found: list[Diagnostic] = []
    for outcome in check(project, names):
        layer = project.spec.layers.get(outcome.layer)
        span = layer.span if layer is not None else None
        if outcome.status == "missing":
            found.append(lock_missing(project.spec.layers[outcome.layer]))
        elif outcome.status == "stale":
            message = f"the lock of `{outcome.layer}` is stale: {'; '.join(outcome.reasons)}"
            hint = f"run `envdsl lock {outcome.layer}` and commit {outcome.path}"
            found.append(Diagnostic("app-lock-stale", message, span, hint=hint))
        elif outcome.status == "orphaned":
            message = f"{outcome.path} is the lock of no declared layer"
            found.append(Diagnostic("app-lock-orphaned", message, hint=f"remove {outcome.path}"))
    if found:
        raise EnvdslError(*found)


def index_configuration(project: Project) -> IndexConfiguration:
    """Where wheels come from: ``envdsl.toml``, else what uv and pip are configured with."""
    from envdsl.lock.index import IndexConfiguration
    from envdsl.lock.source import IndexSource

    declared = [
        IndexSource.of(
            item.url,
            name=item.name,
            flat=item.format == "flat",
            default=item.default,
            explicit=item.explicit,
            packages=item.packages,
        )
        for item in project.config.indexes
    ]
    return IndexConfiguration.discover(declared)

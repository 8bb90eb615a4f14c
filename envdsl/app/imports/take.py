"""From what was found to a layer file and its lock, both or neither.

The layer is locked with the found versions as constraints, so that it gets these or an error. The lock that is
written is then that of the layer as it stands in its file, without the constraints: they are the lock's pins, and
an upgrade may move them.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app import locking
from envdsl.app.files import write_file
from envdsl.app.imports.found import Found, refusal
from envdsl.app.imports.layer import layer_text
from envdsl.app.imports.reasons import reasons
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.evaluate.reader import WithFile
from envdsl.model.names import LAYER_NAME, LayerKind, Platform

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.lock.lock import Lock


@dataclass(frozen=True, slots=True)
class Imported:
    """What ``import`` prints. ``packages`` are name, version, whether a hash of the source was compared; ``added`` are
    packages that the source does not have, and the requirements of those that it has call for."""

    name: str
    layer: str
    lock: str
    packages: tuple[tuple[str, str, bool], ...]
    added: tuple[str, ...]
    left_out: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "layer": self.layer,
            "lock": self.lock,
            "packages": [
                {"name": name, "version": version, "hash-compared": compared}
                for name, version, compared in self.packages
            ],
            "added": list(self.added),
            "left-out": dict(self.left_out),
        }


def default_platforms(project: Project) -> tuple[Platform, ...]:
    """Of the project's platforms that of this machine: what was locked or installed elsewhere was so for one machine
    as a rule."""
    from envdsl.graph.compile import choose_platform

    mine = choose_platform(project.config.platforms, project.platform)
    return (mine or project.platform,)


def take(
    project: Project,
    found: Found,
    name: str,
    platforms: Sequence[Platform],
    *,
    kind: LayerKind = LayerKind.BASE,
    offline: bool = False,
) -> Imported:
    """Write the layer ``name`` with the packages of ``found``, and its lock.

    Raises EnvdslError: ``import-name``, ``import-exists``; where a package cannot be had as it was found
    ``import-not-found``, ``-sdist-only``, ``-wrong-platform``, ``-hash-mismatch``, ``-unhashed``, ``-version``; else
    what locking raises. Nothing is written then.
    """
    path = _place(project, name)
    file = project.config.root / path
    roots = _roots(found)
    lock = None
    for packages in _attempts(found, roots):
        text = layer_text(name, kind, found, platforms, packages)
        spec = _evaluate(project, path, text, name)
        lock = _lock(project, found, spec, offline=offline)
        if not _missing(found, lock):
            break
    assert lock is not None
    added = _compare(project, found, lock)
    _write(project, spec, lock, file, text)
    return Imported(
        name,
        path,
        project.config.lock_path(name).relative_to(project.config.root).as_posix(),
        tuple((pin.name, pin.version, bool(pin.hashes)) for pin in found.pins),
        added,
        found.left_out,
    )


def _place(project: Project, name: str) -> str:
    """The path of the new layer file, relative to the root."""
    if LAYER_NAME.fullmatch(name) is None:
        raise EnvdslError.of(
            "import-name",
            f"{name!r} is no name for a layer",
            hint="letters, digits, - and _, beginning with a letter or a digit",
            exit_status=ExitStatus.USAGE,
        )
    pattern = project.config.layers[0]
    path = f"{pattern.rpartition('/')[0]}/{name}.layer".lstrip("/")
    if not Path(path).match(pattern):
        path = pattern.replace("*", name)
    for taken in (project.config.root / path, project.config.lock_path(name)):
        if taken.exists():
            raise EnvdslError.of(
                "import-exists",
                f"{taken.relative_to(project.config.root)} exists already",
                hint="choose another --name, or remove it first",
                exit_status=ExitStatus.USAGE,
            )
    return path


def _roots(found: Found) -> tuple[str, ...]:
    """What to declare of ``found``: of what was asked for, all that is to be taken."""
    names = [pin.name for pin in found.pins]
    return tuple(root for root in found.roots if _name_of(root) in names) if found.roots else tuple(names)


def _name_of(requirement: str) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)


def _attempts(found: Found, roots: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What to declare: what somebody asked for; if that does not bring all of it, everything by name."""
    named = {_name_of(root) for root in roots}
    rest = tuple(pin.name for pin in found.pins if pin.name not in named)
    return [roots, tuple(sorted((*roots, *rest)))] if rest else [roots]


def _evaluate(project: Project, path: str, text: str, name: str) -> LayerSpec:
    from envdsl.evaluate.project import evaluate

    reader = WithFile(project.config.root, path, text.encode())
    files = sorted({*project.layer_files, path})
    return evaluate(files, reader, default_platforms=project.config.platforms).layers[name]


def _lock(project: Project, found: Found, spec: LayerSpec, *, offline: bool) -> Lock:
    from envdsl.evaluate.spec import Requirement
    from envdsl.lock.locking import LockOptions, lock_layer

    configuration = locking.index_configuration(project)
    constraints = tuple(Requirement(f"{pin.name}=={pin.version}") for pin in found.pins)
    try:
        locked = lock_layer(
            replace(spec, constraints=constraints),
            project.config.lock_path(spec.name),
            base=None,
            root=project.config.root,
            configuration=configuration,
            interpreter=Path(sys.executable),
            options=LockOptions(offline=offline, urls=project.config.urls),
            reporter=project.reporter,
            wheelhouse=project.config.store / "wheelhouse",
        )
    except EnvdslError as error:
        if error.exit_status >= ExitStatus.ENVIRONMENT:
            raise
        found_reasons = reasons(found.label, found.pins, found.python, configuration, offline=offline)
        if not found_reasons:
            raise
        raise EnvdslError(*found_reasons) from error
    project.seen_at.update(locked.places)
    return locked.lock


def _missing(found: Found, lock: Lock) -> set[str]:
    return {pin.name for pin in found.pins} - {package.name for package in lock.packages}


def _compare(project: Project, found: Found, lock: Lock) -> tuple[str, ...]:
    """The same versions, from files that the source accepts; returns what came in addition."""
    from packaging.version import Version

    packages = {package.name: package for package in lock.packages}
    problems: list[Diagnostic] = []
    for pin in found.pins:
        package = packages.get(pin.name)
        if package is None or Version(package.version) != Version(pin.version):
            got = f"{package.version} would be locked" if package else "nothing would be locked"
            problems.append(refusal(found.label, pin.name, "version", f"is {pin.version}, and {got}"))
            continue
        wheels = {wheel.filename: wheel for _, wheel in package.platforms}
        for wheel in wheels.values():
            if pin.hashes and wheel.sha256 not in pin.hashes:
                reason = f"{pin.version}: {wheel.filename} has a sha256 that is not listed, {wheel.sha256}"
                hint = "another index may serve other files under these names: check envdsl.toml"
                problems.append(refusal(found.label, pin.name, "hash-mismatch", reason, hint))
    added = tuple(f"{name} {packages[name].version}" for name in sorted(packages.keys() - {p.name for p in found.pins}))
    if added and found.hashed:
        problems += [
            refusal(found.label, item, "unhashed", "is required, and the source has no hash for it", "lock it again")
            for item in added
        ]
    if problems:
        raise EnvdslError(*problems)
    if added:
        project.reporter.warn(
            Diagnostic(
                "import-added",
                f"{found.label} lacks what its packages require; added: {', '.join(added)}",
                severity="warning",
            )
        )
    return added


def _write(project: Project, spec: LayerSpec, lock: Lock, file: Path, text: str) -> None:
    from envdsl.lock.freshness import digest_of, resolution_inputs
    from envdsl.lock.pylock import finish, write_lock

    path = project.config.lock_path(spec.name)
    inputs = resolution_inputs(spec, project.config.root)
    content, _ = finish(replace(lock, inputs=digest_of(inputs), recorded=inputs, digest=""), path)
    write_lock(path, content)
    try:
        write_file(file, text.encode())
    except BaseException:
        path.unlink(missing_ok=True)
        raise

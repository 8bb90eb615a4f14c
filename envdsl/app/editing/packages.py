"""Packages of a project's locks: names to propose, and what is known of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError

if TYPE_CHECKING:
    from envdsl.app.editing.workspace import Workspace
    from envdsl.lock.lock import LockedPackage, LockedWheel
    from envdsl.lock.metadata import CoreMetadata


@dataclass(frozen=True, slots=True)
class Locked:
    """A package and the layers that lock it, by version."""

    name: str
    versions: dict[str, list[str]]
    package: LockedPackage
    layer: str


def locked_packages(workspace: Workspace) -> dict[str, Locked]:
    """All packages of all locks by normalised name, whatever becomes of the layers that are being written."""
    found: dict[str, Locked] = {}
    for layer in workspace.locked_layers:
        lock = workspace.read_lock(layer)
        for package in lock.packages if lock is not None else ():
            entry = found.setdefault(package.name, Locked(package.name, {}, package, layer))
            entry.versions.setdefault(package.version, []).append(layer)
    return found


def requirement_name(text: str) -> str | None:
    """The normalised name of a requirement; None where the text is none."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        return canonicalize_name(Requirement(text).name)
    except InvalidRequirement:
        return None


def metadata(workspace: Workspace, locked: Locked) -> CoreMetadata | None:
    """What the package says of itself; None where its wheel is neither in the store nor in a directory of wheels."""
    from envdsl.app.locking import index_configuration
    from envdsl.lock.facts import FactsReader
    from envdsl.store.layout import Layout

    try:
        project = workspace.project
        configuration = index_configuration(project)
    except EnvdslError:
        return None
    layout = Layout(project.config.store)
    directory = project.config.lock_path(locked.layer).parent

    def at_hand(wheel: LockedWheel) -> Path | None:
        places = [layout.absolute(layout.wheel_path(wheel.sha256, wheel.filename))]
        if wheel.path is not None:
            places.append(directory / wheel.path)
        return next((place for place in places if place.is_file()), None)

    wheels = {wheel for _, wheel in locked.package.platforms}
    facts = FactsReader(configuration, at_hand, offline=True).read(wheels)
    return next((known.metadata for known in facts.values() if known.metadata is not None), None)

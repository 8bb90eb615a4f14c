"""What a bundle may hold, by its own layer files and locks; and whether it goes with the project here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app import locking
from envdsl.app.bundles import content
from envdsl.app.bundles.manifest import BundledPath, Item
from envdsl.config import FILE_NAME
from envdsl.errors import EnvdslError
from envdsl.model.digest import store_hash
from envdsl.store.archive import refusal
from envdsl.store.layout import Layout
from envdsl.store.treehash import hash_file

if TYPE_CHECKING:
    from envdsl.app.bundles.manifest import Bundle
    from envdsl.app.project import Project
    from envdsl.graph.derivation import Derivation
    from envdsl.realise.python import PythonSource


def expected_outputs(bundle: Bundle, staged: Project, label: str) -> dict[str, Derivation]:
    """What the locks in the bundle call for, by store path. ``staged`` is the project part, as a project.

    Raises EnvdslError ``archive-unlisted`` for anything in the bundle that is none of it, ``archive-list``, and what is
    wrong with the layer files and locks.
    """
    layers = staged.select(bundle.layers)
    if not bundle.layers or tuple(sorted(layer.name for layer in layers)) != bundle.layers:
        raise refusal(label, "list", "does not name the layers that it is for, with their bases")
    locking.require_current(staged, bundle.layers)
    # The project part is what these layers read, and not a file more: it is what gets written elsewhere.
    known = {*content.project_files(staged, layers), *content.source_files(staged, layers)}
    for item in bundle.project:
        if item.path not in known:
            raise refusal(label, "unlisted", "is a file that its layers do not read", f"project/{item.path}")
    locks = content.project_locks(staged, layers)
    wheels = content.locked_wheels(locks, {layer.name: layer.platforms for layer in layers})
    expected: dict[str, Derivation] = {
        Layout.wheel_path(item.wheel.sha256, item.wheel.filename): item.wheel for item in wheels
    }
    expected |= content.realised(staged, layers, bundle.platform)
    for path in bundle.paths:
        derivation = expected.get(path.path)
        if path.kind == "python":
            _check_interpreter(path, label)
        elif derivation is None or (derivation.kind, derivation.key) != (path.kind, path.key):
            raise refusal(label, "unlisted", "is nothing that the locks in the bundle call for", path.path)
    return expected


def _check_interpreter(path: BundledPath, label: str) -> None:
    from envdsl.realise.python import content_key

    directory, _, name = path.path.partition("/")
    parts = name.split("-")
    if directory != "python" or len(parts) != 3 or parts[2] != store_hash(path.key):
        raise refusal(label, "list", "is no path of an interpreter", path.path)
    if content_key(parts[0], parts[1], path.listing) != path.key:
        raise refusal(label, "tree-hash", "does not hold the interpreter that its key says", path.path)
    try:
        interpreter_source(path)
    except (TypeError, KeyError, ValueError):
        raise refusal(label, "list", "is an interpreter of no known origin", path.path) from None


def interpreter_source(path: BundledPath) -> PythonSource:
    """Where a bundled interpreter came from, as the sender's store has it.

    Raises KeyError, TypeError or ValueError for facts that say nothing of the kind.
    """
    from envdsl.realise.python import PythonSource

    source = PythonSource(**{**path.facts, "missing": tuple(path.facts["missing"])})
    texts = [source.origin, source.sha256 or "", *source.missing]
    if source.kind not in ("standalone", "archive", "fallback") or not all(text.isprintable() for text in texts):
        raise ValueError("no origin of an interpreter")
    return source


def missing_files(bundle: Bundle, root: Path) -> tuple[str, ...]:
    """The files of the bundle's project part that the project at ``root`` has not got.

    Those that it has must be the same, but for its settings: where this machine's indexes and store are is its own
    business. Raises EnvdslError ``app-bundle-project-differs``.
    """
    missing, different = [], []
    for item in bundle.project:
        place = root / item.path
        if not os.path.lexists(place) and _has_room(place, root):
            missing.append(item.path)
        elif item.path != FILE_NAME and not _same(place, item):
            different.append(item.path)
    if different:
        more = f" and {len(different) - 20} more" if len(different) > 20 else ""
        raise EnvdslError.of(
            "app-bundle-project-differs",
            "the bundle was made from another state of this project; different here: "
            f"{', '.join(different[:20])}{more}",
            hint="check out the revision that the bundle was made from, import into an empty directory "
            "(--project DIR), or fill the store alone (--no-files)",
            details={"different": different},
        )
    return tuple(missing)


def _has_room(place: Path, root: Path) -> bool:
    """Whether ``place`` can be made: what stands above it below ``root`` are directories."""
    above = [directory for directory in place.parents if directory.is_relative_to(root)]
    return all(directory.is_dir() for directory in above if os.path.lexists(directory))


def _same(place: Path, item: Item) -> bool:
    if item.type == "symlink":
        return place.is_symlink() and str(place.readlink()) == item.target
    return place.is_file() and hash_file(os.fsencode(place.resolve())) == (item.size, item.digest)

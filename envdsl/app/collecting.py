"""``envdsl gc`` and ``envdsl verify``, and the roots that a project registers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.model.digest import blake3_hex, store_hash

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.store.gc import Collected
    from envdsl.store.verify import Verified


def collect(project: Project, *, dry_run: bool) -> Collected:
    """Delete what no root needs: see :mod:`envdsl.store.gc` for the roots that the store knows by itself.

    Raises :class:`EnvdslError` for a session whose manifest cannot be read: nothing is deleted on a guess.
    """
    from envdsl.session import bindings
    from envdsl.store import gc

    roots = {key for keys in bindings.roots(project.store.layout).values() for key in keys}
    return gc.collect(project.store, roots, dry_run=dry_run, reporter=project.reporter)


def register_roots(project: Project, keys: Iterable[str]) -> None:
    """Keep the layers of this project from every ``gc`` of the store, whoever runs it: ``gcroots/project-<hash>``."""
    root = project.config.root
    directory = project.store.layout.gcroots
    place = directory / f"project-{store_hash(blake3_hex(os.fsencode(root)))}"
    text = "".join(f"{key}\n" for key in sorted(keys))
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        new = place.with_name(f".{place.name}.{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.replace(place)


def point(link: Path, target: str) -> None:
    """Let the symbolic link ``link`` lead to ``target``, in one step for whoever follows it."""
    if link.is_symlink() and os.readlink(link) == target:
        return
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(link)


def verify(project: Project) -> Verified:
    """Compare every valid path with what it held when it was registered."""
    from envdsl.store import verify as verifying

    return verifying.verify(project.store, jobs=os.cpu_count() or 1, reporter=project.reporter)

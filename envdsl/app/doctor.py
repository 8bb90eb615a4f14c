"""``envdsl doctor``: the machine (room ``sandbox``), then the store, the interpreters and the bound bases."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.sandbox.doctor import Finding
    from envdsl.session.bindings import Session

_LOW_DISK = 2 << 30


def examine(project: Project, *, sandboxes: bool = True) -> list[Finding]:
    """All findings, in the order to report them; a check that breaks is a finding too. Without ``sandboxes``, only
    what takes milliseconds: the store, the disk, the interpreters."""
    return list(_examine(project, sandboxes))


def _examine(project: Project, sandboxes: bool) -> Iterator[Finding]:
    from envdsl.sandbox import doctor
    from envdsl.session.bindings import shared_directory

    store = _store(project)
    yield store
    if store.status is doctor.Status.FAILED:
        return
    yield _disk(project)
    if sandboxes:
        yield from doctor.machine(shared_directory(project.store.layout))
    yield from _interpreters(project)
    if sandboxes:
        yield from _sessions(project)


def _store(project: Project) -> Finding:
    from envdsl.sandbox.doctor import Finding, Status

    try:
        store = project.store
        if not store.writable:
            return Finding(
                "store",
                Status.FAILED,
                f"{store.layout.root} cannot be written by this user",
                "run envdsl as the owner of the store, or choose another one with --store or ENVDSL_STORE",
            )
        count = len(store.paths())
    except EnvdslError as error:
        return Finding("store", Status.FAILED, str(error), error.diagnostics[0].hint or "")
    owner = store.layout.root.stat().st_uid
    details = {"path": str(store.layout.root), "paths": count, "owner": owner}
    return Finding("store", Status.OK, f"{store.layout.root}, {count} valid paths", details=details)


def _disk(project: Project) -> Finding:
    from envdsl.sandbox.doctor import Finding, Status

    free = shutil.disk_usage(project.store.layout.root).free
    inodes = os.statvfs(project.store.layout.root)
    message = f"{free / 2**30:.1f} GiB free"
    details = {"free": free, "free-inodes": inodes.f_favail}
    # Some file systems (btrfs) have no number of inodes to run out of.
    if free < _LOW_DISK or (inodes.f_files and inodes.f_favail < 50_000):
        remedy = "`envdsl gc` deletes what nothing needs; `envdsl gc --dry-run` says how much that is"
        return Finding("disk", Status.WARNING, message, remedy, details)
    return Finding("disk", Status.OK, message, details=details)


def _interpreters(project: Project) -> Iterator[Finding]:
    from envdsl.app import interpreters
    from envdsl.sandbox.doctor import Finding, Status

    found = interpreters.installed(project)
    if not found:
        remedy = "`envdsl python install 3.12`; `envdsl build` does it by itself when it needs one"
        yield Finding("interpreters", Status.WARNING, "none is installed yet", remedy)
    for item in found:
        name = f"interpreter {item.python}"
        if item.fallback:
            yield Finding(
                name,
                Status.WARNING,
                f"{item.full_version} is the fallback: {item.source}",
                f"for the same interpreter on every host: `envdsl python install {item.python} --mirror URL`, "
                "or with --archive and --sha256",
                interpreters.to_json(item),
            )
        else:
            message = f"{item.full_version}: {item.source}"
            yield Finding(name, Status.OK, message, details=interpreters.to_json(item))


def _lost(session: Session) -> str | None:
    """What of the host a session's sandbox cannot start without, and is not there."""
    manifest = session.manifest
    if manifest.workspace is not None and not Path(manifest.workspace.source).is_dir():
        return f"its workspace {manifest.workspace.source}"
    for name in ("run", "bwrap.args"):
        if not (session.directory / name).is_file():
            return f"its file {session.directory / name}"
    return None


def _sessions(project: Project) -> Iterator[Finding]:
    """A real import in a real sandbox for each distinct binding; sessions that are bound alike are tried once."""
    from envdsl.app import sessions
    from envdsl.sandbox.doctor import Finding, Status

    tried: dict[tuple[str, ...], Finding] = {}
    for name in sessions.names(project):
        check = f"session {name}"
        try:
            found = sessions.show(project, name)
            if (lost := _lost(found)) is not None:
                remedy = f"put it back, or `envdsl session remove {name}` and create it again"
                yield Finding(check, Status.FAILED, f"{lost} is gone, so it cannot start", remedy)
                continue
            binding = tuple(str(layer.id) for layer in found.manifest.layers)
            if binding not in tried:
                tried[binding] = sessions.import_probe(project, found)
        except EnvdslError as error:
            remedy = error.diagnostics[0].hint or f"`envdsl session remove {name}`, then create it again"
            yield Finding(check, Status.FAILED, str(error), remedy)
            continue
        finding = tried[binding]
        yield Finding(check, finding.status, finding.message, finding.remedy, finding.details)

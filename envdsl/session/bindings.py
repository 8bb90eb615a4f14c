"""Sessions on disk: ``sessions/<name>/`` in the store.

    manifest.json    the binding; the source of truth
    bwrap.args       the same as bubblewrap's arguments, NUL-separated
    run              a shell script that starts the sandbox with nothing but bubblewrap
    cache/           the session's own cache directory, the only thing here that a sandbox writes to

A new session appears by one rename. A rebase replaces file by file, the manifest last; ``run`` reads
``bwrap.args`` alone, so that a launch sees the old binding or the new one. All writers hold one lock;
readers need none. ``sessions/.sandbox`` holds what sandboxes share: their minimal root, the seccomp filter.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import SESSION_NAME
from envdsl.sandbox import bwrap, seccomp, skeleton
from envdsl.sandbox.argv import arguments, encode
from envdsl.sandbox.script import script
from envdsl.session import cache
from envdsl.session.compose import ROOT_LOCK, plan
from envdsl.session.difference import Difference, difference
from envdsl.session.layers import overlaps
from envdsl.session.manifest import Manifest
from envdsl.session.shim import write_shims
from envdsl.store.layout import Layout
from envdsl.store.locks import is_locked_by_sandbox
from envdsl.store.store import Store

_ROOT_AGE = 3600  # seconds
ABANDONED = 60.0  # seconds after which nobody is writing a small file any more
_TEMPORARY = re.compile(r"\..+[.-](\d+|new)")  # what stands beside a file while it is replaced
MANIFEST = "manifest.json"
ARGUMENTS = "bwrap.args"


@dataclass(frozen=True, slots=True)
class Session:
    """A session that exists."""

    name: str
    directory: Path
    manifest: Manifest

    @property
    def run(self) -> Path:
        """The script that starts its sandbox."""
        return self.directory / "run"


def shared_directory(layout: Layout) -> Path:
    """Where the sandboxes of a store keep what they share; ``sandbox.bwrap.find`` remembers its answer there too."""
    return layout.sessions / ".sandbox"


def names(layout: Layout) -> list[str]:
    """The names of all sessions, sorted."""
    if not layout.sessions.is_dir():
        return []
    return sorted(
        entry.name
        for entry in layout.sessions.iterdir()
        if SESSION_NAME.fullmatch(entry.name) and (entry / MANIFEST).is_file()
    )


def show(layout: Layout, name: str) -> Session:
    """The session called ``name``.

    Raises EnvdslError: ``session-unknown``, ``session-manifest-invalid``, ``session-manifest-version``.
    """
    directory = layout.sessions / name
    path = directory / MANIFEST
    if not SESSION_NAME.fullmatch(name) or not path.is_file():
        close = get_close_matches(name, names(layout), 1)
        raise EnvdslError.of(
            "session-unknown",
            f"there is no session {name!r} in {layout.root}",
            hint=f"did you mean {close[0]!r}?" if close else "envdsl session list shows those that there are",
            exit_status=ExitStatus.USAGE,
        )
    return Session(name, directory, Manifest.from_json(path.read_bytes(), name=str(path)))


def roots(layout: Layout) -> Mapping[str, tuple[str, ...]]:
    """The keys of the store paths that each session needs: roots for garbage collection.

    A manifest that can't be read raises EnvdslError: nothing may be collected on a guess.
    """
    return {name: show(layout, name).manifest.store_keys() for name in names(layout)}


def on_host(store: Store, manifest: Manifest) -> Manifest:
    """``manifest`` with what belongs to this host, ready for :func:`envdsl.session.compose.plan`.

    Raises EnvdslError ``session-layer-missing``, ``session-file-conflict``, ``session-workspace-missing``,
    ``sandbox-root-unwritable``.
    """
    for key in manifest.store_keys():
        if store.lookup(key) is None:
            raise EnvdslError.of(
                "session-layer-missing",
                f"{manifest.name_of(key)} of session {manifest.session} is not in the store {store.layout.root}",
                hint="envdsl build",
            )
    if conflicts := overlaps(store, manifest.layers):
        raise EnvdslError(*conflicts)
    if manifest.workspace is not None:
        require_workspace(Path(manifest.workspace.source))
    write_shims(store.layout.bin)
    shared = shared_directory(store.layout)
    root = skeleton.prepare(shared, [item.mount() for item in manifest.mounts])
    with suppress(OSError):  # a store of somebody else's
        os.utime(root[0].source or "")  # in use: see `prune`
    return manifest.on_host(root, seccomp.install(shared))


def require_workspace(workspace: Path) -> None:
    """Raises EnvdslError ``session-workspace-missing`` where there is no such directory."""
    if not workspace.is_dir():
        raise EnvdslError.of(
            "session-workspace-missing",
            f"the workspace {workspace} is not a directory",
            hint="make it, or name another one with --workspace",
            exit_status=ExitStatus.USAGE,
        )


def create(store: Store, manifest: Manifest) -> Session:
    """Write the session that ``manifest`` (as :func:`envdsl.session.compose.compose` returns it) describes.

    A session that exists and is bound to the same is returned, its files brought up to date. Raises EnvdslError:
    ``session-exists``, ``session-layer-missing``, ``session-workspace-missing``, ``sandbox-no-bwrap``.
    """
    layout = store.layout
    store.flush()  # a binding outlives a power failure, and what it binds with it
    with _writing(layout), store.lease():
        complete = on_host(store, manifest)
        files = _files(layout, complete)
        directory = layout.sessions / manifest.session
        if (directory / MANIFEST).is_file():
            present = show(layout, manifest.session)
            if change := difference(present.manifest, complete):
                raise EnvdslError.of(
                    "session-exists",
                    f"the session {manifest.session} exists, and is bound to something else:\n  "
                    + "\n  ".join(change.lines()),
                    hint=f"envdsl session rebase {manifest.session} changes its binding; "
                    f"envdsl session remove {manifest.session} ends it",
                    exit_status=ExitStatus.USAGE,
                )
            _replace_files(directory, files)
        else:
            _write_new(layout, directory, files)
    return Session(manifest.session, directory, complete)


def preview(layout: Layout, manifest: Manifest) -> Difference:
    """What :func:`rebase` would change for the programs in the sandbox."""
    return difference(show(layout, manifest.session).manifest, manifest)


def rebase(store: Store, manifest: Manifest) -> Difference:
    """Bind the session anew; its cache and workspace stay. Returns what changed.

    Sandboxes that run keep what they were started with. Raises EnvdslError: ``session-unknown``,
    ``session-layer-missing``, ``session-workspace-missing``, ``sandbox-no-bwrap``.
    """
    store.flush()
    with _writing(store.layout), store.lease():
        present = show(store.layout, manifest.session)
        complete = on_host(store, manifest)
        _replace_files(present.directory, _files(store.layout, complete))
        return difference(present.manifest, complete)


def remove(store: Store, name: str) -> None:
    """End a session. Its layers become garbage unless something else needs them; a sandbox of it that still
    runs keeps its mounts, and holds its layers by their lock files. Raises EnvdslError ``session-unknown``."""
    with _writing(store.layout), store.lease():
        directory = store.layout.sessions / name
        with suppress(EnvdslError):  # its layers were used until now, which gc --older-than asks for
            for key in show(store.layout, name).manifest.store_keys():
                store.lookup(key)
        if not SESSION_NAME.fullmatch(name) or not directory.is_dir():
            show(store.layout, name)  # says what there is
        doomed = store.temporary(f"session-{name}") / name
        directory.rename(doomed)
    cache.remove(doomed)


def prune(layout: Layout, *, dry_run: bool = False) -> list[Path]:
    """Remove the minimal roots that no session names, no sandbox runs in, and nobody prepared within the hour, and
    what writers who died have left of files and sessions.

    Returns the roots. Each holds less than a megabyte; they come from sessions and probes that are gone.
    Raises EnvdslError ``session-manifest-invalid``; OSError.
    """
    with _writing(layout):
        for place in [] if dry_run else list(_abandoned(layout)):
            cache.remove(place) if place.is_dir() and not place.is_symlink() else place.unlink(missing_ok=True)
        named = {mount.source for name in names(layout) for mount in show(layout, name).manifest.root_mounts}
        unused = [
            root
            for root in sorted(shared_directory(layout).glob("root-*"))
            if root.is_dir()
            and str(root) not in named
            and root.stat().st_mtime < time.time() - _ROOT_AGE
            and not is_locked_by_sandbox(root / ROOT_LOCK[1:])
        ]
        for root in [] if dry_run else unused:
            root.with_name(f"{root.name}.stamp").unlink(missing_ok=True)  # without it, it is not complete
            shutil.rmtree(root)
        return unused


def _abandoned(layout: Layout) -> Iterator[Path]:
    """Temporaries of writers who died. Those of sessions are known by the lock that all writers hold, which is ours
    now; what sandboxes share is written under other locks, or none."""
    yield from layout.sessions.glob(".new-*")
    yield from layout.sessions.glob("[!.]*/.*.new")
    shared = shared_directory(layout)
    settled = time.time() - ABANDONED
    for place in [*shared.glob(".*"), *shared.glob("root-*/**/.*.new")]:
        with suppress(FileNotFoundError):
            if _TEMPORARY.fullmatch(place.name) and place.lstat().st_mtime < settled:
                yield place


def trim_cache(session: Session) -> int:
    """Keep the session's cache within its limit, before a run begins; returns the bytes removed."""
    limit = session.manifest.limits.cache
    if limit is None or session.manifest.cache is None:
        return 0
    return cache.trim(Path(session.manifest.cache), limit)


def _files(layout: Layout, manifest: Manifest) -> dict[str, tuple[bytes, int]]:
    """Name -> content and mode, the manifest last."""
    sandbox = plan(manifest)
    text = script(
        bwrap=bwrap.find(shared_directory(layout)),
        args=layout.sessions / manifest.session / ARGUMENTS,
        seccomp_filter=Path(manifest.isolation.seccomp or ""),
        command=sandbox.command,
    )
    return {
        ARGUMENTS: (encode(arguments(sandbox)), 0o644),
        "run": (text.encode("utf-8", "surrogateescape"), 0o755),
        MANIFEST: (manifest.to_json().encode("utf-8", "surrogateescape"), 0o644),
    }


def _write_new(layout: Layout, directory: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    new = layout.sessions / f".new-{directory.name}"
    shutil.rmtree(new, ignore_errors=True)  # of a writer that died; the lock is ours
    if directory.exists():  # the same, of a removal or of somebody's hand
        directory.rename(new)
        cache.remove(new)
    new.mkdir()
    new.chmod(0o755)
    (new / "cache").mkdir(0o700)
    _replace_files(new, files)
    new.rename(directory)


def _replace_files(directory: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    (directory / "cache").mkdir(0o700, exist_ok=True)
    for name, (content, mode) in files.items():
        path, new = directory / name, directory / f".{name}.new"
        if path.is_file() and path.read_bytes() == content:
            continue
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.chmod(mode)
        new.replace(path)


@contextmanager
def _writing(layout: Layout) -> Iterator[None]:
    layout.sessions.mkdir(parents=True, exist_ok=True)
    with (layout.sessions / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

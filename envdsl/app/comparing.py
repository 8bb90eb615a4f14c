"""``envdsl diff``: what changed between two states of locks, wherever they are kept."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.lock.difference import LockDifference
    from envdsl.lock.lock import Lock

KINDS = ("layer", "lock", "session", "git")


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison. ``several``: all layers of a project, to be compared name by name."""

    label: str
    locks: Mapping[str, Lock]
    several: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome: layers that differ. ``unknown`` counts changed packages of whose wheels nothing is known here."""

    before: str
    after: str
    layers: tuple[LockDifference, ...]
    unknown: int


def compare(project: Project, before: str = "HEAD", after: str | None = None, *, fetch: bool = False) -> Comparison:
    """Compare two sides; ``after`` is the project as it stands by default.

    A side is a layer (or family), the path of a lock file, a session, or a revision of git, and may say which:
    ``session:report-7``. ``fetch``: get the wheels that changed if they are not here, for licences and import names.
    Raises EnvdslError: ``app-diff-unknown``, ``app-diff-unlike``, ``app-git``, and what reading locks raises.
    """
    from envdsl.app.traits import traits_of
    from envdsl.lock.difference import difference

    old = _side(project, before)
    new = _side(project, after) if after is not None else _present(project, old)
    pairs = _pairs(old, new)
    changed = [(one, other) for one, other in pairs if difference(one, other)]
    known, unknown = traits_of(project, changed, fetch=fetch)
    found = tuple(difference(one, other, known) for one, other in changed)
    return Comparison(old.label, new.label, found, unknown)


def _pairs(old: Side, new: Side) -> list[tuple[Lock | None, Lock | None]]:
    if old.several != new.several:
        one, all_ = (new, old) if old.several else (old, new)
        raise EnvdslError.of(
            "app-diff-unlike",
            f"{one.label} is one set of packages, and {all_.label} all layers of a project",
            hint="compare layers with layers, or revisions with revisions",
            exit_status=ExitStatus.USAGE,
        )
    if not old.several:
        return [(next(iter(old.locks.values())), next(iter(new.locks.values())))]
    names = sorted(old.locks.keys() | new.locks.keys())
    return [(old.locks.get(name), new.locks.get(name)) for name in names]


def _present(project: Project, old: Side) -> Side:
    """The project as it stands, or of a single layer or lock that same layer."""
    if old.several:
        return Side("the working tree", _locks_on_disk(project), True)
    name = next(iter(old.locks))
    if (lock := project.lock(name)) is None:
        raise _unknown(name, "the project has no lock of that name to compare it with")
    return Side(f"{name} of the working tree", {name: lock}, False)


def _side(project: Project, text: str) -> Side:
    kind, separator, name = text.partition(":")
    if separator and kind in KINDS:
        found = _READERS[kind](project, name)
        if found is None:
            missing = f"there is no such {'revision' if kind == 'git' else kind}"
            raise _unknown(text, (_why_no_revisions(project) if kind == "git" else None) or missing)
        return found
    unreadable: EnvdslError | None = None
    for kind, reader in _READERS.items():
        try:
            found = reader(project, text)
        except EnvdslError as error:
            if kind != "layer" or project.config.lock_path(text).exists() or error.code == "app-lock-missing":
                raise
            unreadable = error  # of which layers there are nothing is known, and yet it may be a session or revision
            continue
        if found is not None:
            return found
    if unreadable is not None:
        raise unreadable
    reason = _why_no_revisions(project)
    if reason is not None:
        raise _unknown(text, reason if text == "HEAD" else f"it is no layer, lock file or session, and {reason}")
    raise _unknown(text, "it is no layer, lock file, session or git revision")


def _lock_file(project: Project, text: str) -> Side | None:
    from envdsl.lock.pylock import read_lock

    if not text.endswith(".toml"):
        return None
    lock = read_lock(Path(text))
    return Side(text, {lock.layer: lock}, False)


def _layer(project: Project, text: str) -> Side | None:
    from envdsl.app.packages import require_lock

    try:
        name = project.layer(text).name
    except EnvdslError as error:
        if error.code == "app-unknown-layer":
            return None
        raise
    return Side(name, {name: require_lock(project, project.spec.layers[name])}, False)


def _session(project: Project, text: str) -> Side | None:
    """A session's layers as one set of packages: what its programs see."""
    from envdsl.app.subject import session_of

    session = session_of(project, text)
    return Side(f"session {text}", {text: session.merged()}, False) if session is not None else None


def _revision(project: Project, text: str) -> Side | None:
    from envdsl.lock.pylock import parse_lock

    root = project.config.root
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    if commit is None:
        return None
    directory = project.config.lock_path("x").parent.relative_to(root).as_posix()
    listed = _git(root, "ls-tree", "--name-only", "-z", commit.decode().strip(), "--", f"{directory}/")
    locks: dict[str, Lock] = {}
    for name in (listed or b"").decode().split("\0"):
        path = PurePosixPath(name)
        if path.match("pylock.*.toml"):
            data = _git(root, "cat-file", "blob", f"{commit.decode().strip()}:./{path}")
            lock = parse_lock(data or b"", root / path)
            locks[lock.layer] = lock
    return Side(text, locks, True)


def _why_no_revisions(project: Project) -> str | None:
    """Why there is no revision of git at all; None where there are some."""
    root = project.config.root
    if _git(root, "rev-parse", "--git-dir") is None:
        return f"git finds no repository in {root}"
    if _git(root, "rev-list", "--all", "--max-count=1") in (None, b""):
        return "the git repository has no commit yet"
    return None


def _locks_on_disk(project: Project) -> dict[str, Lock]:
    from envdsl.lock.pylock import read_lock

    directory = project.config.lock_path("x").parent
    return {lock.layer: lock for path in sorted(directory.glob("pylock.*.toml")) for lock in [read_lock(path)]}


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git prints; None where it says no."""
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise EnvdslError.of(
            "app-git",
            "there is no git on this machine to ask for a revision",
            hint="compare layers, lock files or sessions",
            exit_status=ExitStatus.ENVIRONMENT,
        ) from None
    return done.stdout if done.returncode == 0 else None


_READERS = {"lock": _lock_file, "layer": _layer, "session": _session, "git": _revision}


def _unknown(text: str, why: str) -> EnvdslError:
    return EnvdslError.of(
        "app-diff-unknown",
        f"cannot compare {text}: {why}",
        hint="name a layer, lock file, session or git revision; layer:, lock:, session: or git: in front says which",
        exit_status=ExitStatus.USAGE,
    )

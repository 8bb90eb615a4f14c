"""``envdsl update``: upgraded locks as a change that is ready for review, with what it means as its message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app import locking
from envdsl.app.branching import Branch
from envdsl.app.comparing import Comparison
from envdsl.app.curated import refuse_curated
from envdsl.app.locking import LockOutcome
from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.lock.difference import LockDifference
    from envdsl.lock.lock import Lock

_NAMED = 3  # packages in the first line of a message


@dataclass(frozen=True, slots=True)
class Update:
    """What was updated. ``message`` is empty, and ``commit`` None, where there was nothing to update."""

    outcomes: tuple[LockOutcome, ...]
    comparison: Comparison
    message: str
    branch: str | None = None
    commit: str | None = None


def update(
    project: Project, names: Sequence[str], *, describe: Callable[[Comparison], str], branch: str | None = None
) -> Update:
    """Upgrade the locks of these layers (all without names); ``describe`` makes the text of the message.

    With ``branch`` the new locks become one commit on a new branch, and the working tree stays as it is. Without, they
    are written into the working tree. Raises EnvdslError: what locking raises (no lock is changed then by ``branch``),
    what :class:`Branch` raises, ``app-update-uncommitted``, ``app-no-project`` for the curated layers.
    """
    refuse_curated(project)
    layers = project.select_families(names)
    paths = {layer.name: project.config.lock_path(layer.name) for layer in layers}
    target = Branch(project.config.root, branch) if branch is not None else None
    if target is not None:
        _check_committed(project, target, paths.values())
    before = {name: _readable(project, name) for name in paths}
    contents = {name: path.read_bytes() if path.exists() else None for name, path in paths.items()}
    with _restored(project, contents) if target is not None else nullcontext():
        outcomes = locking.lock(project, names, upgrade=True)
        comparison = _compare(project, before, branch)
        new = {path: data for name, path in paths.items() if (data := path.read_bytes()) != contents[name]}
    if not new:
        return Update(outcomes, comparison, "", branch)
    message = f"{_subject(comparison.layers)}\n\n{describe(comparison)}".rstrip() + "\n"
    commit = target.commit(new, message) if target is not None else None
    return Update(outcomes, comparison, message, branch, commit)


def _check_committed(project: Project, target: Branch, locks: Iterable[Path]) -> None:
    """A commit of locks for layer files that are in no commit would be stale for everybody else."""
    files = {project.config.root / name for name in project.layer_files}
    files |= {project.config.root / wheel.path for layer in project.spec.layers.values() for wheel in layer.wheels}
    files |= {path for path in (*locks, project.config.file) if path.exists()}
    if changed := target.changed(sorted(files)):
        raise EnvdslError.of(
            "app-update-uncommitted",
            f"not everything is committed that locks are made from: {', '.join(changed)}",
            hint="commit these first; the branch holds upgraded locks and nothing else",
            exit_status=ExitStatus.USAGE,
        )


@contextmanager
def _restored(project: Project, contents: Mapping[str, bytes | None]) -> Iterator[None]:
    """Give the lock files of these layers their contents back afterwards, whatever happens."""
    from envdsl.lock.pylock import write_lock

    try:
        yield
    finally:
        for name, content in contents.items():
            path = project.config.lock_path(name)
            if content is None:
                path.unlink(missing_ok=True)
            else:
                write_lock(path, content.decode())
            project.forget_lock(name)


def _compare(project: Project, before: Mapping[str, Lock | None], branch: str | None) -> Comparison:
    from envdsl.app.traits import traits_of
    from envdsl.lock.difference import difference

    changed = [(old, new) for name, old in before.items() if difference(old, new := project.lock(name))]
    known, unknown = traits_of(project, changed, fetch=False)
    found = tuple(difference(old, new, known) for old, new in changed)
    return Comparison("HEAD" if branch else "the locks as they were", branch or "the upgraded locks", found, unknown)


def _readable(project: Project, name: str) -> Lock | None:
    try:
        return project.lock(name)
    except EnvdslError:
        return None  # damaged; locking repairs it, or says why it can't


def _subject(differences: Sequence[LockDifference]) -> str:
    """The first line of the message: what moved, as far as there is room."""
    packages = dict.fromkeys(
        f"{package.name} {package.after or '(removed)'}" for layer in differences for package in layer.packages
    )
    named = list(packages)
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return f"Update locks: {', '.join(named[:_NAMED])}{more}" if named else "Update locks"

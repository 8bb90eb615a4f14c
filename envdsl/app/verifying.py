"""``envdsl verify``: what differs from what was registered, whom that concerns, and making it whole again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from envdsl.app import collecting
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.names import PythonVersion

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.graph.derivation import Derivation
    from envdsl.realise.python import Interpreter
    from envdsl.store.repair import Repair
    from envdsl.store.store import StorePath
    from envdsl.store.verify import Finding, Verified

_ROUNDS = 3  # a build that ran meanwhile may have linked a damaged file into a new layer


@dataclass(frozen=True, slots=True)
class Report:
    """What was found (``verified``), the layers (as people call them) and sessions that it touches, and what a repair
    did: the store paths that it put in place, what is still wrong, and why, by key."""

    verified: Verified
    layers: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    remaining: tuple[Finding, ...] = ()
    failures: Mapping[str, EnvdslError] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether the store is as it should be, now."""
        return not self.remaining

    def lines(self) -> Iterator[str]:
        """What it concerns, for a person."""
        if self.layers:
            yield f"this touches the layers {', '.join(self.layers)}"
        if self.sessions:
            yield f"this touches the sessions {', '.join(self.sessions)}"
        for path in self.repaired:
            yield f"repaired {path}"

    def to_json(self) -> dict[str, Any]:
        return {
            "paths": self.verified.paths,
            "bytes": self.verified.bytes,
            "findings": [_finding(item) for item in self.verified.findings],
            "layers": list(self.layers),
            "sessions": list(self.sessions),
            "repaired": list(self.repaired),
            "remaining": [_finding(item) for item in self.remaining],
        }


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "path": finding.path,
        "member": finding.member,
        "problem": finding.problem.value,
        "expected": finding.expected,
        "found": finding.found,
    }


def verify(project: Project, *, repair: bool = False, jobs: int | None = None, offline: bool = False) -> Report:
    """Compare every valid path with what it held when it was registered; with ``repair``, build again what differs.

    What cannot be repaired is in the report. Raises :class:`EnvdslError` where the store cannot be read or written.
    """
    from envdsl.store import verify as verifying

    jobs = jobs or len(os.sched_getaffinity(0))
    store = project.store
    newest = store.registry.newest()
    verified = verifying.verify(store, jobs=jobs, reporter=project.reporter)
    if not verified.findings:
        return Report(verified)
    known = _derivations(project)
    layers, sessions = _touched(project, verified.findings, known)
    repaired: set[str] = set()
    failures: dict[str, EnvdslError] = {}
    remaining = verified.findings
    for _ in range(_ROUNDS if repair else 0):
        done, failures = _repair(project, {finding.key for finding in remaining}, known, jobs, offline)
        repaired.update(path.path for path in done)
        looked_at = {finding.key for finding in remaining} | {path.key for path in done}
        looked_at |= store.registry.newer_than(newest)
        paths = store.registry.named(looked_at)
        remaining = verifying.verify(store, paths=paths, jobs=jobs, reporter=project.reporter).findings
        if not done or not {finding.key for finding in remaining} - failures.keys():
            break
    return Report(verified, layers, sessions, tuple(sorted(repaired)), remaining, failures)


def _derivations(project: Project) -> Mapping[str, Derivation]:
    """What the project knows, as far as it is in order."""
    try:
        return collecting.locked_graph(project).derivations
    except EnvdslError as error:
        project.reporter.note(f"the project has errors ({error}): only what builds wrote down is known")
        return {}


def _touched(
    project: Project, findings: Iterable[Finding], known: Mapping[str, Derivation]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from envdsl.store.census import Census

    census = Census(project.store)
    keys = census.dependents({finding.key for finding in findings} & census.paths.keys())
    named: dict[str, list[str]] = {}
    with suppress(EnvdslError):
        for name, layer in collecting.locked_graph(project).layers.items() if known else ():
            named.setdefault(layer.key, []).append(name)
    layers = []
    for key in keys:
        path = PurePosixPath(census.paths[key])
        if path.parts[0] == "layers":
            layers += [f"{name} ({path.name})" for name in named.get(key, ())] or [path.name]
    try:
        bound = collecting.sessions(project.store.layout)
        sessions = [session.name for session in bound if keys.intersection(session.manifest.store_keys())]
    except EnvdslError as error:
        project.reporter.warn(Diagnostic("app-verify-sessions", f"sessions are not known: {error}", severity="warning"))
        sessions = []
    return tuple(sorted(layers)), tuple(sessions)


def _repair(
    project: Project, damaged: set[str], known: Mapping[str, Derivation], jobs: int, offline: bool
) -> tuple[list[StorePath], dict[str, EnvdslError]]:
    from envdsl.app import building
    from envdsl.realise.repair import rebuild
    from envdsl.store.census import Census
    from envdsl.store.repair import Repair

    store = project.store
    census = Census(store)
    # Layers that link to a part which is made anew are linked anew, too, or the part would be there twice.
    parts = [key for key in damaged if census.paths.get(key, "").startswith(("unpacked/", "bytecode/"))]
    linked = {key for key in census.dependents(parts) if census.paths[key].startswith("layers/")}
    paths = store.registry.named(damaged | linked)
    with Repair(store.layout, paths) as repairing, repairing.lease():
        repairing.protect()
        failures = _install_again(project, repairing, [path for path in paths if path.kind == "python"], offline)
        failures |= rebuild(
            repairing,
            [path for path in paths if path.kind != "python"],
            known,
            fetch=building.fetcher(project, project.select(()) if known else (), offline, store=repairing),
            interpreters=lambda python: _interpreter(repairing, python),
            project=project.config.root,
            jobs=jobs,
            reporter=project.reporter,
        )
        return repairing.swap(), {key: error for key, error in failures.items() if key in damaged}


def _interpreter(store: Repair, python: PythonVersion) -> Path:
    from envdsl.realise import python as managed

    found = managed.find(store, python)
    if found is None:
        raise EnvdslError.of(
            "app-no-interpreter",
            f"there is no Python {python} to compile bytecode with",
            hint=f"envdsl python install {python}, then repair again",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return found.executable


def _install_again(
    project: Project, store: Repair, damaged: Iterable[StorePath], offline: bool
) -> dict[str, EnvdslError]:
    """Make damaged interpreters again from where they came; by key, why that did not work."""
    from envdsl.realise import python_registry

    failures: dict[str, EnvdslError] = {}
    for path in damaged:
        before = python_registry.read(project.store, path)
        try:
            made = _install(project, store, before, offline)
            if made.key != path.key:
                raise EnvdslError.of(
                    "app-repair-python",
                    f"{path.path} came from {before.source}, and what is to be had now is another build ({made.name})",
                    hint=f"builds and new sessions take Python {before.python} from {made.name}; rebase sessions to it",
                )
        except EnvdslError as error:
            failures[path.key] = error
    return failures


def _install(project: Project, store: Repair, before: Interpreter, offline: bool) -> Interpreter:
    from envdsl.realise import python as managed

    archive = project.config.python_archives.get(before.python)
    suits = archive is not None and archive.sha256 == before.source.sha256
    return managed.install(
        store,
        before.python,
        archive=archive.path if archive is not None and suits else None,
        sha256=archive.sha256 if archive is not None and suits else None,
        mirror=project.config.python_mirror,
        # A copy of the host's Python is made from that again, not from what would be better.
        offline=offline or before.fallback,
        reporter=project.reporter,
    )

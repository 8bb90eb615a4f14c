"""``envdsl build`` and ``envdsl ensure``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl import config as configuration
from envdsl import quick
from envdsl.app import collecting, interpreters, locking, probing
from envdsl.app.compiling import compile_layers
from envdsl.app.files import point
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.names import LayerKind, PythonVersion
from envdsl.quick import Answer, Inputs

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.graph.compile import Graph
    from envdsl.graph.derivation import Derivation, WheelFile
    from envdsl.realise.fetch import Fetcher
    from envdsl.realise.python import Interpreter
    from envdsl.realise.realisation import Realisation
    from envdsl.store.store import Store


# Seconds. The kernel has written by then what it was given, so that the next build does not wait for the disk either.
_FLUSH_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What ``build`` prints: the layers that were asked for, and how many derivations had to be carried out."""

    answers: tuple[Answer, ...]
    built: int
    seconds: float


@dataclass(frozen=True, slots=True)
class MissingStep:
    """A derivation that a build would carry out."""

    kind: str
    id: str
    title: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "id": self.id, "title": self.title}


def build(
    project: Project,
    names: Sequence[str] = (),
    *,
    locked: bool = False,
    offline: bool = False,
    jobs: int | None = None,
) -> BuildReport:
    """Build these layers (all without names) and the bases that they stand on.

    ``locked`` asks for every lock of the project to be current, not only those of ``names``. Layers whose
    interpreter cannot be had are reported after the others are built. Raises :class:`EnvdslError`.
    """
    begin = time.monotonic()
    root, store = str(project.config.root), str(project.config.store)
    layers = project.select(names)
    wanted = inputs(project, project.select(()) if locked else layers)
    before = quick.state(root, wanted)
    locking.require_current(project, () if locked else [layer.name for layer in layers])
    report = _build(project, layers, names, offline=offline, jobs=jobs, begin=begin)
    quick.remember(root, store, quick.request(names, locked=locked), wanted, report.answers, before=before)
    return report


def ensure(
    project: Project, names: Sequence[str] = (), *, offline: bool = False, jobs: int | None = None
) -> BuildReport:
    """Make the root ready: lock what has no lock, then build what this machine can have an interpreter for.

    What it returns is on the disk, whatever happens to the machine: images and installers rely on it.
    With ``names``, a layer whose interpreter cannot be had is an error; without, it is a warning.
    """
    begin = time.monotonic()
    layers = project.select(names)
    if unlocked := [layer.name for layer in layers if project.lock(layer.name) is None]:
        locking.lock(project, unlocked, offline=offline)
    locking.require_current(project, [layer.name for layer in layers])
    if not names:
        available = _available(project, layers, offline)
        layers = tuple(layer for layer in layers if layer.python in available)
    return _build(project, layers, names, offline=offline, jobs=jobs, begin=begin, durable=True)


def missing(project: Project, names: Sequence[str], *, locked: bool) -> tuple[MissingStep, ...]:
    """What :func:`build` would have to do, in the order in which it would be done."""
    from envdsl.graph.render import label
    from envdsl.realise.scheduler import plan

    layers = project.select(names)
    locking.require_current(project, () if locked else [layer.name for layer in layers])
    graph = compile_layers(project, layers)
    steps = [
        MissingStep("python", str(python), f"Python {python}") for python in _missing_interpreters(project, layers)
    ]
    todo = plan(graph, graph.layers, project.store)
    derivations: tuple[Derivation, ...] = (*todo.wheels, *todo.unpacks, *todo.bytecode, *todo.sources, *todo.layers)
    return (*steps, *(MissingStep(item.kind, item.key, label(item)) for item in derivations))


def _missing_interpreters(project: Project, layers: Iterable[LayerSpec]) -> list[PythonVersion]:
    from envdsl.realise import python as managed

    wanted = sorted({layer.python for layer in layers})
    return [python for python in wanted if managed.find(project.store, python) is None]


def _available(project: Project, layers: Iterable[LayerSpec], offline: bool) -> set[PythonVersion]:
    """The feature releases among ``layers`` that this machine can have; a warning for each of the others."""
    found: set[PythonVersion] = set()
    for python in sorted({layer.python for layer in layers}):
        try:
            interpreters.provide(project, python, offline=offline)
        except EnvdslError as error:
            without = ", ".join(layer.name for layer in layers if layer.python == python)
            project.reporter.warn(
                Diagnostic(
                    "app-interpreter-missing",
                    f"not built, because there is no Python {python}: {without}",
                    hint=error.diagnostics[0].hint,
                    severity="warning",
                )
            )
        else:
            found.add(python)
    return found


def _build(
    project: Project,
    layers: Sequence[LayerSpec],
    names: Sequence[str],
    *,
    offline: bool,
    jobs: int | None,
    begin: float,
    durable: bool = False,
) -> BuildReport:
    """``durable``: what is returned outlives a power failure; otherwise a later command sees to that."""
    from envdsl.realise.scheduler import realise

    found, without = _provide(project, layers, offline)
    buildable = [layer for layer in layers if layer.python in found]
    graph = compile_layers(project, buildable)
    _check_machine(project, graph, names)

    def fetch(wheels: Sequence[WheelFile], *, ready: Callable[[WheelFile], None] = lambda wheel: None) -> None:
        # Made when a wheel is missing: a new layer of known ones asks no index.
        fetcher(project, buildable, offline)(wheels, ready=ready)

    with project.store.lease():
        project.store.flush(older_than=_FLUSH_AFTER)
        realisation = realise(
            graph,
            graph.layers,
            project.store,
            fetch=fetch,
            interpreters=lambda python: found[python].executable,
            project=project.config.root,
            jobs=jobs,
            reporter=project.reporter,
            locks={name: project.config.lock_path(name).read_bytes() for name in graph.layers},
        )
        for warning in realisation.warnings:
            project.reporter.warn(warning)
        if durable:
            project.store.flush()
        _settle(project, graph, realisation, complete=not names)
        probing.probe(project, buildable, graph, found)
    if without:
        raise EnvdslError.all(without)
    wanted = {project.layer(name).name for name in names} or {layer.name for layer in layers}
    answers = tuple(
        Answer(
            name,
            project.spec.layers[name].kind.value,
            str(layer.id),
            str(layer.path),
            layer.key,
            layer.tree_hash,
        )
        for name, layer in realisation.layers.items()
        if name in wanted
    )
    return BuildReport(answers, sum(realisation.built.values()), time.monotonic() - begin)


def _provide(
    project: Project, layers: Sequence[LayerSpec], offline: bool
) -> tuple[Mapping[PythonVersion, Interpreter], list[EnvdslError]]:
    """The interpreters of ``layers``, and an error for each feature release that is not to be had."""
    found: dict[PythonVersion, Interpreter] = {}
    without: list[EnvdslError] = []
    for python in sorted({layer.python for layer in layers}):
        try:
            found[python] = interpreters.provide(project, python, offline=offline)
        except EnvdslError as error:
            without.append(error)
    if without and not found:
        raise EnvdslError.all(without)
    return found, without


def _check_machine(project: Project, graph: Graph, names: Sequence[str]) -> None:
    """A layer that was asked for by name and is for other machines is an error; otherwise it is left out."""
    for name in names:
        layer = project.layer(name)
        if layer.name in graph.skipped:
            raise EnvdslError.of(
                "app-other-machine",
                f"layer `{layer.name}` is declared for {', '.join(map(str, layer.platforms))}; this machine is "
                f"{project.platform}",
                span=layer.span,
                hint="add a platform of this machine to `platforms`, and lock again",
                exit_status=ExitStatus.ENVIRONMENT,
            )
    for name in graph.skipped:
        project.reporter.note(f"{name} is for other machines")


def fetcher(project: Project, layers: Iterable[LayerSpec], offline: bool, *, store: Store | None = None) -> Fetcher:
    """Puts wheels into the wheelhouse: from the project, from where locking saw them, else from the indexes.

    ``store``: the project's by default.
    """
    from envdsl.lock.candidates import Candidates, known_places
    from envdsl.realise.fetch import Fetcher

    places: dict[str, tuple[Path | str, ...]] = dict(project.seen_at)
    for layer in layers:
        lock = project.lock(layer.name)
        if lock is not None:
            places |= known_places(lock, project.config.lock_path(layer.name).parent)
    candidates = Candidates(locking.index_configuration(project), known=places, offline=offline)
    return Fetcher(store or project.store, candidates, reporter=project.reporter, offline=offline)


def _settle(project: Project, graph: Graph, realisation: Realisation, *, complete: bool) -> None:
    """Keep what was built from ``gc``, and move ``current``."""
    layout = project.store.layout
    collecting.register_roots(project, {name: layer.key for name, layer in graph.layers.items()}, complete=complete)
    default = realisation.layers.get(_default_base(project) or "")
    if default is not None:
        point(layout.current, default.path.relative_to(layout.root).as_posix())


def _default_base(project: Project) -> str | None:
    """The declared name of ``default-base``; the only base of a project that names none."""
    if project.config.default_base is not None:
        return project.layer(project.config.default_base).name
    bases = [layer.name for layer in project.spec.layers.values() if layer.kind is LayerKind.BASE]
    return bases[0] if len(bases) == 1 else None


def inputs(project: Project, layers: Iterable[LayerSpec]) -> Inputs:
    """What the answer of a build of ``layers`` depends on, for :func:`envdsl.quick.remember`."""
    config = project.config
    locks = [config.lock_path(layer.name).relative_to(config.root).as_posix() for layer in layers]
    wheels = [wheel.path for layer in layers for wheel in layer.wheels]
    directories = {config.locks, *(pattern.rpartition("/")[0] or "." for pattern in config.layers)}
    return Inputs(
        tuple(sorted({configuration.FILE_NAME, *project.spec.inputs, *locks, *wheels})),
        tuple(sorted(directories)),
        tuple(sorted({source.path for layer in layers for source in layer.sources})),
    )

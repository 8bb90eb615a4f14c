"""Realising layers: a plan of what is missing, then fetch, unpack, compile, link.

The plan is made from the top: a layer that is valid needs nothing below it. A wheel is unpacked as soon as it is there;
the other stages follow each other, and within each all cores work. The outcome of each step is registered at once, so
that a build that fails or is interrupted has lost the steps that were running, and nothing else.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from envdsl.errors import EnvdslError
from envdsl.graph.compile import Graph
from envdsl.graph.derivation import Bytecode, Derivation, Layer, SourceTree, Unpack, WheelFile
from envdsl.model.digest import store_hash
from envdsl.model.names import PythonVersion
from envdsl.realise.crew import Cancelled, Crew
from envdsl.realise.layer import FACTS
from envdsl.realise.realisation import Realisation, RealisedLayer
from envdsl.realise.steps import Steps
from envdsl.reporter import Reporter
from envdsl.store.failures import failures
from envdsl.store.store import Store

Interpreters: TypeAlias = Callable[[PythonVersion], Path]


class Fetch(Protocol):
    """Makes ``wheels`` valid paths of the store; ``ready`` may be called for each as soon as it is one."""

    def __call__(self, wheels: Sequence[WheelFile], *, ready: Callable[[WheelFile], None] = ...) -> None: ...


@dataclass(frozen=True)
class Plan:
    """What has to be done, each part in the order in which it begins: the largest first, bases before what stands
    on them. ``reused`` counts by kind what was asked for and is there."""

    wheels: tuple[WheelFile, ...] = ()
    unpacks: tuple[Unpack, ...] = ()
    bytecode: tuple[Bytecode, ...] = ()
    sources: tuple[SourceTree, ...] = ()
    layers: tuple[Layer, ...] = ()
    reused: Mapping[str, int] = field(default_factory=dict)

    @property
    def download(self) -> int:
        """Bytes of wheels to fetch."""
        return sum(wheel.size for wheel in self.wheels)

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.layers)


def plan(graph: Graph, names: Iterable[str], store: Store) -> Plan:
    """What is missing for the layers ``names`` of ``graph`` and for their bases. Changes nothing."""
    found: dict[str, bool] = {}
    missing: dict[str, list[Derivation]] = {}
    reused: dict[str, int] = {}

    def visit(derivation: Derivation) -> bool:
        """Whether the output is there; what it needs is looked at where it is not."""
        known = found.get(derivation.key)
        if known is not None:
            return known
        valid = found[derivation.key] = store.lookup(derivation.key) is not None
        if valid:
            reused[derivation.kind] = reused.get(derivation.kind, 0) + 1
            return True
        for needed in derivation.dependencies():
            visit(needed)
        missing.setdefault(derivation.kind, []).append(derivation)
        return False

    for name in names:
        layer = graph.layers[name]
        # A layer references its base, so a valid one has it; this is for a base that somebody removed by hand.
        if layer.base is not None:
            visit(layer.base)
        visit(layer)
    unpacks = [item for item in missing.get("unpack", []) if isinstance(item, Unpack)]
    bytecode = [item for item in missing.get("bytecode", []) if isinstance(item, Bytecode)]
    wheels = [item for item in missing.get("wheel", []) if isinstance(item, WheelFile)]
    return Plan(
        wheels=tuple(sorted(wheels, key=lambda item: (-item.size, item.key))),
        unpacks=tuple(sorted(unpacks, key=lambda item: (-item.wheel.size, item.key))),
        bytecode=tuple(sorted(bytecode, key=lambda item: (-item.unpack.wheel.size, item.key))),
        sources=tuple(item for item in missing.get("source", []) if isinstance(item, SourceTree)),
        layers=tuple(item for item in missing.get("layer", []) if isinstance(item, Layer)),
        reused=reused,
    )


def realise(
    graph: Graph,
    layers: Iterable[str],
    store: Store,
    *,
    fetch: Fetch,
    interpreters: Interpreters,
    project: Path,
    reporter: Reporter,
    jobs: int | None = None,
    locks: Mapping[str, bytes] | None = None,
) -> Realisation:
    """Make the layers named ``layers`` stand in ``store``, with the bases that they stand on.

    ``fetch`` verifies wheels and puts them into the wheelhouse; ``interpreters`` gives an executable for a feature
    release (asked only where bytecode is missing); ``project`` is what the paths of sources are relative to; ``jobs``
    is the number of threads and of compiling processes (default: the cores that this process may use); ``locks`` are
    the bytes of lock files by layer name, kept beside the layers for the record.

    Raises EnvdslError with everything that failed, each diagnostic naming the step and the derivation in its trail.
    Whatever was finished before stays valid; nothing unfinished does.
    """
    run = _Run(graph, sorted(set(layers)), store, project, reporter, jobs or len(os.sched_getaffinity(0)))
    with store.lease(), _without_collection():
        return run(fetch, interpreters, locks or {})


@contextmanager
def _without_collection() -> Iterator[None]:
    """Builds make very many small objects and hardly a cycle: looking for some costs a twentieth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Run:
    def __init__(
        self, graph: Graph, names: Sequence[str], store: Store, project: Path, reporter: Reporter, jobs: int
    ) -> None:
        self._graph = graph
        self._names = names
        self._store = store
        self._reporter = reporter
        self._jobs = jobs
        self._steps = Steps(store, project, reporter)
        self._seconds: dict[str, float] = {}

    def __call__(self, fetch: Fetch, interpreters: Interpreters, locks: Mapping[str, bytes]) -> Realisation:
        todo = plan(self._graph, self._names, self._store)
        executables = {python: interpreters(python) for python in sorted({item.python for item in todo.bytecode})}
        with self._stage("source"):
            for source in todo.sources:
                self._steps.source(source)
        if todo.unpacks:
            with self._stage("unpack"):
                self._unpack(todo, fetch)
        if todo.bytecode:
            with self._stage("bytecode"):
                self._compile(todo.bytecode, executables)
        with self._stage("layer"):
            for layer in todo.layers:
                self._steps.layer(layer, self._name_of(layer))
        self._record(todo, locks)
        built = {layer.key for layer in todo.layers}
        return Realisation(
            layers={name: self._realised(name, built) for name in self._names},
            built=dict(sorted(self._steps.built.items())),
            reused=dict(sorted(todo.reused.items())),
            seconds=self._seconds,
            warnings=tuple(self._steps.warnings),
        )

    def _unpack(self, todo: Plan, fetch: Fetch) -> None:
        # Before the threads: two that begin with different parts of a package whose parts import each other can both
        # be shown one that is half done (importlib breaks the deadlock that way).
        import installer  # noqa: F401

        import envdsl.realise.unpack  # noqa: F401

        crew = Crew(self._jobs)
        absent = {wheel.key: wheel for wheel in todo.wheels}
        waiting: dict[str, list[Unpack]] = {key: [] for key in absent}
        for unpack in todo.unpacks:
            if unpack.wheel.key in absent:
                waiting[unpack.wheel.key].append(unpack)
        with self._reporter.task("Unpacking", sum(unpack.wheel.size for unpack in todo.unpacks), "B") as task:

            def job(unpack: Unpack) -> None:
                task.describe(f"{unpack.name} {unpack.version}")
                self._steps.unpack(unpack, crew)
                task.advance(unpack.wheel.size)

            def ready(wheel: WheelFile) -> None:
                self._steps.fetched.add(wheel.key)
                for unpack in waiting.pop(wheel.key, ()):
                    crew.add(partial(job, unpack))

            def feed() -> None:
                with self._stage("fetch"):
                    fetch(todo.wheels, ready=ready)
                    for wheel in absent.values():
                        ready(wheel)

            there = [partial(job, unpack) for unpack in todo.unpacks if unpack.wheel.key not in absent]
            _raise_all(crew.run(there, feed=feed if absent else None))

    def _compile(self, missing: Sequence[Bytecode], executables: Mapping[PythonVersion, Path]) -> None:
        from concurrent.futures import ThreadPoolExecutor, wait

        from envdsl.realise.bytecode import Compiler

        with ExitStack() as stack:
            task = stack.enter_context(self._reporter.task("Compiling", len(missing)))
            # More distributions at a time than processes, so that these always find files waiting.
            pool = stack.enter_context(ThreadPoolExecutor(self._jobs + 2))
            compilers = {
                python: stack.enter_context(Compiler(executable, python, self._jobs))
                for python, executable in executables.items()
            }

            def job(bytecode: Bytecode) -> None:
                task.describe(f"{bytecode.unpack.name} {bytecode.unpack.version}")
                self._steps.bytecode(bytecode, compilers[bytecode.python])
                task.advance()

            futures = [pool.submit(job, bytecode) for bytecode in missing]
            try:
                wait(futures, return_when="FIRST_EXCEPTION")
            finally:
                for future in futures:
                    future.cancel()
            wait(futures)
            _raise_all([error for future in futures if not future.cancelled() and (error := future.exception())])

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = time.monotonic() - started

    def _name_of(self, layer: Layer) -> str:
        return next((name for name, item in self._graph.layers.items() if item.key == layer.key), str(layer.id))

    def _realised(self, name: str, built: set[str]) -> RealisedLayer:
        layer = self._graph.layers[name]
        place = self._steps.place(layer)
        path = self._store.lookup(layer.key)
        assert path is not None
        facts = json.loads((place / FACTS).read_bytes())
        return RealisedLayer(
            name=name,
            id=layer.id,
            key=layer.key,
            path=place,
            tree_hash=path.tree_hash,
            size=path.size,
            files=facts["files"],
            reused=layer.key not in built,
        )

    def _record(self, todo: Plan, locks: Mapping[str, bytes]) -> None:
        """Keep for the record how each layer that was built came to be: its derivations, its lock."""
        layout = self._store.layout
        records = {
            layout.drv / f"{store_hash(derivation.key)}.json": derivation.canonical()
            for layer in todo.layers
            for derivation in self._closure(layer)
        }
        records |= {
            layout.locks / f"{self._graph.layers[name].id}.toml": locks[name] for name in self._names if name in locks
        }
        missing = [(path, content) for path, content in records.items() if not _holds(path, content)]
        if not missing:
            return
        with failures("record what was built", layout.root):
            temporary = self._store.temporary("records")
            for path, content in missing:
                # Named by content: whoever is first has written the same.
                written = temporary / path.name
                written.write_bytes(content)
                written.replace(path)
            temporary.rmdir()

    def _closure(self, layer: Layer) -> Iterable[Derivation]:
        found: dict[str, Derivation] = {}
        pending: list[Derivation] = [layer]
        while pending:
            derivation = pending.pop()
            if derivation.key not in found:
                found[derivation.key] = derivation
                pending += derivation.dependencies()
        return found.values()


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except FileNotFoundError:
        return False


def _raise_all(errors: Sequence[BaseException]) -> None:
    """Raise what went wrong: all diagnostics in one error, or the first exception that is none of ours."""
    ours: dict[tuple[str, str], EnvdslError] = {}
    for error in errors:
        if isinstance(error, EnvdslError):
            ours.setdefault((error.code, str(error)), error)
        elif not isinstance(error, Cancelled):
            raise error
    if ours:
        raise EnvdslError.all(ours.values())
    if errors:
        raise errors[0]

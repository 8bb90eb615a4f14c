"""Building damaged paths of a store again, by the steps that built them.

What a path was made from says its derivation: that of the project at hand, else the record that the build left in
``drv/``, which is believed where the key that follows from it is the path's. Repairs are independent of each other: one
that fails (the index is out of reach, a source is not what it was) fails with what needs it, and the rest is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Derivation, Unpack, WheelFile
from envdsl.model.names import PythonVersion
from envdsl.realise.bytecode import Compiler
from envdsl.realise.crew import Crew
from envdsl.realise.records import Records
from envdsl.realise.scheduler import Fetch, Interpreters
from envdsl.realise.steps import Steps
from envdsl.reporter import Reporter
from envdsl.store.store import Store, StorePath

_STAGES = ("wheel", "source", "unpack", "bytecode", "layer")


def rebuild(
    store: Store,
    damaged: Iterable[StorePath],
    known: Mapping[str, Derivation],
    *,
    fetch: Fetch,
    interpreters: Interpreters,
    project: Path,
    jobs: int,
    reporter: Reporter,
) -> dict[str, EnvdslError]:
    """Build the paths ``damaged`` of ``store`` (which does not find them: :class:`envdsl.store.repair.Repair`), with
    whatever they need that is not there.

    ``known`` are derivations by key; the other arguments are those of :func:`envdsl.realise.scheduler.realise`.
    Returns what could not be built, by key: ``repair-no-record``, and whatever the steps raise.
    """
    records = Records(store, known)
    failures: dict[str, EnvdslError] = {}
    wanted: list[Derivation] = []
    for path in damaged:
        try:
            wanted.append(records.derivation(path))
        except EnvdslError as error:
            failures[path.key] = error
    run = _Rebuilding(store, fetch, interpreters, project, jobs, reporter, failures)
    with run:
        run.carry_out(wanted)
    return failures


class _Rebuilding:
    def __init__(
        self,
        store: Store,
        fetch: Fetch,
        interpreters: Interpreters,
        project: Path,
        jobs: int,
        reporter: Reporter,
        failures: dict[str, EnvdslError],
    ) -> None:
        self._store = store
        self._fetch = fetch
        self._interpreters = interpreters
        self._jobs = jobs
        self._reporter = reporter
        self._failures = failures
        self._steps = Steps(store, project, reporter)
        self._compilers: dict[PythonVersion, Compiler] = {}
        self._stack = ExitStack()

    def __enter__(self) -> None:
        self._stack.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def carry_out(self, wanted: Iterable[Derivation]) -> None:
        """Everything ``wanted``, each after what it depends on."""
        missing: dict[str, Derivation] = {}
        for derivation in wanted:
            self._collect(derivation, missing)
        wheels = [item for item in missing.values() if isinstance(item, WheelFile)]
        if wheels:
            self._fetch_all(wheels)
        steps: dict[str, Callable[[Any], None]] = {
            "source": self._steps.source,
            "unpack": lambda unpack: self._unpack(unpack),
            "bytecode": lambda bytecode: self._steps.bytecode(bytecode, self._compiler(bytecode.python)),
            "layer": lambda layer: self._steps.layer(layer, str(layer.id)),
        }
        with self._reporter.task("Repairing", len(missing) - len(wheels), "paths") as task:
            for kind in _STAGES[1:]:
                for derivation in missing.values():
                    if derivation.kind == kind:
                        self._attempt(derivation, steps[kind])
                        task.advance()

    def _collect(self, derivation: Derivation, missing: dict[str, Derivation]) -> None:
        """``derivation`` and what it needs that is not there; a layer's base before the layer."""
        if derivation.key in missing or self._store.lookup(derivation.key) is not None:
            return
        for needed in derivation.dependencies():
            self._collect(needed, missing)
        missing[derivation.key] = derivation

    def _fetch_all(self, wheels: list[WheelFile]) -> None:
        try:
            self._fetch(wheels)
        except EnvdslError as error:
            for wheel in wheels:
                if self._store.lookup(wheel.key) is None:
                    about = [item for item in error.diagnostics if item.details.get("filename") == wheel.filename]
                    self._failures[wheel.key] = EnvdslError(*(about or error.diagnostics))

    def _unpack(self, unpack: Unpack) -> None:
        import installer  # noqa: F401 (before the threads, as the scheduler does)

        crew = Crew(self._jobs)
        for error in crew.run([lambda: self._steps.unpack(unpack, crew)]):
            raise error

    def _compiler(self, python: PythonVersion) -> Compiler:
        if python not in self._compilers:
            compiler = Compiler(self._interpreters(python), python, self._jobs)
            self._compilers[python] = self._stack.enter_context(compiler)
        return self._compilers[python]

    def _attempt(self, derivation: Derivation, step: Callable[[Any], None]) -> None:
        for needed in derivation.dependencies():
            if needed.key in self._failures:
                self._failures[derivation.key] = self._failures[needed.key]
                return
        try:
            step(derivation)
        except EnvdslError as error:
            self._failures[derivation.key] = error

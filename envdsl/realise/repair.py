"""Building damaged paths of a store again, by the steps that built them.

What a path was made from says its derivation: that of the project at hand, else the record that the build left in
``drv/``, which is believed where the key that follows from it is the path's. Repairs are independent of each other: one
that fails (the index is out of reach, a source is not what it was) fails with what needs it, and the rest is done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Bytecode, Derivation, Layer, SourceTree, Unpack, WheelFile
from envdsl.model.digest import store_hash
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.realise.bytecode import Compiler
from envdsl.realise.crew import Crew
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
    records = _Records(store, known)
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


class _Records:
    """Derivations by key, from the project or from what builds wrote down."""

    def __init__(self, store: Store, known: Mapping[str, Derivation]) -> None:
        self._store = store
        self._known = dict(known)

    def derivation(self, path: StorePath) -> Derivation:
        """Raises EnvdslError ``repair-no-record``."""
        try:
            return self._find(path.key)
        except (LookupError, ValueError, TypeError, OSError) as error:
            raise EnvdslError.of(
                "repair-no-record",
                f"{path.path}: what it was made from is not on record ({error or type(error).__name__})",
                hint="run `envdsl verify --repair` in the project that it belongs to, with the envdsl that built it",
            ) from error

    def _find(self, key: str) -> Derivation:
        found = self._known.get(key)
        if found is None:
            form = json.loads((self._store.layout.drv / f"{store_hash(key)}.json").read_bytes())
            found = self._known[key] = self._read(key, form)
            if found.key != key:
                raise ValueError("the record in drv/ is another's, or of another version")
        return found

    def _read(self, key: str, form: Mapping[str, Any]) -> Derivation:
        match form["kind"]:
            case "wheel":
                return WheelFile(form["filename"], form["sha256"], form["size"])
            case "unpack":
                name, version = self._name_and_version(key)
                wheel = self._of(WheelFile, form["wheel"])
                return Unpack(name, version, wheel, bool(form.get("record-mismatch", False)))
            case "bytecode":
                return Bytecode(self._of(Unpack, form["unpack"]), _python(form["python"]))
            case "layer":
                return Layer(
                    layer_kind=LayerKind(form["layer"]),
                    python=_python(form["python"]),
                    platform=Platform.parse(form["platform"]),
                    unpacks=tuple(self._of(Unpack, item) for item in form["unpack"]),
                    bytecode=tuple(self._of(Bytecode, item) for item in form["bytecode"]),
                    sources=tuple(self._source(item) for item in form["sources"]),
                    base=self._of(Layer, form["base"]) if form["base"] is not None else None,
                    env=tuple(sorted(form["env"].items())),
                    collisions=tuple(form["collisions"]),
                )
            case kind:
                raise ValueError(f"a {kind} cannot be made without its project")

    def _of(self, kind: type[Any], key: str) -> Any:
        found = self._find(key)
        if not isinstance(found, kind):
            raise TypeError(f"a {found.kind} where a {kind.kind} belongs")
        return found

    def _source(self, key: str) -> SourceTree:
        """A source that is there need not be copied, so it may come without its directory."""
        known = self._known.get(key)
        if isinstance(known, SourceTree):
            return known
        form = json.loads((self._store.layout.drv / f"{store_hash(key)}.json").read_bytes())
        return SourceTree(form["tree"], f"of {key[:16]}…")

    def _name_and_version(self, key: str) -> tuple[str, str]:
        """``unpacked/<hash>-<name>-<version>``; no version has a hyphen (PEP 440)."""
        row = self._store.registry.by_key(key)
        if row is None:
            raise LookupError(f"{key} is not in the store")
        name, _, version = row.path.partition("/")[2].partition("-")[2].rpartition("-")
        return name, version


def _python(tag: str) -> PythonVersion:
    """``cp312`` as in a key."""
    return PythonVersion.parse(f"3.{tag.removeprefix('cp3')}")

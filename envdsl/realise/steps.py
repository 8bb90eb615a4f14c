"""Carrying out one derivation: build in a temporary directory, register, or leave nothing behind.

Each step asks for the derivation's lock first and looks again under it, so that of several processes that need the
same output one makes it and the others take it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import Diagnostic, EnvdslError, Note
from envdsl.graph.derivation import Bytecode, Derivation, Layer, SourceTree, Unpack
from envdsl.realise.collisions import Owner
from envdsl.realise.crew import Crew
from envdsl.realise.layer import Part, link_layer
from envdsl.reporter import Reporter
from envdsl.store.failures import failures
from envdsl.store.store import Store, StorePath
from envdsl.store.tree import remove_tree
from envdsl.store.treehash import Listing

if TYPE_CHECKING:
    from envdsl.realise.bytecode import Compiler

_DO = {"wheel": "fetch", "unpack": "unpack", "bytecode": "compile", "source": "copy", "layer": "link"}
_DOING = {"wheel": "fetching", "unpack": "unpacking", "bytecode": "compiling", "source": "copying", "layer": "linking"}


class Steps:
    """The steps of one run. Methods may be called from several threads; ``built`` counts what they made, by kind;
    ``fetched`` are the keys of wheels that were verified and put into the wheelhouse in this run."""

    def __init__(self, store: Store, project: Path, reporter: Reporter) -> None:
        self._store = store
        self._project = project
        self._reporter = reporter
        self._lock = threading.Lock()
        self._listings: dict[str, Listing] = {}
        self.built: dict[str, int] = {}
        self.fetched: set[str] = set()
        self.warnings: list[Diagnostic] = []

    def unpack(self, unpack: Unpack, crew: Crew) -> None:
        """Raises EnvdslError ``intake-…`` for what is wrong with the wheel."""
        from envdsl.realise.intake import open_wheel
        from envdsl.realise.unpack import Unpacking

        path = self._store.layout.unpacked_path(unpack.key, unpack.name, unpack.version)

        def build(temporary: Path) -> Listing:
            hashed = unpack.wheel.key in self.fetched
            with open_wheel(self.place(unpack.wheel), unpack, hashed=hashed) as intake:
                for oddity in intake.oddities:
                    self.warn(Diagnostic("intake-odd", f"{intake.filename}: {oddity}", severity="warning"))
                unpacking = Unpacking(intake, temporary)
                crew.share(unpacking.write, unpacking.batches)
                return unpacking.finish()

        # The wheel stays while the tree does: it is what a repair, or a build without a network, is made from.
        what = f"{unpack.name} {unpack.version}"
        self._make(unpack, what, path, build, crew=crew, references=[unpack.wheel.key])

    def bytecode(self, bytecode: Bytecode, compiler: Compiler) -> None:
        """Raises EnvdslError ``bytecode-interpreter``."""
        unpack = bytecode.unpack
        path = self._store.layout.bytecode_path(bytecode.key, unpack.name, unpack.version, bytecode.python.tag)

        def build(temporary: Path) -> Listing:
            compiled = compiler.compile(self.place(unpack), self.listing(unpack), temporary)
            for source in compiled.crashed:
                self.warn(
                    Diagnostic(
                        "bytecode-crash",
                        f"{unpack.name} {unpack.version}: {source} brings the compiler down and has no bytecode",
                        severity="warning",
                    )
                )
            return compiled.listing

        what = f"{unpack.name} {unpack.version} for Python {bytecode.python}"
        self._make(bytecode, what, path, build, references=[unpack.key])

    def source(self, source: SourceTree) -> None:
        """Raises EnvdslError ``source-…``."""
        from envdsl.realise.source import copy_source

        def build(temporary: Path) -> Listing:
            return copy_source(self._project / source.path, source, temporary)

        self._make(source, source.path, self._store.layout.source_path(source.key), build)

    def layer(self, layer: Layer, name: str) -> None:
        """Raises EnvdslError ``layer-collision…``."""
        compiled = {bytecode.unpack.key: bytecode for bytecode in layer.bytecode}

        def build(temporary: Path) -> Listing:
            parts = []
            for unpack in layer.unpacks:
                bytecode = compiled.get(unpack.key)
                result = (self.place(bytecode), self.listing(bytecode)) if bytecode else None
                parts.append(Part(unpack, self.place(unpack), self.listing(unpack), result))
            below = self._below(layer.base) if layer.base else None
            farm = link_layer(layer, parts, temporary, below=below, name=name)
            for warning in farm.warnings:
                self.warn(warning)
            return farm.listing

        needed: list[Derivation] = [*layer.unpacks, *layer.bytecode, *layer.sources]
        if layer.base is not None:
            needed.append(layer.base)
        path = self._store.layout.layer_path(layer.id)
        self._make(layer, f"{name} ({layer.id})", path, build, references=[item.key for item in needed])

    def place(self, derivation: Derivation) -> Path:
        """Where the output of a realised derivation stands."""
        path = self._store.lookup(derivation.key)
        if path is None:
            raise EnvdslError.of(
                "realise-lost",
                f"the {derivation.kind} {derivation.key} vanished from the store while it was needed",
                hint="run the command again",
            )
        return self._store.layout.absolute(path.path)

    def listing(self, derivation: Derivation) -> Listing:
        """What is in it."""
        known = self._listings.get(derivation.key)
        return known if known is not None else self._store.listing(derivation.key)

    def warn(self, diagnostic: Diagnostic) -> None:
        """Kept for whoever asked for the build to show; they are part of its outcome."""
        with self._lock:
            self.warnings.append(diagnostic)

    def _below(self, base: Layer) -> Owner:
        def name_of(path: str) -> str:
            for unpack in sorted(base.unpacks, key=lambda unpack: unpack.name):  # the first has what several bring
                if any(entry.path == path for entry in self.listing(unpack)):
                    return unpack.name
            return str(base.id)

        return Owner(str(base.id), self.place(base), self.listing(base), name_of)

    def _make(
        self,
        derivation: Derivation,
        what: str,
        path: str,
        build: Callable[[Path], Listing],
        *,
        references: Sequence[str] = (),
        crew: Crew | None = None,
    ) -> StorePath:
        with located(derivation, what), self._exclusive(derivation, what, crew):
            present = self._store.lookup(derivation.key)
            if present is not None:
                return present
            temporary = self._store.temporary(f"{derivation.kind}-{what.split()[0].replace('/', '-')}")
            try:
                with failures(f"{_DO[derivation.kind]} {what}", self._store.layout.root):
                    listing = build(temporary)
                registered = self._store.register(
                    temporary,
                    path,
                    key=derivation.key,
                    kind=derivation.kind,
                    listing=listing,
                    references=references,
                    sealed=True,
                )
            except BaseException:
                remove_tree(temporary)
                raise
            with self._lock:
                self._listings[derivation.key] = listing
                self.built[derivation.kind] = self.built.get(derivation.kind, 0) + 1
            return registered

    @contextmanager
    def _exclusive(self, derivation: Derivation, what: str, crew: Crew | None) -> Iterator[None]:
        def waiting() -> None:
            self._reporter.note(f"another process is {_DOING[derivation.kind]} {what}; waiting for it")
            if crew is not None:
                crew.blocked()

        with self._store.building(derivation.key, waiting=waiting):
            if crew is not None:
                crew.unblocked()
            yield


@contextmanager
def located(derivation: Derivation, what: str) -> Iterator[None]:
    """Whatever fails in the block says which step of which derivation it was."""
    try:
        yield
    except EnvdslError as error:
        note = Note(f"while {_DOING[derivation.kind]} {what} ({derivation.kind} {derivation.key[:16]}…)")
        facts = {"step": derivation.kind, "derivation": derivation.key}
        raise EnvdslError(
            *(
                replace(diagnostic, trail=(*diagnostic.trail, note), details={**diagnostic.details, **facts})
                for diagnostic in error.diagnostics
            )
        ) from error

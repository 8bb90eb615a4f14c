"""A project looked into from outside: what an editor or a prompt asks about it, however much of it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.builtins import GLOBALS
from envdsl.evaluate.declarations import Declarations, Declared
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import Files
from envdsl.evaluate.findings import Findings
from envdsl.evaluate.interpreter import Compiler
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.modules import Module, Parse, load, parse
from envdsl.evaluate.process import evaluating
from envdsl.evaluate.reader import ProjectReader
from envdsl.evaluate.scope import Scope
from envdsl.evaluate.spec import LayerSpec
from envdsl.evaluate.validate import validate
from envdsl.evaluate.values import Slot, Value
from envdsl.model.names import DEFAULT_PLATFORMS, Platform
from envdsl.model.span import Source
from envdsl.syntax.parser import parse_expression


class Exploration:
    """One evaluation of the files of a project that stays open: slots of it can be evaluated later.

    ``specs`` are the layers that are valid, ``diagnostics`` all that is wrong, ``inputs`` the files that were read with
    their digests. Each later question has a budget of its own. ``parse`` gives the tree of a file, so that whoever has
    it already need not parse again. Not for several threads at once.
    """

    def __init__(
        self,
        files: Sequence[str],
        reader: ProjectReader,
        *,
        limits: Limits | None = None,
        default_platforms: Sequence[Platform] = DEFAULT_PLATFORMS,
        trace: Callable[[str], None] = lambda message: None,
        parse: Parse = parse,
    ) -> None:
        self._limits = limits or Limits()
        recorded = Files(reader, self._limits)
        findings = Findings()
        self._machine = Machine(self._limits, recorded, trace)
        self._declarations = Declarations(self._machine, findings)
        self._modules: dict[str, Module] = {}
        self.specs: Mapping[str, LayerSpec] = {}
        try:
            with evaluating(self._limits):
                modules = load(files, recorded, findings, parse)
                self._modules = {module.path: module for module in modules}
                for module in modules:
                    self._declarations.add(module)
                self.specs = validate(
                    self._declarations.layers,
                    self._machine,
                    findings,
                    default_platforms,
                    complete=self._declarations.complete,
                )
        except EvaluationError as failure:
            findings.failed(failure)
        self.diagnostics: tuple[Diagnostic, ...] = findings.sorted()
        self.inputs: Mapping[str, str] = dict(sorted(recorded.inputs.items()))

    @property
    def layers(self) -> Mapping[str, Declared]:
        """All layers as they were declared, also those that are not valid."""
        return self._declarations.layers

    def names(self, path: str) -> Mapping[str, Slot]:
        """The names that the file at ``path`` defines for all of itself; empty where it could not be read."""
        module = self._modules.get(path)
        return self._declarations.namespace(module).slots if module is not None else {}

    def evaluate(self, slot: Slot) -> Value:
        """The value of a slot, evaluated through all lists and sets. Raises EnvdslError."""
        with self._question():
            return self._machine.deep(slot)

    def head(self, slot: Slot) -> Value:
        """The value of a slot, evaluated as far as its type shows. Raises EnvdslError."""
        with self._question():
            return self._machine.force(slot)

    def expression(self, source: Source, names: Mapping[str, Slot], directory: str = "") -> Slot:
        """The slot of an expression that sees ``names``; paths in it start at ``directory``.

        Raises EnvdslError for what is wrong in its text; evaluation waits for :meth:`evaluate`.
        """
        tree = parse_expression(source)
        failures: list[EvaluationError] = []
        slot: Slot = None
        with self._question():
            compiler = Compiler(self._machine, directory, failures.append)
            make = compiler.maker(tree, Scope(names, Scope((), constants=GLOBALS)))
            slot = make([[None], *names.values()])
        if failures:
            raise EnvdslError(*(failure.diagnostic(tree.span) for failure in failures))
        return slot

    @contextmanager
    def _question(self) -> Iterator[None]:
        machine = self._machine
        machine.steps, machine.memory, machine.depth = self._limits.steps, self._limits.memory, 0
        try:
            with evaluating(self._limits):
                yield
        except EvaluationError as failure:
            failure.release()
            raise failure.error() from None

"""From parsed modules to declared layers: ``let``, ``import``, ``for``, and the layers' names and attributes.

Attributes stay unevaluated here (validate.py evaluates each by itself), so that one that fails hides none
of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from envdsl.errors import Note
from envdsl.evaluate.bindings import Assigned, Plan
from envdsl.evaluate.builtins import GLOBALS
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.findings import Findings
from envdsl.evaluate.functions import Maker
from envdsl.evaluate.interpreter import Compiler
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.modules import Module
from envdsl.evaluate.operators import Code
from envdsl.evaluate.scope import Scope
from envdsl.evaluate.values import Frame, Slot, Thunk, Value, describe
from envdsl.model.names import LAYER_NAME, LayerKind
from envdsl.model.span import Span
from envdsl.syntax import tree

Run: TypeAlias = Callable[[Frame, tuple[Note, ...]], object]


@dataclass(frozen=True, slots=True, eq=False)
class Base:
    """What stands after ``on``: a layer's name, and the file to look for it in (None: any)."""

    name: str
    file: str | None
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """A layer as declared: its attributes' slots, and where each name and value stands."""

    name: str
    kind: LayerKind
    base: Base | None
    attributes: Mapping[str, Slot]
    names: Mapping[str, Span]
    values: Mapping[str, Span]
    span: Span
    file: str
    trail: tuple[Note, ...]


@dataclass(slots=True, eq=False)
class Namespace:
    """What an imported file offers under its alias: its ``let`` names, its own imports' aliases, its layers."""

    file: str
    whole: bool
    slots: dict[str, Slot] = field(default_factory=dict)
    aliases: dict[str, Namespace] = field(default_factory=dict)


Aliases: TypeAlias = Mapping[str, Namespace]


class Declarations:
    """Evaluates the declarations of modules, which come after the modules that they import."""

    def __init__(self, machine: Machine, findings: Findings) -> None:
        self._machine = machine
        self._findings = findings
        self._namespaces: dict[Module, Namespace] = {}
        self.layers: dict[str, Declared] = {}
        #: False once something could not be evaluated that may have declared layers.
        self.complete = True

    def add(self, module: Module) -> None:
        """Evaluate one module. Raises EvaluationError only when the budget of the evaluation is gone."""
        namespace = self._namespaces[module] = Namespace(module.path, module.whole)
        if module.parsed is None:
            self.complete = False
            return
        compiler = Compiler(self._machine, module.directory, self._findings.failed)
        block = _Block(self, compiler, module)
        block.compile(module.parsed.declarations, Scope((), constants=GLOBALS), {}, None, namespace)([None], ())

    def namespace(self, module: Module) -> Namespace:
        """That of an imported module; an empty one for what could not be read."""
        return self._namespaces.get(module) or Namespace(module.path, False)

    def declare(self, layer: Declared) -> None:
        first = self.layers.get(layer.name)
        if first is not None:
            failure = EvaluationError(
                "eval-duplicate-layer",
                f"two layers are called `{layer.name}`",
                span=layer.span,
                hint="names are unique in a project; rename one of the two",
            )
            failure.note(Note("the first one is declared here", first.span))
            for note in layer.trail:
                failure.note(note)
            self._findings.failed(failure)
            return
        if len(self.layers) >= self._machine.limits.layers:
            raise EvaluationError(
                "eval-too-large",
                f"the project declares more than {self._machine.limits.layers:,} layers",
                span=layer.span,
                fatal=True,
            )
        self.layers[layer.name] = layer

    def attempt(self, code: Code, frame: Frame, span: Span, trail: Iterable[Note]) -> tuple[bool, Value]:
        """Whether ``code`` could be evaluated, and its value."""
        with self._findings.attempt(self._machine, span, *trail):
            return True, code(frame)
        self.complete = False
        return False, None

    def refuse(self, failure: EvaluationError, trail: Iterable[Note]) -> None:
        for note in trail:
            failure.note(note)
        self._findings.failed(failure)
        self.complete = False


class _Block:
    """The declarations between two braces, or of a whole file, compiled once and run for each turn of a loop."""

    def __init__(self, declarations: Declarations, compiler: Compiler, module: Module) -> None:
        self._declarations = declarations
        self._machine = declarations._machine
        self._findings = declarations._findings
        self._compiler = compiler
        self._module = module

    def compile(
        self,
        declarations: tuple[tree.Declaration, ...],
        outer: Scope,
        aliases: Aliases,
        variable: tree.Name | None,
        namespace: Namespace | None,
    ) -> Run:
        """``variable`` is a loop's, whose value comes second in the frame; ``namespace`` receives a file's names."""
        names = {} if variable is None else {variable.text: variable.span}
        named: list[tree.Import | tree.LetDeclaration] = []
        for declaration in declarations:
            if isinstance(declaration, (tree.Import, tree.LetDeclaration)):
                name = declaration.alias if isinstance(declaration, tree.Import) else declaration.name
                if name.text in names:
                    self._findings.failed(_twice(name, names[name.text]))
                else:
                    names[name.text] = name.span
                    named.append(declaration)
        scope = Scope(names, outer)
        own_aliases = {
            declaration.alias.text: self._declarations.namespace(self._module.imports[declaration])
            for declaration in named
            if isinstance(declaration, tree.Import)
        }
        inner = {**aliases, **own_aliases}
        makers = [self._named(declaration, scope, own_aliases) for declaration in named]
        runs = [
            self._layer(declaration, scope, inner)
            if isinstance(declaration, tree.LayerDeclaration)
            else self._loop(declaration, scope, inner)
            for declaration in declarations
            if isinstance(declaration, (tree.LayerDeclaration, tree.For))
        ]
        first = 1 if variable is None else 2

        def run(frame: Frame, trail: tuple[Note, ...]) -> None:
            for make in makers:
                frame.append(make(frame))
            if namespace is not None:
                namespace.slots.update(zip(list(names), frame[first:], strict=True))
                namespace.aliases.update(own_aliases)
            for inner_run in runs:
                inner_run(frame, trail)

        return run

    def _named(self, declaration: tree.Import | tree.LetDeclaration, scope: Scope, aliases: Aliases) -> Maker:
        if isinstance(declaration, tree.Import):
            namespace = aliases[declaration.alias.text]
            if namespace.whole:
                return lambda frame: namespace.slots
            return lambda frame: Thunk(_unknown, frame)
        name = declaration.name
        origin = Note(f"while evaluating `{name.text}`", name.span)
        return self._compiler.maker(declaration.value, scope, growing=True, name=name.text, origin=origin)

    def _loop(self, loop: tree.For, scope: Scope, aliases: Aliases) -> Run:
        items = self._compiler.expression(loop.items, scope)
        run = self.compile(loop.declarations, scope, aliases, loop.variable, None)
        machine = self._machine

        def run_all(frame: Frame, trail: tuple[Note, ...]) -> None:
            known, value = self._declarations.attempt(items, frame, loop.items.span, trail)
            if known and not isinstance(value, list):
                self._declarations.refuse(
                    EvaluationError(
                        "eval-type", f"a loop needs a list, but got {describe(value)}", span=loop.items.span
                    ),
                    trail,
                )
            if not isinstance(value, list):
                return
            for slot in value:
                machine.charge(1)
                shown = f" {describe(slot)}" if isinstance(slot, (str, int)) else " one of the list"
                turn = Note(f"in the turn of the loop where `{loop.variable.text}` is{shown}", loop.variable.span)
                run([frame, slot], (turn, *trail))

        return run_all

    def _layer(self, layer: tree.LayerDeclaration, scope: Scope, aliases: Aliases) -> Run:
        compiler = self._compiler
        name_code = None if isinstance(layer.name, tree.Name) else compiler.expression(layer.name.expression, scope)
        static_name = layer.name.text if isinstance(layer.name, tree.Name) else ""
        find_base = None if layer.on is None else self._base(layer.on, scope, aliases)
        plan = compiler.plan_of(layer.body)
        code = compiler.plan(plan, scope)
        names = {name: entry.span for name, entry in plan.static.items()}
        values = {name: _value_span(plan, name) for name in plan.static}
        span = layer.name.span

        def run(frame: Frame, trail: tuple[Note, ...]) -> None:
            name: Value = static_name
            if name_code is not None:
                known, name = self._declarations.attempt(name_code, frame, span, trail)
                if not known:
                    return
            if not isinstance(name, str) or LAYER_NAME.fullmatch(name) is None:
                self._declarations.refuse(_bad_name(name, span), trail)
                return
            inside = Note(f"in the layer `{name}`", span)
            base = None if find_base is None else find_base(frame, (inside, *trail))
            known, attributes = self._declarations.attempt(code, frame, layer.body.span, (inside, *trail))
            self._declarations.declare(
                Declared(
                    str(name),
                    layer.kind,
                    base,
                    attributes if isinstance(attributes, dict) else {},
                    names,
                    values,
                    span,
                    self._module.path,
                    (inside, *trail),
                )
            )

        return run

    def _base(
        self, on: tuple[tree.AttributeName, ...], scope: Scope, aliases: Aliases
    ) -> Callable[[Frame, tuple[Note, ...]], Base | None]:
        last = on[-1]
        if isinstance(last, tree.DynamicName):
            code = self._compiler.expression(last.expression, scope)

            def computed(frame: Frame, trail: tuple[Note, ...]) -> Base | None:
                known, name = self._declarations.attempt(code, frame, last.span, trail)
                return Base(str(name), None, last.span) if known and isinstance(name, str) else None

            return computed
        base: Base | None = Base(last.text, None, last.span)
        for part in on[:-1]:
            text = part.text if isinstance(part, tree.Name) else ""
            namespace = aliases.get(text)
            if namespace is None:
                self._findings.failed(
                    EvaluationError("eval-undefined-name", f"no import is called `{text}`", span=part.span)
                )
            if namespace is None or not namespace.whole:
                base = None
                break
            base = Base(last.text, namespace.file, last.span)
            aliases = namespace.aliases
        return lambda frame, trail: base


def _value_span(plan: Plan, name: str) -> Span:
    entry = plan.static[name]
    return entry.value.span if isinstance(entry, Assigned) else entry.span


def _unknown(frame: Frame) -> Value:
    """Stands for what a file offers that could not be read, which has been reported."""
    raise EvaluationError("eval-import", "the imported file could not be read", reported=True)


def _twice(name: tree.Name, first: Span) -> EvaluationError:
    failure = EvaluationError(
        "eval-duplicate-name", f"`{name.text}` is defined twice", span=name.span, hint="remove or rename one of the two"
    )
    failure.note(Note("first defined here", first))
    return failure


def _bad_name(name: Value, span: Span) -> EvaluationError:
    return EvaluationError(
        "eval-layer-name",
        f"a layer cannot be called {describe(name)}",
        span=span,
        hint="a name has up to 100 letters, digits, `-` and `_`, and begins with a letter or digit",
    )

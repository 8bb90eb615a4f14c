"""From syntax tree to closures.

Each expression is compiled once into a Python function ``code(frame) -> value`` that captures its parts
and the machine; evaluating it is calling it. Where laziness asks for it, a *maker* ``make(frame) -> slot``
builds a thunk instead, or hands on a slot that exists already. Names are resolved here (scope.py), so that
an unknown one is reported even in code that never runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from envdsl.errors import Note
from envdsl.evaluate.bindings import Assigned, Entry, Inherited, Plan, plan_of
from envdsl.evaluate.coerce import interpolated
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import resolve
from envdsl.evaluate.functions import Maker, apply, pattern_binder, pattern_names
from envdsl.evaluate.machine import Machine, expected
from envdsl.evaluate.operators import Code, binary, unary
from envdsl.evaluate.scope import Constant, Local, Scope
from envdsl.evaluate.selection import Part, attribute, has_attribute, select, select_or
from envdsl.evaluate.values import (
    Closure,
    Frame,
    PathValue,
    Procedure,
    Slot,
    Text,
    Thunk,
    Value,
    did_you_mean,
)
from envdsl.model.span import Span
from envdsl.syntax import tree


class Compiler:
    """Compiles the expressions of one file; what is wrong in the text itself goes to ``report``.

    ``directory`` is the file's, relative to the project's root: path literals start from it.
    """

    def __init__(self, machine: Machine, directory: str, report: Callable[[EvaluationError], None]) -> None:
        self._machine = machine
        self._directory = directory
        self._report = report

    # -- expressions -------------------------------------------------------------------------------

    def expression(self, node: tree.Expression, scope: Scope) -> Code:
        """The code of ``node``, whose value is never a thunk."""
        match node:
            case tree.Integer():
                return _constant(node.value)
            case tree.String():
                return self._string(node, scope)
            case tree.PathLiteral():
                return self._path(node)
            case tree.Variable():
                return self._variable(node.name, node.span, scope)
            case tree.Select(default=None):
                return select(self._machine, node, self.expression(node.target, scope), self._parts(node.path, scope))
            case tree.Select(default=default):
                assert default is not None
                parts = self._parts(node.path, scope)
                return select_or(
                    self._machine, self.expression(node.target, scope), parts, self.expression(default, scope)
                )
            case tree.HasAttribute():
                return has_attribute(self._machine, self.expression(node.target, scope), self._parts(node.path, scope))
            case tree.Apply():
                return self._apply(node, scope)
            case tree.Lambda():
                return self._lambda(node, scope, None)
            case tree.AttributeSet():
                return self.plan(self.plan_of(node), scope)
            case tree.ListLiteral():
                return self._list(node, scope)
            case tree.Let():
                return self._let(node, scope)
            case tree.If():
                return self._if(node, scope)
            case tree.Assert():
                return self._assert(node, scope)
            case tree.Unary():
                return unary(node, self.expression(node.operand, scope))
            case tree.Binary():
                left = self.expression(node.left, scope)
                return binary(self._machine, node, left, self.expression(node.right, scope))

    def maker(
        self,
        node: tree.Expression,
        scope: Scope,
        *,
        growing: bool = False,
        name: str | None = None,
        origin: Note | None = None,
    ) -> Maker:
        """Makes the slot of ``node`` without evaluating it.

        ``growing`` says that the frame is still being filled (``let``, ``rec``), so that its slots can't be
        handed on yet. ``name`` is what a function is called in messages, ``origin`` the trail's note.
        """
        match node:
            case tree.Integer():
                return _constant(node.value)
            case tree.Lambda():
                return self._lambda(node, scope, name)
            case tree.String() if all(isinstance(part, str) for part in node.parts):
                return self._string(node, scope)
            case tree.Variable() if not growing:
                return self._slot(node.name, node.span, scope)
            case tree.ListLiteral(items=()):
                return lambda frame: []
        code = self.expression(node, scope)
        return lambda frame: Thunk(code, frame, origin)

    def _string(self, node: tree.String, scope: Scope) -> Code:
        span = node.span
        if all(isinstance(part, str) for part in node.parts):
            return _constant(Text.at("".join(part for part in node.parts if isinstance(part, str)), span))
        machine = self._machine
        parts: list[tuple[str | Code, Span]] = [
            (part, span) if isinstance(part, str) else (self.expression(part, scope), part.span) for part in node.parts
        ]

        def run(frame: Frame) -> Value:
            pieces = []
            for part, place in parts:
                if isinstance(part, str):
                    pieces.append(part)
                    continue
                value = part(frame)
                if not isinstance(value, str):
                    try:
                        value = interpolated(machine, value)
                    except EvaluationError as failure:
                        raise failure.at(place) from None
                pieces.append(value)
            return Text.at(machine.sized_string("".join(pieces)), span)

        return run

    def _path(self, node: tree.PathLiteral) -> Code:
        try:
            return _constant(PathValue(resolve(self._directory, node.text)))
        except EvaluationError as failure:
            return _raising(failure.at(node.span))

    # -- names -------------------------------------------------------------------------------------

    def _slot(self, name: str, span: Span, scope: Scope, *, in_list: bool = False) -> Maker:
        """Makes the slot that a variable holds."""
        match scope.lookup(name):
            case Constant(value):
                return _constant(value)
            case Local(depth, index):
                return _reach(depth, index)
            case None:
                self._report(undefined(name, span, scope, in_list=in_list))
                poison = _raising(EvaluationError("eval-undefined-name", name, reported=True))
                return lambda frame: Thunk(poison, frame)

    def _variable(self, name: str, span: Span, scope: Scope) -> Code:
        found = scope.lookup(name)
        if isinstance(found, Constant):
            return _constant(found.value)
        force = self._machine.force
        if found == Local(0, 1):  # the parameter of a plain function: the most frequent of all

            def parameter(frame: Frame) -> Value:
                slot: Slot = frame[1]
                if type(slot) is not Thunk:
                    return slot
                try:
                    return force(slot)
                except EvaluationError as failure:
                    raise failure.at(span) from None

            return parameter
        reach = self._slot(name, span, scope)

        def run(frame: Frame) -> Value:
            slot = reach(frame)
            if type(slot) is not Thunk:
                return slot
            try:
                return force(slot)
            except EvaluationError as failure:
                raise failure.at(span) from None

        return run

    # -- sets --------------------------------------------------------------------------------------

    def plan_of(self, node: tree.AttributeSet) -> Plan:
        return plan_of(node.bindings, node.span, recursive=node.recursive, report=self._report)

    def plan(self, plan: Plan, scope: Scope) -> Code:
        """The code of a set."""
        machine = self._machine
        inner = Scope(plan.static, scope) if plan.recursive else scope
        makers = [(name, *self._entry(name, entry, scope, inner)) for name, entry in plan.static.items()]
        computed = [
            (self.expression(name, inner), name.span, self._entry("…", entry, scope, inner)[0])
            for name, entry in plan.dynamic
        ]
        count = len(makers)

        def add_computed(result: dict[str, Slot], frame: Frame) -> Value:
            for code, span, make in computed:
                name = code(frame)
                if name is None:
                    continue
                if not isinstance(name, str):
                    raise expected("a string as the name of an attribute", name, span=span)
                if name in result:
                    raise EvaluationError("eval-duplicate-attribute", f"`{name}` is defined twice", span=span)
                result[str(name)] = make(frame)
            return result

        def run(frame: Frame) -> Value:
            machine.allocate(64 * count)
            result = {name: make(frame) for name, make, _ in makers}
            return add_computed(result, frame) if computed else result

        def run_recursive(frame: Frame) -> Value:
            machine.allocate(72 * count)
            own: Frame = [frame]
            for _, make, outside in makers:
                own.append(make(frame if outside else own))
            result = dict(zip(plan.static, own[1:], strict=True))
            return add_computed(result, own) if computed else result

        return run_recursive if plan.recursive else run

    def _entry(self, name: str, entry: Entry, outer: Scope, inner: Scope) -> tuple[Maker, bool]:
        """The maker of an attribute, and whether it is to be given the outer frame (a plain ``inherit`` is)."""
        growing = inner is not outer
        note = Note(f"while evaluating `{name}`", entry.span)
        match entry:
            case Assigned(value=value):
                return self.maker(value, inner, growing=growing, name=name, origin=note), False
            case Inherited(name=wanted, source=None, span=span):
                return self._slot(wanted, span, outer), True
            case Inherited(name=wanted, source=source, span=span):
                assert source is not None
                code = attribute(self._machine, self.expression(source, inner), source.span, wanted, span)
                return lambda frame: Thunk(code, frame, note), False
            case Plan():
                made = self.plan(entry, inner)
                return lambda frame: Thunk(made, frame, note), False

    def _let(self, node: tree.Let, scope: Scope) -> Code:
        plan = plan_of(node.bindings, node.span, recursive=True, report=self._report)
        inner = Scope(plan.static, scope)
        makers = [self._entry(name, entry, scope, inner) for name, entry in plan.static.items()]
        body = self.expression(node.body, inner)

        def run(frame: Frame) -> Value:
            own: Frame = [frame]
            for make, outside in makers:
                own.append(make(frame if outside else own))
            return body(own)

        return run

    def _parts(self, path: Iterable[tree.AttributeName], scope: Scope) -> list[Part]:
        return [
            (part.text if isinstance(part, tree.Name) else self.expression(part.expression, scope), part.span)
            for part in path
        ]

    # -- functions ---------------------------------------------------------------------------------

    def _lambda(self, node: tree.Lambda, scope: Scope, name: str | None) -> Callable[[Frame], Closure]:
        parameter = node.parameter
        if isinstance(parameter, tree.Name):
            body = self.expression(node.body, Scope((parameter.text,), scope))
            procedure = Procedure(body, None, None, name)
        else:
            inner = Scope(pattern_names(parameter), scope)
            defaults = [
                None if field.default is None else self.maker(field.default, inner, growing=True)
                for field in parameter.fields
            ]
            bind = pattern_binder(self._machine, node, parameter, defaults, name)
            formals = {field.name: field.default is not None for field in parameter.fields}
            procedure = Procedure(self.expression(node.body, inner), bind, formals, name)
        return lambda frame: Closure(procedure, frame)

    def _apply(self, node: tree.Apply, scope: Scope) -> Code:
        makers: list[Maker] = []
        head: tree.Expression = node
        while isinstance(head, tree.Apply):
            makers.append(self.maker(head.argument, scope))
            head = head.function
        makers.reverse()
        return apply(self._machine, self.expression(head, scope), makers, node.span)

    # -- the rest ----------------------------------------------------------------------------------

    def _list(self, node: tree.ListLiteral, scope: Scope) -> Code:
        machine = self._machine
        makers = [
            self._slot(item.name, item.span, scope, in_list=True)
            if isinstance(item, tree.Variable)
            else self.maker(item, scope)
            for item in node.items
        ]
        size = 8 * len(makers)

        def run(frame: Frame) -> Value:
            machine.allocate(size)
            return [make(frame) for make in makers]

        return run

    def _if(self, node: tree.If, scope: Scope) -> Code:
        condition = self.expression(node.condition, scope)
        then = self.expression(node.then, scope)
        otherwise = self.expression(node.otherwise, scope)

        def run(frame: Frame) -> Value:
            value = condition(frame)
            if value is True:
                return then(frame)
            if value is False:
                return otherwise(frame)
            raise expected("a boolean", value, span=node.condition.span)

        return run

    def _assert(self, node: tree.Assert, scope: Scope) -> Code:
        condition = self.expression(node.condition, scope)
        body = self.expression(node.body, scope)

        def run(frame: Frame) -> Value:
            value = condition(frame)
            if value is True:
                return body(frame)
            span = node.condition.span
            if value is not False:
                raise expected("a boolean", value, span=span)
            text = " ".join(span.source.text[span.start : span.end][:200].split())
            raise EvaluationError("eval-assertion", f"assertion failed: {text}", span=span, catchable=True)

        return run


def _constant(value: Value) -> Code:
    return lambda frame: value


def _raising(failure: EvaluationError) -> Code:
    def run(frame: Frame) -> Value:
        # A fresh one each time: an error gathers its own trail.
        raise EvaluationError(
            failure.code, failure.message, span=failure.span, hint=failure.hint, reported=failure.reported
        )

    return run


def _reach(depth: int, index: int) -> Maker:
    if depth == 0:
        return lambda frame: frame[index]
    if depth == 1:
        return lambda frame: frame[0][index]
    if depth == 2:
        return lambda frame: frame[0][0][index]

    def climb(frame: Frame) -> Slot:
        for _ in range(depth):
            frame = frame[0]
        slot: Slot = frame[index]
        return slot

    return climb


def undefined(name: str, span: Span, scope: Scope, *, in_list: bool = False) -> EvaluationError:
    """``in_list``: it is an item of a list, most of which hold strings."""
    hint = did_you_mean(name, set(scope.visible()))
    if in_list and hint is None:
        hint = f'if it is the name of a package or the like, quote it: "{name}"'
    return EvaluationError("eval-undefined-name", f"the name `{name}` is not defined", span=span, hint=hint)

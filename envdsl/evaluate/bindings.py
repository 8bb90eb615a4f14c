"""Attribute merging: from the bindings of a set or ``let``, as written, to one entry a name.

``{ a.b = 1; a.c = 2; }`` and ``{ a = { b = 1; }; a.c = 2; }`` both mean ``{ a = { b = 1; c = 2; }; }``. As in
Nix this is a matter of syntax: only sets that are written out merge, and names that are computed
(``${e}``) do not take part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from envdsl.errors import Note
from envdsl.evaluate.failure import EvaluationError
from envdsl.model.span import Span
from envdsl.syntax import tree


@dataclass(slots=True, eq=False)
class Assigned:
    """``name = value;``; the span is the name's."""

    value: tree.Expression
    span: Span


@dataclass(slots=True, eq=False)
class Inherited:
    """``inherit name;`` or ``inherit (source) name;``"""

    name: str
    source: tree.Expression | None
    span: Span


@dataclass(slots=True, eq=False)
class Plan:
    """A set to be made: its static names, then the computed ones in the order of the file."""

    span: Span
    recursive: bool = False
    static: dict[str, Entry] = field(default_factory=dict)
    dynamic: list[tuple[tree.Expression, Entry]] = field(default_factory=list)


Entry: TypeAlias = Assigned | Inherited | Plan
Report: TypeAlias = Callable[[EvaluationError], None]


def plan_of(bindings: Iterable[tree.Binding | tree.Inherit], span: Span, *, recursive: bool, report: Report) -> Plan:
    """The plan of a set with these bindings; each name that is defined twice goes to ``report``."""
    plan = Plan(span, recursive)
    _add_all(plan, bindings, report)
    return plan


def _add_all(plan: Plan, bindings: Iterable[tree.Binding | tree.Inherit], report: Report) -> None:
    for binding in bindings:
        if isinstance(binding, tree.Inherit):
            for name in binding.names:
                _add(plan, name.text, Inherited(name.text, binding.source, name.span), (name.text,), report)
        else:
            _add_path(plan, binding, report)


def _add_path(plan: Plan, binding: tree.Binding, report: Report) -> None:
    *outer, last = binding.path
    names: list[str] = []
    for part in outer:
        if isinstance(part, tree.DynamicName):
            inner = Plan(part.span)
            plan.dynamic.append((part.expression, inner))
            names.append("…")
        else:
            names.append(part.text)
            existing = plan.static.get(part.text)
            if existing is None:
                inner = Plan(part.span)
                plan.static[part.text] = inner
            elif isinstance(existing, Plan):
                inner = existing
            else:
                report(_twice(names, part.span, existing.span))
                return
        plan = inner
    entry: Entry
    if isinstance(binding.value, tree.AttributeSet):
        entry = Plan(last.span, binding.value.recursive)
        _add_all(entry, binding.value.bindings, report)
    else:
        entry = Assigned(binding.value, last.span)
    if isinstance(last, tree.DynamicName):
        plan.dynamic.append((last.expression, entry))
    else:
        _add(plan, last.text, entry, (*names, last.text), report)


def _add(plan: Plan, name: str, entry: Entry, path: Iterable[str], report: Report) -> None:
    existing = plan.static.get(name)
    if existing is None:
        plan.static[name] = entry
    elif isinstance(existing, Plan) and isinstance(entry, Plan):
        for inner_name, inner in entry.static.items():
            _add(existing, inner_name, inner, (*path, inner_name), report)
        existing.dynamic += entry.dynamic
    else:
        report(_twice(path, entry.span, existing.span))


def _twice(path: Iterable[str], span: Span, first: Span) -> EvaluationError:
    failure = EvaluationError(
        "eval-duplicate-attribute", f"`{'.'.join(path)}` is defined twice", span=span, hint="remove one of the two"
    )
    failure.note(Note("first defined here", first))
    return failure

"""The names of one file: where each is defined, where it is used, and what is visible where.

The scopes are those of :mod:`envdsl.evaluate.declarations` and :mod:`envdsl.evaluate.interpreter`, with places in
place of frames.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from envdsl.model.span import Span
from envdsl.syntax import tree


class Kind(Enum):
    """What a name is defined as."""

    LET = "let"  # a declaration, seen in its whole file or loop
    IMPORT = "import"
    LOOP = "loop variable"
    LAYER = "layer"
    BINDING = "binding"  # of `let … in`
    PARAMETER = "parameter"  # of `x: …`, or the name of a whole pattern
    FORMAL = "argument"  # of a set pattern
    ATTRIBUTE = "attribute"  # of a set, `rec` or not


@dataclass(eq=False, slots=True)
class Definition:
    """``sites`` are the places where the definition says the name (``a.b = 1; a.c = 2;`` are two of ``a``)."""

    name: str
    kind: Kind
    sites: list[Span]
    value: tree.Expression | None = None
    node: tree.Node | None = None

    @property
    def span(self) -> Span:
        return self.sites[0]

    @property
    def path(self) -> str:
        """The file that it stands in."""
        return self.span.source.path


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """A variable; ``target`` is None for builtins and unknown names. ``inherited``: it is a word of ``inherit``."""

    name: str
    span: Span
    target: Definition | None
    inherited: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Member:
    """``root.a.b``: static names selected from a variable."""

    root: Definition
    names: tuple[tree.Name, ...]


@dataclass(eq=False, slots=True)
class Scope:
    """The names that ``span`` sees besides those of ``parent``."""

    span: Span
    parent: Scope | None
    names: dict[str, Definition] = field(default_factory=dict)

    def lookup(self, name: str) -> Definition | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def visible(self) -> dict[str, Definition]:
        """All names, the inner ones before those that they hide."""
        found: dict[str, Definition] = {}
        scope: Scope | None = self
        while scope is not None:
            for name, definition in scope.names.items():
                found.setdefault(name, definition)
            scope = scope.parent
        return found


@dataclass(eq=False, slots=True)
class Names:
    """Everything about the names of one file. ``outer`` is the scope of the whole file."""

    file: tree.File
    outer: Scope
    definitions: list[Definition] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    layers: list[tuple[tree.LayerDeclaration, Scope, Definition]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.file.source.path

    def scope_at(self, offset: int) -> Scope:
        """The innermost scope around a place."""
        around = [scope for scope in self.scopes if scope.span.start <= offset <= scope.span.end]
        return min(around, key=lambda scope: scope.span.end - scope.span.start, default=self.outer)


_Work: TypeAlias = tuple[tree.Node, Scope]


def names_of(file: tree.File) -> Names:
    """The names of ``file``. Takes no recursion, and any tree."""
    outer = Scope(Span(file.source, 0, len(file.source.text)), None)
    names = Names(file, outer, scopes=[outer])
    work: list[_Work] = []
    _declare(names, file.declarations, outer, work)
    while work:
        node, scope = work.pop()
        work.extend(_visit(names, node, scope))
    names.uses.sort(key=lambda use: use.span.start)
    names.definitions.sort(key=lambda definition: definition.span.start)
    return names


def _define(names: Names, scope: Scope, definition: Definition) -> None:
    scope.names.setdefault(definition.name, definition)
    names.definitions.append(definition)


def _declare(names: Names, declarations: Iterable[tree.Declaration], scope: Scope, work: list[_Work]) -> None:
    """Declarations between two braces see one another, wherever they stand."""
    for declaration in declarations:
        match declaration:
            case tree.Import(alias=alias):
                _define(names, scope, Definition(alias.text, Kind.IMPORT, [alias.span], node=declaration))
            case tree.LetDeclaration(name=name, value=value):
                _define(names, scope, Definition(name.text, Kind.LET, [name.span], value, declaration))
                work.append((value, scope))
            case tree.LayerDeclaration(name=layer, body=body):
                definition = Definition(layer_key(layer), Kind.LAYER, [layer.span], node=declaration)
                names.definitions.append(definition)
                names.layers.append((declaration, scope, definition))
                parts: list[tree.Node] = [body, *(part for part in declaration.on or () if not _is_name(part))]
                work.extend((part, scope) for part in (layer, *parts) if not _is_name(part))
            case tree.For(variable=variable, items=items):
                work.append((items, scope))
                inner = _scope(names, declaration.span, scope)
                _define(names, inner, Definition(variable.text, Kind.LOOP, [variable.span], node=declaration))
                _declare(names, declaration.declarations, inner, work)


def _is_name(node: tree.Node) -> bool:
    return isinstance(node, tree.Name)


def layer_key(name: tree.AttributeName) -> str:
    """What identifies a layer in its file: its name, or the text of the string that computes it."""
    return name.text if isinstance(name, tree.Name) else name.span.source.text[name.span.start : name.span.end]


def _scope(names: Names, span: Span, parent: Scope) -> Scope:
    scope = Scope(span, parent)
    names.scopes.append(scope)
    return scope


def _visit(names: Names, node: tree.Node, scope: Scope) -> Iterator[_Work]:
    match node:
        case tree.Variable():
            names.uses.append(Use(node.name, node.span, scope.lookup(node.name)))
        case tree.Select(target=tree.Variable(name=name)):
            root = scope.lookup(name)
            if root is not None:
                static = _static(node.path)
                if static:
                    names.members.append(Member(root, static))
            yield from _inside(node, scope)
        case tree.Lambda():
            yield from _function(names, node, scope)
        case tree.Let():
            inner = _scope(names, node.span, scope)
            yield from _bind(names, node.bindings, scope, inner, Kind.BINDING)
            yield node.body, inner
        case tree.AttributeSet(recursive=True):
            inner = _scope(names, node.span, scope)
            yield from _bind(names, node.bindings, scope, inner, Kind.ATTRIBUTE)
        case tree.Inherit():
            yield from _inherit(names, node, scope, scope)
        case _:
            yield from _inside(node, scope)


def _inside(node: tree.Node, scope: Scope) -> Iterator[_Work]:
    from envdsl.syntax.depth import children

    return ((child, scope) for child in children(node))


def _static(path: Iterable[tree.AttributeName]) -> tuple[tree.Name, ...]:
    found: list[tree.Name] = []
    for part in path:
        if not isinstance(part, tree.Name):
            break
        found.append(part)
    return tuple(found)


def _function(names: Names, node: tree.Lambda, scope: Scope) -> Iterator[_Work]:
    inner = _scope(names, node.span, scope)
    parameter = node.parameter
    if isinstance(parameter, tree.Name):
        _define(names, inner, Definition(parameter.text, Kind.PARAMETER, [parameter.span], node=node))
    else:
        for formal in parameter.fields:
            place = Span(formal.span.source, formal.span.start, formal.span.start + len(formal.name))
            _define(names, inner, Definition(formal.name, Kind.FORMAL, [place], formal.default, node))
            if formal.default is not None:
                yield formal.default, inner
        if parameter.bind is not None:
            place = _bind_span(parameter, parameter.bind)
            _define(names, inner, Definition(parameter.bind, Kind.PARAMETER, [place], node=node))
    yield node.body, inner


def _bind_span(pattern: tree.Pattern, name: str) -> Span:
    """The name of a whole pattern stands at its beginning or at its end."""
    span = pattern.span
    if span.source.text.startswith("{", span.start):
        return Span(span.source, span.end - len(name), span.end)
    return Span(span.source, span.start, span.start + len(name))


def _bind(
    names: Names, bindings: Iterable[tree.Binding | tree.Inherit], outer: Scope, inner: Scope, kind: Kind
) -> Iterator[_Work]:
    """The bindings of ``let`` and ``rec``, which see one another."""
    for binding in bindings:
        if isinstance(binding, tree.Inherit):
            yield from _inherit(names, binding, outer, inner, kind)
            continue
        first, *rest = binding.path
        if isinstance(first, tree.Name):
            known = inner.names.get(first.text)
            if known is None:
                value = None if rest else binding.value
                _define(names, inner, Definition(first.text, kind, [first.span], value, binding))
            else:
                known.sites.append(first.span)
        yield from ((part, inner) for part in binding.path if not _is_name(part))
        yield binding.value, inner


def _inherit(names: Names, node: tree.Inherit, outer: Scope, inner: Scope, kind: Kind | None = None) -> Iterator[_Work]:
    """``inherit a;`` uses the outer ``a``, and gives it the same name inside; ``inherit (e) a;`` defines one."""
    for name in node.names:
        if node.source is not None:
            if kind is not None:
                _define(names, inner, Definition(name.text, kind, [name.span], node=node))
            continue
        target = outer.lookup(name.text)
        names.uses.append(Use(name.text, name.span, target, inherited=True))
        if kind is not None and target is not None:
            inner.names.setdefault(name.text, target)
    if node.source is not None:
        yield node.source, inner
        if isinstance(node.source, tree.Variable):
            root = inner.lookup(node.source.name)
            if root is not None:
                names.members.extend(Member(root, (name,)) for name in node.names)

"""Names across the files of a project: which place speaks of which definition.

A file's variables are linked in ``names``. Here follow what an import offers (``common.office``), the attributes of
sets that are written out (``settings.debug``), and the layers that others stand on.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from envdsl.evaluate.analysis.names import Definition, Kind, Names, Scope, layer_key
from envdsl.model.span import Span
from envdsl.syntax import tree


@dataclass(frozen=True, slots=True)
class Link:
    """``span`` speaks of ``target``. ``inherited``: it is a word of ``inherit``, and names an attribute as well."""

    span: Span
    target: Definition
    inherited: bool = False


class Links:
    """The links of a project; ``files`` maps paths relative to its root to the names of each file."""

    def __init__(self, files: Mapping[str, Names]) -> None:
        self.files = files
        self._attributes: dict[tuple[str, int], Definition] = {}

    @cached_property
    def all(self) -> Mapping[str, tuple[Link, ...]]:
        """Each file's links in the order of their places."""
        return {
            path: tuple(sorted(self._of(names), key=lambda link: link.span.start)) for path, names in self.files.items()
        }

    def _of(self, names: Names) -> Iterator[Link]:
        for use in names.uses:
            if use.target is not None:
                yield Link(use.span, use.target, use.inherited)
        for member in names.members:
            for name, target in zip(member.names, self.follow(member.root, member.names), strict=False):
                yield Link(name.span, target)
        for declaration, scope, _ in names.layers:
            yield from self._base(names, declaration, scope)

    # -- what a path of names leads to --

    def follow(self, root: Definition, path: Iterable[tree.Name]) -> Iterator[Definition]:
        """What each name of ``root.a.b`` stands for, as far as that can be told without evaluating."""
        current = root
        for name in path:
            found = self.members(current).get(name.text)
            if found is None:
                return
            yield found
            current = found

    def members(self, definition: Definition) -> Mapping[str, Definition]:
        """What can be selected from a definition: the names of a file, or the attributes of a set."""
        if definition.kind is Kind.IMPORT:
            imported = self.imported(definition)
            return imported.outer.names if imported is not None else {}
        return self._attributes_of(definition)

    def imported(self, definition: Definition) -> Names | None:
        """The file that an ``import`` names; None where it is unknown."""
        node = definition.node
        if not isinstance(node, tree.Import):
            return None
        directory = posixpath.dirname(definition.path)
        return self.files.get(posixpath.normpath(posixpath.join(directory, node.path.text)))

    def _attributes_of(self, definition: Definition) -> Mapping[str, Definition]:
        found: dict[str, Definition] = {}
        value = definition.value
        if isinstance(value, tree.Let):
            value = value.body
        if isinstance(value, tree.AttributeSet):
            for binding in value.bindings:
                if isinstance(binding, tree.Binding):
                    self._add_attribute(found, binding.path, binding.value, binding)
                else:
                    for name in binding.names:
                        self._add_attribute(found, (name,), None, binding)
        node = definition.node
        if definition.value is None and isinstance(node, tree.Binding) and definition.span == node.path[0].span:
            self._add_attribute(found, node.path[1:], node.value, node)  # `a.b = 1;`
        return found

    def _add_attribute(
        self,
        found: dict[str, Definition],
        path: tuple[tree.AttributeName, ...],
        value: tree.Expression | None,
        node: tree.Node,
    ) -> None:
        if not path or not isinstance(path[0], tree.Name):
            return
        first = path[0]
        key = first.span.source.path, first.span.start
        if key not in self._attributes:
            direct = value if len(path) == 1 else None
            self._attributes[key] = Definition(first.text, Kind.ATTRIBUTE, [first.span], direct, node)
        found.setdefault(first.text, self._attributes[key])

    # -- layers --

    def layer(self, key: str, path: str | None = None) -> Definition | None:
        """The layer of this name (or with a name computed by this text), in one file or anywhere."""
        for names in self.files.values():
            if path in (None, names.path):
                for _, _, definition in names.layers:
                    if definition.name == key:
                        return definition
        return None

    def _base(self, names: Names, declaration: tree.LayerDeclaration, scope: Scope) -> Iterator[Link]:
        if not declaration.on:
            return
        *aliases, last = declaration.on
        path: str | None = None if isinstance(last, tree.Name) else names.path
        current: Definition | None = None
        for alias in aliases:
            if not isinstance(alias, tree.Name):
                return
            current = scope.lookup(alias.text) if current is None else self.members(current).get(alias.text)
            if current is None or current.kind is not Kind.IMPORT:
                return
            yield Link(alias.span, current)
        if current is not None:
            imported = self.imported(current)
            if imported is None:
                return
            path = imported.path
        target = self.layer(layer_key(last), path)
        if target is not None:
            yield Link(last.span, target)

    # -- questions --

    def at(self, path: str, offset: int) -> Link | None:
        """What the place speaks of, be it a use or the definition itself (then the link leads to itself)."""
        names = self.files.get(path)
        if names is None:
            return None
        sites = (Link(site, definition) for definition in names.definitions for site in definition.sites)
        candidates = [link for link in (*self.all.get(path, ()), *sites) if link.span.start <= offset <= link.span.end]
        return min(candidates, key=lambda link: (link.span.end - link.span.start, link.span.start), default=None)

    def references(self, target: Definition, *, definition: bool) -> list[Span]:
        """All places that speak of ``target``; those of its definition too where asked for."""
        found = {(link.span.source.path, link.span.start): link.span for link in self._to(target)}
        for site in target.sites:
            key = site.source.path, site.start
            if definition:
                found[key] = site
            else:
                found.pop(key, None)
        return [found[key] for key in sorted(found)]

    def _to(self, target: Definition) -> Iterator[Link]:
        return (link for links in self.all.values() for link in links if link.target is target)

    def inherits(self, target: Definition) -> list[Span]:
        """The words of ``inherit`` that speak of ``target``."""
        return [link.span for link in self._to(target) if link.inherited]

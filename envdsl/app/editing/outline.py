"""The symbols of a file: its declarations, and the attributes of its layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from envdsl.evaluate.analysis.names import layer_key
from envdsl.model.span import Span
from envdsl.syntax import tree


@dataclass(frozen=True, slots=True)
class Symbol:
    """``kind`` is that of a layer, ``for``, ``let``, ``import`` or ``attribute``; ``name_span`` lies in ``span``."""

    name: str
    kind: str
    detail: str
    span: Span
    name_span: Span
    children: tuple[Symbol, ...] = ()


def outline(declarations: Iterable[tree.Declaration]) -> tuple[Symbol, ...]:
    return tuple(_symbol(declaration) for declaration in declarations)


def _symbol(node: tree.Declaration) -> Symbol:
    match node:
        case tree.Import():
            return Symbol(node.alias.text, "import", node.path.text, node.span, node.alias.span)
        case tree.LetDeclaration():
            return Symbol(node.name.text, "let", "", node.span, node.name.span)
        case tree.For():
            name = f"for {node.variable.text}"
            return Symbol(name, "for", "", node.span, node.variable.span, outline(node.declarations))
        case tree.LayerDeclaration():
            on = " on " + ".".join(layer_key(part).strip('"') for part in node.on) if node.on else ""
            children = tuple(_attributes(node.body))
            name = layer_key(node.name).strip('"')
            return Symbol(name, str(node.kind.value), f"{node.kind.value}{on}", node.span, node.name.span, children)


def _attributes(body: tree.AttributeSet) -> Iterator[Symbol]:
    for binding in body.bindings:
        if isinstance(binding, tree.Binding):
            name = ".".join(layer_key(part).strip('"') for part in binding.path)
            yield Symbol(name, "attribute", "", binding.span, binding.path[0].span)
        else:
            for name_ in binding.names:
                yield Symbol(name_.text, "attribute", "inherit", name_.span, name_.span)

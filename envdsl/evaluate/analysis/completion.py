"""What could be written at a place of a text that is being written.

A word of our own is put there, with what might close the construct around it, and the text is read as far as it can be:
where the word turns up in the tree says what it could be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from envdsl.model.span import Source, Span
from envdsl.syntax import tree
from envdsl.syntax.depth import children
from envdsl.syntax.tolerant import Reading, read_file

_MARK = "envdsl'here"
_ENDINGS = (
    *("", ";", " = null;", ' = "', '"', '";', '" ]', '" ];', " ]", " ];", ")", ");", " { }", "}", '}"', '}";'),
    *(" }", "; }", ' = null; }"', '" ]; }', " ]; }"),
)
_WORD_BEFORE = re.compile(r"[a-zA-Z0-9_'-]*\Z")
_DOTTED = re.compile(r"[a-zA-Z0-9._-]*")
_WORD_AFTER = re.compile(r"[a-zA-Z0-9_'-]*")


class Where(Enum):
    """What stands at a place."""

    DECLARATION = "declaration"
    EXPRESSION = "expression"
    MEMBER = "member"  # behind a dot
    ATTRIBUTE = "attribute"  # the name in `name = value;`
    BASE = "base"  # behind `on`
    IMPORT = "import"  # the path of one
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something could be written.

    ``span`` is the word that it would replace. ``layer``: the place is in the body of one, under the attributes
    ``attribute``, and ``taken`` are the names that the set has already. ``root`` and ``path`` are what stands before
    the dot; ``prefix`` what stands in the string before the place. ``file`` is the tree that was read, which differs
    from the text behind the place.
    """

    where: Where
    span: Span
    file: tree.File
    layer: tree.LayerDeclaration | None = None
    attribute: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()
    root: str | None = None
    path: tuple[tree.Name, ...] = ()
    prefix: str = ""
    quoted: bool = False


def place_at(source: Source, offset: int) -> Place | None:
    """What could stand at ``offset``; None where nothing is to be proposed, as in comments."""
    before = _WORD_BEFORE.search(source.text, 0, offset)
    after = _WORD_AFTER.match(source.text, offset)
    assert before is not None  # both match the empty text
    assert after is not None
    span = Span(source, before.start(), after.end())
    found: tuple[int, Place] | None = None
    for text in (*(_MARK + ending for ending in _ENDINGS), f"let {_MARK} = null;"):
        changed = Source(source.path, source.text[: span.start] + text + source.text[span.end :])
        reading = read_file(changed)
        place = _place(reading, span)
        if place is not None and (found is None or len(reading.diagnostics) < found[0]):
            found = len(reading.diagnostics), place
        if found is not None and found[0] == 0:
            break
    return found[1] if found is not None else None


def _place(reading: Reading, span: Span) -> Place | None:
    trail = _find(reading.file)
    if trail is None:
        return None
    node, parents = trail[-1], trail[:-1]
    parent = parents[-1] if parents else None
    layer, attribute = _context(trail)
    match node, parent:
        case tree.String(), _:
            return _in_string(reading.file, span, node, parents)
        case tree.Name(), tree.Select(path=path) | tree.HasAttribute(path=path):
            assert isinstance(parent, (tree.Select, tree.HasAttribute))
            return _member(reading.file, span, parent.target, path)
        case tree.Name(), tree.Binding(path=path):
            static = tuple(part.text for part in path[: path.index(node)] if isinstance(part, tree.Name))
            taken = _taken(parents) if path[0] is node else frozenset()
            return Place(Where.ATTRIBUTE, span, reading.file, layer, (*attribute, *static), taken)
        case tree.Name(), tree.Inherit(source=source):
            if source is not None:
                return _member(reading.file, span, source, (node,))
            return Place(Where.EXPRESSION, span, reading.file, layer, attribute)
        case tree.Name(), tree.LayerDeclaration(on=on) if on is not None and node in on:
            names = tuple(part for part in on[: on.index(node)] if isinstance(part, tree.Name))
            return Place(Where.BASE, span, reading.file, root=names[0].text if names else None, path=names[1:])
        case tree.Name(), tree.Import(path=path) if node is path:
            return Place(Where.IMPORT, span, reading.file, quoted=True)
        case tree.Name(), tree.LetDeclaration():
            return Place(Where.DECLARATION, span, reading.file)
        case tree.Variable(), _ if not span.source.text[span.start : span.end][:1].isdigit():
            return Place(Where.EXPRESSION, span, reading.file, layer, attribute)
    return None


def _find(file: tree.File) -> list[tree.Node] | None:
    """The node that holds the mark, below all nodes around it."""
    work: list[tuple[tree.Node, tuple[tree.Node, ...]]] = [(node, ()) for node in file.declarations]
    while work:
        node, parents = work.pop()
        if node.span.source.text.find(_MARK, node.span.start, node.span.end) < 0:
            continue
        if _is_marked(node):
            return [*parents, node]
        work.extend((child, (*parents, node)) for child in children(node))
    return None


def _is_marked(node: tree.Node) -> bool:
    match node:
        case tree.Variable(name=text) | tree.Name(text=text):
            return _MARK in text
        case tree.String(parts=parts):
            return any(isinstance(part, str) and _MARK in part for part in parts)
    return False


def _in_string(file: tree.File, span: Span, node: tree.String, parents: list[tree.Node]) -> Place:
    before = next(part for part in node.parts if isinstance(part, str) and _MARK in part).partition(_MARK)[0]
    layer, attribute = _context([*parents, node])
    parent = parents[-1] if parents else None
    if isinstance(parent, tree.DynamicName) and len(parents) > 1 and isinstance(parents[-2], tree.LayerDeclaration):
        return Place(Where.BASE, span, file, prefix=before, quoted=True)
    taken: frozenset[str] = frozenset()
    if isinstance(parent, tree.ListLiteral):
        strings = (item for item in parent.items if isinstance(item, tree.String) and item is not node)
        taken = frozenset(part for item in strings for part in item.parts if isinstance(part, str))
    if _DOTTED.fullmatch(before):
        span, before = Span(span.source, span.start - len(before), span.end), ""
    return Place(Where.STRING, span, file, layer, attribute, taken, prefix=before, quoted=True)


def _member(file: tree.File, span: Span, target: tree.Expression, path: tuple[tree.AttributeName, ...]) -> Place | None:
    if not isinstance(target, tree.Variable):
        return None
    before: list[tree.Name] = []
    for part in path:
        if not isinstance(part, tree.Name):
            return None
        if _MARK in part.text:
            break
        before.append(part)
    return Place(Where.MEMBER, span, file, root=target.name, path=tuple(before))


def _context(trail: list[tree.Node]) -> tuple[tree.LayerDeclaration | None, tuple[str, ...]]:
    """The layer around the last node, and the attributes under which it stands there."""
    layer: tree.LayerDeclaration | None = None
    attribute: list[str] = []
    for node, inner in pairwise(trail):
        if isinstance(node, tree.LayerDeclaration):
            layer, attribute = node, []
        elif isinstance(node, tree.Binding) and inner is node.value:
            attribute += [part.text if isinstance(part, tree.Name) else "…" for part in node.path]
        elif isinstance(node, (tree.Lambda, tree.Let)):
            attribute.append("…")  # a set in there is not the attribute's value
    return layer, tuple(attribute)


def _taken(parents: list[tree.Node]) -> frozenset[str]:
    bindings = _bindings(parents)
    return frozenset(
        binding.path[0].text
        for binding in bindings
        if isinstance(binding, tree.Binding) and isinstance(binding.path[0], tree.Name)
        if len(binding.path) == 1 and _MARK not in binding.path[0].text
    )


def _bindings(parents: list[tree.Node]) -> Iterator[tree.Node]:
    around = parents[-2] if len(parents) > 1 else None
    if isinstance(around, (tree.AttributeSet, tree.Let)):
        yield from around.bindings

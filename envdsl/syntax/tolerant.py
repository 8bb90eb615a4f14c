"""A tree of a text that is being written: what could be read of it, beside what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envdsl.errors import Diagnostic
from envdsl.model.names import LayerKind
from envdsl.model.span import Source, Span
from envdsl.syntax.automaton import Automaton, LimitExceeded, Token, Unexpected
from envdsl.syntax.builder import TreeBuilder
from envdsl.syntax.decode import SIZE_LIMIT, too_large
from envdsl.syntax.depth import first_too_deep
from envdsl.syntax.diagnosis import diagnose, too_deep
from envdsl.syntax.grammar import tables
from envdsl.syntax.tables import END
from envdsl.syntax.tree import AttributeSet, Binding, Declaration, File, For, Inherit, LayerDeclaration, Name, Node
from envdsl.syntax.tree import LetDeclaration as Let


@dataclass(frozen=True, slots=True)
class Reading:
    """``file`` holds the declarations that were complete, and those that are open at the end as far as they go."""

    file: File
    diagnostics: tuple[Diagnostic, ...]


def read_file(source: Source) -> Reading:
    """Parse a layer file however unfinished it is. Raises nothing for what it says."""
    if len(source.text) > SIZE_LIMIT:
        return Reading(File(source, (), ()), too_large(source, len(source.text)).diagnostics)
    builder = TreeBuilder(source)
    automaton = Automaton(tables(), builder, source.text, "file")
    failure: Unexpected | LimitExceeded | None = None
    try:
        automaton.run()
    except (Unexpected, LimitExceeded) as error:
        failure = error
    found = diagnose(automaton, failure, builder) if failure or builder.diagnostics else []
    file = _file(automaton.values, source, builder)
    deep = first_too_deep(file)
    if deep is not None:
        return Reading(File(source, (), file.comments), (too_deep(deep.span),))
    return Reading(file, tuple(found))


def is_unfinished(text: str, start: str) -> bool:
    """Whether more text could make a ``file`` or ``expression`` of what has no error but that it ends too early."""
    source = Source("", text)
    try:
        Automaton(tables(), TreeBuilder(source), text, start).run()
    except Unexpected as error:
        return error.token.kind == END
    except LimitExceeded:
        return False
    return False


def _file(values: Sequence[Any], source: Source, builder: TreeBuilder) -> File:
    if values and isinstance(values[0], File):
        return values[0]
    comments = {comment.span.start: comment for comment in builder.comments}  # some are met twice
    return File(source, _declarations(values, source), tuple(comments[start] for start in sorted(comments)))


def _declarations(values: Sequence[Any], source: Source) -> tuple[Declaration, ...]:
    """Those of a list on the stack, and the one that was begun behind it."""
    if not values or type(values[0]) is not list:
        return ()
    begun = _begun(values[1:], source)
    return (*values[0], begun) if begun is not None else tuple(values[0])


def _begun(values: Sequence[Any], source: Source) -> Declaration | None:
    if not values or type(values[0]) is not Token:
        return None
    span = Span(source, values[0].start, len(source.text))
    match [value.kind if type(value) is Token else "" for value in values[:9]]:
        case ["FOR", "OPEN_PAREN", "IDENTIFIER", "IN", "", "CLOSE_PAREN", "OPEN_BRACE", *_] if isinstance(
            values[4], Node
        ):
            return For(span, _name(values[2], source), values[4], _declarations(values[7:], source))  # type: ignore[arg-type]
        case ["BASE" | "ISO" as kind, "", "OPEN_BRACE", *_]:
            return LayerDeclaration(span, LayerKind(kind.lower()), values[1], None, _body(values[2:], source))
        case ["EXTENSION", "", "ON", "", "OPEN_BRACE", *_]:
            return LayerDeclaration(span, LayerKind.X, values[1], tuple(values[3]), _body(values[4:], source))
        case ["LET", "IDENTIFIER", "ASSIGN", "", *_] if isinstance(values[3], Node):
            return Let(span, _name(values[1], source), values[3])  # type: ignore[arg-type]
    return None


def _body(values: Sequence[Any], source: Source) -> AttributeSet:
    """The attributes of a layer whose brace is open."""
    span = Span(source, values[0].start, len(source.text))
    bindings = values[1] if len(values) > 1 and type(values[1]) is list else []
    return AttributeSet(span, tuple(item for item in bindings if isinstance(item, (Binding, Inherit))), recursive=False)


def _name(token: Token, source: Source) -> Name:
    return Name(Span(source, token.start, token.end), source.text[token.start : token.end])

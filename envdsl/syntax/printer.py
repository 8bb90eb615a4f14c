"""One canonical form of layer files, after the style of Nix's RFC 166 (docs/decisions/canonical-form.md).

What a text means never changes, and no comment is lost: that is checked each time, by parsing what was written.
"""

from __future__ import annotations

from typing import Any

from envdsl.errors import EnvdslError
from envdsl.model.span import Source
from envdsl.syntax.automaton import Automaton
from envdsl.syntax.formatting.layout import LayoutBuilder
from envdsl.syntax.formatting.render import render
from envdsl.syntax.formatting.trivia import Trivia
from envdsl.syntax.grammar import tables
from envdsl.syntax.parser import parse_expression_with_comments, parse_file
from envdsl.syntax.tree import Comment, File, Node


def format_file(source: Source) -> str:
    """A layer file in its canonical form, with LF line ends. Raises EnvdslError for a text with errors."""
    return _format(source, "file")


def format_expression(source: Source) -> str:
    """A text that is one expression in its canonical form. Raises EnvdslError for a text with errors."""
    return _format(source, "expression")


def _format(source: Source, start: str) -> str:
    before, comments = _parse(source, start)
    builder = LayoutBuilder(source.text, Trivia.of(source.text, comments))
    value = Automaton(tables(), builder, source.text, start).run()
    text = render(builder.page(value))
    after, remaining = _parse(Source(source.path, text), start)
    if not same(before, after) or not _same_comments(comments, remaining):
        raise EnvdslError.of(
            "syntax-format",
            f"the formatter would change what {source.path} says",
            hint="this is a defect of envdsl, and the file is left alone: please report it, with the file",
        )
    return text


def _parse(source: Source, start: str) -> tuple[tuple[Node, ...], tuple[Comment, ...]]:
    if start == "file":
        file: File = parse_file(source)
        return file.declarations, file.comments
    expression, comments = parse_expression_with_comments(source)
    return (expression,), comments


def _same_comments(one: tuple[Comment, ...], other: tuple[Comment, ...]) -> bool:
    return [comment.text.split() for comment in one] == [comment.text.split() for comment in other]


def same(one: Any, other: Any) -> bool:
    """Whether two nodes, or tuples of nodes, say the same wherever they stand. Takes no recursion."""
    pending = [(one, other)]
    while pending:
        left, right = pending.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, Node):
            pending += [(getattr(left, name), getattr(right, name)) for name in _fields(left)]
        elif isinstance(left, tuple):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


def _fields(node: Node) -> list[str]:
    return [name for name in node.__match_args__ if name != "span"]

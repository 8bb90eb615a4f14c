"""Text to tree."""

from __future__ import annotations

from typing import Any

from envdsl.errors import EnvdslError
from envdsl.model.span import Source
from envdsl.syntax.automaton import Automaton, LimitExceeded, Unexpected
from envdsl.syntax.builder import TreeBuilder
from envdsl.syntax.decode import SIZE_LIMIT, decode, too_large
from envdsl.syntax.depth import DEPTH_LIMIT, first_too_deep
from envdsl.syntax.grammar import tables
from envdsl.syntax.tree import Comment, Expression, File

__all__ = ["decode", "parse_expression", "parse_expression_with_comments", "parse_file"]


def parse_file(source: Source) -> File:
    """The declarations of a ``.layer`` file. Raises EnvdslError with all syntax errors that can be told apart."""
    result: File = _parse(source, "file", TreeBuilder(source))
    return result


def parse_expression(source: Source) -> Expression:
    """A text that is one expression. Raises EnvdslError."""
    result: Expression = _parse(source, "expression", TreeBuilder(source))
    return result


def parse_expression_with_comments(source: Source) -> tuple[Expression, tuple[Comment, ...]]:
    """A text that is one expression, and its comments, for those who write it out again. Raises EnvdslError."""
    builder = TreeBuilder(source)
    result: Expression = _parse(source, "expression", builder)
    return result, tuple(builder.comments)


def _parse(source: Source, start: str, builder: TreeBuilder) -> Any:
    if len(source.text) > SIZE_LIMIT:
        raise too_large(source, len(source.text))
    automaton = Automaton(tables(), builder, source.text, start)
    result: Any = None
    failure: Unexpected | LimitExceeded | None = None
    try:
        result = automaton.run()
    except (Unexpected, LimitExceeded) as error:
        failure = error
    deep = None if failure or not _may_be_deep(automaton, builder) else first_too_deep(result)
    if failure or deep or builder.diagnostics:
        from envdsl.syntax.diagnosis import diagnose, too_deep  # most files never need it

        found = [too_deep(deep.span)] if deep else diagnose(automaton, failure, builder)
        raise EnvdslError(*found)
    return result


def _may_be_deep(automaton: Automaton, builder: TreeBuilder) -> bool:
    """Whether the tree could be deeper than allowed: each entry on the stack stands for one node, one call with its
    arguments and one chain of operators at the most."""
    return automaton.deepest * (2 + builder.longest_call + builder.longest_chain) > DEPTH_LIMIT

"""Text to tree."""

from __future__ import annotations

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.model.span import Source, Span
from envdsl.syntax.automaton import Automaton, LimitExceeded, Unexpected
from envdsl.syntax.builder import TreeBuilder
from envdsl.syntax.grammar import tables
from envdsl.syntax.tree import Expression, File


def parse_file(source: Source) -> File:
    """The declarations of a ``.layer`` file. Raises EnvdslError with all syntax errors that can be told apart."""
    result: File = _parse(source, "file")
    return result


def parse_expression(source: Source) -> Expression:
    """A single expression. Raises EnvdslError."""
    result: Expression = _parse(source, "expression")
    return result


def _parse(source: Source, start: str):
    builder = TreeBuilder(source)
    automaton = Automaton(tables(), builder, source.text, start)
    try:
        result = automaton.run()
    except (Unexpected, LimitExceeded) as error:
        token = error.token
        span = Span(source, token.start, token.end)
        raise EnvdslError(Diagnostic("syntax-unexpected", f"unexpected `{source.text[token.start : token.end]}`", span)) from None
    if builder.diagnostics:
        raise EnvdslError(*builder.diagnostics)
    return result


def decode(path: str, data: bytes) -> Source:
    """Bytes of a file as text. Raises EnvdslError."""
    return Source(path, data.decode("utf-8"))

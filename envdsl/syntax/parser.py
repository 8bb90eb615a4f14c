"""Text to tree."""

from __future__ import annotations

from typing import Any

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.model.span import Source, Span
from envdsl.syntax.automaton import STACK_LIMIT, TOKEN_LIMIT, Automaton, LimitExceeded, Token, Unexpected
from envdsl.syntax.builder import TreeBuilder
from envdsl.syntax.decode import SIZE_LIMIT, decode, too_large
from envdsl.syntax.depth import DEPTH_LIMIT, first_too_deep
from envdsl.syntax.explain import explain
from envdsl.syntax.grammar import tables
from envdsl.syntax.recovery import declaration_height, next_head, recover
from envdsl.syntax.tables import END
from envdsl.syntax.tree import Comment, Expression, File

__all__ = ["decode", "parse_expression", "parse_expression_with_comments", "parse_file"]

ERROR_LIMIT = 20


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
    errors: list[Diagnostic] = []
    automaton = Automaton(tables(), builder, source.text, start)
    result: Any = None
    while len(errors) < ERROR_LIMIT:
        try:
            result = automaton.run()
            break
        except LimitExceeded as error:
            errors.append(_limit(source, error))
            break
        except Unexpected as error:
            automaton.settle()
            head = _swallowed_head(automaton, error.token)
            if head is not None:
                errors += _explain_cut(automaton, source, head)
                continue
            diagnostic = explain(automaton, error.token, source, builder.comments)
            if not (diagnostic.code == "syntax-unmatched-bracket" and errors):  # it may close what an error left open
                errors.append(diagnostic)
            if not recover(automaton, error.token):
                break
    errors += builder.diagnostics
    if not errors and _may_be_deep(automaton, builder):
        node = first_too_deep(result)
        if node is not None:
            errors.append(_too_deep(node.span))
    if errors:
        errors.sort(key=lambda diagnostic: diagnostic.span.start if diagnostic.span else 0)
        raise EnvdslError(*errors[:ERROR_LIMIT])
    return result


def _swallowed_head(automaton: Automaton, token: Token) -> int | None:
    """Where the head of another declaration stands within the one that ``token`` broke."""
    height = declaration_height(automaton)
    if height is None or height == len(automaton.values):
        return None
    first = automaton.values[height]
    assert type(first) is Token  # each declaration begins with a word
    return next_head(automaton.text, first.end, token.start)


def _explain_cut(automaton: Automaton, source: Source, head: int) -> list[Diagnostic]:
    """What the broken declaration lacks, had the text ended where the next one begins; ``automaton`` goes on there."""
    height = declaration_height(automaton)
    assert height is not None
    builder = TreeBuilder(source)
    cut = Automaton(automaton.tables, builder, source.text[:head], "file", automaton.values[height].start)
    cut.states[:] = automaton.states[: height + 1]
    cut.values[:] = automaton.values[:height]
    automaton.unwind(height)
    automaton.position = head
    for _ in range(ERROR_LIMIT):
        try:
            cut.run()
        except LimitExceeded as error:
            return [_limit(source, error)]
        except Unexpected as error:
            cut.settle()
            if error.token.kind == END:
                return [explain(cut, error.token, source, builder.comments)]
            if not recover(cut, error.token):  # what is wrong there has been reported before
                break
    return []


def _may_be_deep(automaton: Automaton, builder: TreeBuilder) -> bool:
    """Whether the tree could be deeper than allowed: each entry on the stack stands for one node, one call with its
    arguments and one chain of operators at the most."""
    return automaton.deepest * (2 + builder.longest_call + builder.longest_chain) > DEPTH_LIMIT


def _limit(source: Source, error: LimitExceeded) -> Diagnostic:
    span = Span(source, error.token.start, error.token.end)
    if error.limit == "nesting":
        return _too_deep(span)
    return Diagnostic(
        "syntax-too-long",
        f"the text has more than {TOKEN_LIMIT:,} words and signs",
        span,
        hint="split it into several files; long lists can be read with `readLines`",
    )


def _too_deep(span: Span) -> Diagnostic:
    return Diagnostic(
        "syntax-too-deep",
        f"this is nested too deeply: the tree would have more than {DEPTH_LIMIT} levels,"
        f" or {STACK_LIMIT:,} brackets, names and operators would wait for what follows them",
        span,
        hint="give parts of it a name with `let`",
    )

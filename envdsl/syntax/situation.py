"""An unexpected token, and what the parser knows about its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from envdsl.errors import Diagnostic
from envdsl.model.span import Source, Span
from envdsl.syntax.automaton import Token
from envdsl.syntax.recovery import open_constructs
from envdsl.syntax.tree import Comment, Expression

_FOUND = re.compile(r"""[a-zA-Z_][a-zA-Z0-9_'-]*|[0-9]+|\$\{|''|\.\.\.|\+\+|//|->|==|!=|<=|>=|&&|\|\||=>|/\*|[\s\S]""")
_EXPRESSIONS = get_args(Expression)


@dataclass(frozen=True)
class Situation:
    """An unexpected token and what the parser knows about its place."""

    source: Source
    token: Token
    values: Sequence[Any]
    acceptable: frozenset[str]
    comments: Sequence[Comment]

    @cached_property
    def at_end(self) -> bool:
        return self.token.start >= len(self.source.text)

    @cached_property
    def found(self) -> str:
        """The word, number or sign that stands there; empty at the end of the text."""
        match = _FOUND.match(self.source.text, self.token.start)
        return match[0] if match else ""

    @cached_property
    def span(self) -> Span:
        return Span(self.source, self.token.start, self.token.start + len(self.found))

    @cached_property
    def found_words(self) -> str:
        return f"`{self.found}`" if self.found else "the end of the text"

    @cached_property
    def waiting(self) -> list[Token]:
        """What is open: brackets and quotes, outermost first."""
        return [item for item in open_constructs(self.values) if item.kind not in ("LET", "ASSERT", "WITH")]

    @cached_property
    def opener(self) -> str:
        """The innermost open bracket or quote."""
        return self.text_of(self.waiting[-1]).strip() if self.waiting else ""

    @cached_property
    def before(self) -> Span:
        """The empty span behind the last thing before the token."""
        text, position = self.source.text, self.token.start
        ends = {comment.span.end: comment.span.start for comment in self.comments}
        while True:
            position = len(text[:position].rstrip(" \t\r\n"))
            if position not in ends:
                break
            position = ends[position]
        return Span(self.source, position, position)

    @property
    def wants_operand(self) -> bool:
        return "INTEGER" in self.acceptable and "OPERATOR" not in self.acceptable

    @property
    def has_operand(self) -> bool:
        """A complete operand stands before the token: reduced to an expression already, or about to be."""
        return "OPERATOR" in self.acceptable or bool(self.values and isinstance(self.values[-1], _EXPRESSIONS))

    def text_of(self, token: Token) -> str:
        return self.source.text[token.start : token.end]

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def place_of(self, token: Token) -> str:
        line, column = self.source.position(token.start)
        return f"{line}:{column}"

    def ends_with(self, kind: str) -> bool:
        """Whether the last value is a token of this kind."""
        return bool(self.values) and type(self.values[-1]) is Token and self.values[-1].kind == kind

    def innermost(self, kinds: tuple[str, ...]) -> Token | None:
        """The last unfinished token of one of ``kinds``, but none outside the innermost bracket that opens anew."""
        for value in reversed(self.values):
            if type(value) is Token:
                if value.kind in kinds:
                    return value
                if value.kind in ("OPEN_PAREN", "INTERPOLATION") or (self.opener != "[" and value.kind == "OPEN_BRACE"):
                    return None
        return None

    def name_before(self, assign: Token) -> str:
        """The name that an unfinished `=` gives a value, as written."""
        name = self.values[self.values.index(assign) - 1]
        if type(name) is Token:
            return self.text_of(name)
        return self.source.text[name[0].span.start : name[-1].span.end]

    def after_value(self) -> str:
        assign = self.innermost(("ASSIGN",))
        return f"after the value of `{self.name_before(assign)}`" if assign else "after this value"

    def diagnostic(self, code: str, message: str, hint: str | None = None) -> Diagnostic:
        """About the token; or about the place behind the last one, where the text ends."""
        return Diagnostic(code, message, self.before if self.at_end else self.span, hint=hint)

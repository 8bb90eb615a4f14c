"""The tree, built while the automaton reduces.

A method for each rule or alias of ``grammar/layer.lark``. Each takes the values of all the rule's symbols: tokens,
nodes, lists of nodes. A node spans its own text, without parentheses around it; what holds a parenthesised node spans
the parentheses too, and so their extents are kept while the text is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from envdsl.errors import Diagnostic
from envdsl.model.names import LayerKind
from envdsl.model.span import Source, Span
from envdsl.syntax import operators, refusals, strings
from envdsl.syntax.automaton import Token
from envdsl.syntax.refusals import Refusal
from envdsl.syntax.tree import (
    Apply,
    Assert,
    AttributeName,
    AttributeSet,
    Binary,
    Binding,
    Comment,
    Declaration,
    DynamicName,
    Expression,
    Field,
    File,
    For,
    HasAttribute,
    If,
    Import,
    Inherit,
    Integer,
    Lambda,
    LayerDeclaration,
    Let,
    LetDeclaration,
    ListLiteral,
    Name,
    Node,
    PathLiteral,
    Pattern,
    Select,
    String,
    Unary,
    Variable,
)

Values = list[Any]

ERROR_LIMIT = 20
"""The most errors that one text gets reported."""


class TreeBuilder:
    """Builds the tree of one text; refused constructs are collected in ``diagnostics``."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.comments: list[Comment] = []
        self.diagnostics: list[Diagnostic] = []
        self.longest_call = 0  # arguments
        self.longest_chain = 0  # operators
        self._parenthesised: dict[int, tuple[Node, int, int]] = {}

    # -- places --

    def _span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)

    def _start(self, value: Any) -> int:
        if type(value) is Token:
            return value.start
        extent = self._parenthesised.get(id(value))
        return extent[1] if extent else int(value.span.start)

    def _end(self, value: Any) -> int:
        if type(value) is Token:
            return value.end
        extent = self._parenthesised.get(id(value))
        return extent[2] if extent else int(value.span.end)

    def _over(self, values: Values) -> Span:
        return Span(self.source, self._start(values[0]), self._end(values[-1]))

    def _token_span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def _token_text(self, token: Token) -> str:
        return self.text[token.start : token.end]

    def _refuse(self, refusal: Refusal, span: Span, *facts: str) -> None:
        if len(self.diagnostics) < ERROR_LIMIT:
            self.diagnostics.append(refusal.at(span, *facts))

    def comment(self, start: int, end: int) -> None:
        self.comments.append(Comment(self._span(start, end), self.text[start:end]))

    def pass_through(self, values: Values) -> Any:
        return values[0]

    # -- lists --

    def empty_list(self, values: Values) -> Values:
        return []

    def first(self, values: Values) -> Values:
        return values

    pair = first

    def append(self, values: Values) -> Values:
        items: Values = values[0]
        items.append(values[1])
        return items

    def append_separated(self, values: Values) -> Values:
        items: Values = values[0]
        items.append(values[2])
        return items

    # -- declarations --

    def file(self, values: Values) -> File:
        return File(self.source, tuple(values[0]), tuple(self.comments))

    def import_declaration(self, values: Values) -> Import:
        _, path, _, alias, _ = values
        name = self._name_of(path)
        if isinstance(name, DynamicName):
            self._refuse(refusals.DYNAMIC_IMPORT, name.span)
            name = Name(name.span, "")
        return Import(self._over(values), name, self._static(alias))

    def let_declaration(self, values: Values) -> LetDeclaration:
        return LetDeclaration(self._over(values), self._static(values[1]), values[3])

    def layer_declaration(self, values: Values) -> LayerDeclaration:
        keyword, name, body = values
        return LayerDeclaration(self._over(values), LayerKind(self._token_text(keyword)), name, None, body)

    def extension_declaration(self, values: Values) -> LayerDeclaration:
        _, name, _, target, body = values
        return LayerDeclaration(self._over(values), LayerKind.X, name, tuple(target), body)

    def for_declaration(self, values: Values) -> For:
        declarations: list[Declaration] = values[7]
        return For(self._over(values), self._static(values[2]), values[4], tuple(declarations))

    def string_target(self, values: Values) -> list[AttributeName]:
        return [self._name_of(values[0])]

    def first_static_name(self, values: Values) -> list[AttributeName]:
        return [self._static(values[0])]

    def next_static_name(self, values: Values) -> list[AttributeName]:
        names: list[AttributeName] = values[0]
        names.append(self._static(values[2]))
        return names

    # -- names --

    def _static(self, token: Token) -> Name:
        return Name(self._token_span(token), self._token_text(token))

    def static_name(self, values: Values) -> Name:
        return self._static(values[0])

    def _name_of(self, string: String) -> AttributeName:
        parts = string.parts
        if not parts:
            return Name(string.span, "")
        if len(parts) == 1 and isinstance(parts[0], str):
            return Name(string.span, parts[0])
        return DynamicName(string.span, string)

    def string_name(self, values: Values) -> AttributeName:
        return self._name_of(values[0])

    def dynamic_name(self, values: Values) -> DynamicName:
        return DynamicName(self._over(values), values[1])

    def inherited_string(self, values: Values) -> Name:
        name = self._name_of(values[0])
        if isinstance(name, DynamicName):
            self._refuse(refusals.DYNAMIC_INHERIT, name.span)
            return Name(name.span, "")
        return name

    # -- functions and forms --

    def function(self, values: Values) -> Lambda:
        return Lambda(self._over(values), self._static(values[0]), values[2])

    def pattern_function(self, values: Values) -> Lambda:
        return Lambda(self._over(values), values[0], values[2])

    def pattern_before_name(self, values: Values) -> Pattern:
        return self._bound(values, values[0], values[2])

    def pattern_after_name(self, values: Values) -> Pattern:
        return self._bound(values, values[2], values[0])

    def _formals(self, values: Values, fields: Sequence[Field], *, is_open: bool) -> Pattern:
        seen: set[str] = set()
        for field in fields:
            if field.name in seen:
                self._refuse(refusals.DUPLICATE_FORMAL, field.span, field.name)
            seen.add(field.name)
        return Pattern(self._over(values), tuple(fields), is_open, None)

    def _bound(self, values: Values, pattern: Pattern, name: Token) -> Pattern:
        bind = self._token_text(name)
        for field in pattern.fields:
            if field.name == bind:
                self._refuse(refusals.DUPLICATE_FORMAL, field.span, field.name)
        return Pattern(self._over(values), pattern.fields, pattern.open, bind)

    def no_formals(self, values: Values) -> Pattern:
        return self._formals(values, (), is_open=False)

    def only_ellipsis(self, values: Values) -> Pattern:
        return self._formals(values, (), is_open=True)

    def closed_formals(self, values: Values) -> Pattern:
        return self._formals(values, values[1], is_open=False)

    def open_formals(self, values: Values) -> Pattern:
        return self._formals(values, values[1], is_open=True)

    def formal(self, values: Values) -> Field:
        return Field(self._token_span(values[0]), self._token_text(values[0]), None)

    def formal_with_default(self, values: Values) -> Field:
        return Field(self._over(values), self._token_text(values[0]), values[2])

    def let(self, values: Values) -> Let:
        _, bindings, _, body = values
        for binding in bindings:
            if isinstance(binding, Binding) and isinstance(binding.path[0], DynamicName):
                self._refuse(refusals.DYNAMIC_LET, binding.path[0].span)
        return Let(self._over(values), tuple(bindings), body)

    def empty_let(self, values: Values) -> Let:
        return Let(self._over(values), (), values[2])

    def conditional(self, values: Values) -> If:
        return If(self._over(values), values[1], values[3], values[5])

    def assertion(self, values: Values) -> Assert:
        return Assert(self._over(values), values[1], values[3])

    def refused_with(self, values: Values) -> Expression:
        self._refuse(refusals.WITH, self._token_span(values[0]))
        body: Expression = values[3]
        return body

    # -- operators --

    def operation(self, values: Values) -> Expression:
        self.longest_chain = max(self.longest_chain, len(values[0]))
        expression: Expression = operators.resolve(values[0], self.text, self._operator_node, self._refuse_chain)
        return expression

    def _operator_node(self, token: Token, is_prefix: bool, operands: Values) -> Expression:
        operator = self._token_text(token)
        right = operands.pop()
        if is_prefix:
            return Unary(self._span(token.start, self._end(right)), operator, right)
        left = operands.pop()
        if operator == "?":
            return HasAttribute(self._span(self._start(left), right[-1].span.end), left, tuple(right))
        return Binary(self._span(self._start(left), self._end(right)), operator, left, right)

    def _refuse_chain(self, first: Token, second: Token) -> None:
        one = self._token_text(first)
        refusal = refusals.TEST_CHAIN if one == "?" else refusals.COMPARISON_CHAIN
        self._refuse(refusal, self._token_span(second), one)

    def begin_chain(self, values: Values) -> Values:
        operand, operator, more = values
        return [operand, operator, *more]

    def extend_chain(self, values: Values) -> Values:
        chain: Values
        chain, operator, more = values
        chain.append(operator)
        chain.extend(more)
        return chain

    def begin_test(self, values: Values) -> Values:
        return values

    def extend_test(self, values: Values) -> Values:
        chain: Values
        chain, operator, path = values
        chain += (operator, path)
        return chain

    def prefix(self, values: Values) -> Values:
        operand: Values
        operator, operand = values
        operand.insert(0, operator)
        return operand

    def application(self, values: Values) -> Expression:
        function: Expression
        function, *arguments = values[0]
        self.longest_call = max(self.longest_call, len(arguments))
        start = self._start(function)
        for argument in arguments:
            function = Apply(self._span(start, self._end(argument)), function, argument)
        return function

    # -- selection --

    def select(self, values: Values) -> Select:
        target, _, path = values
        return Select(self._span(self._start(target), path[-1].span.end), target, tuple(path), None)

    def select_with_default(self, values: Values) -> Select:
        target, _, path, _, default = values
        return Select(self._over(values), target, tuple(path), default)

    def call_of_or(self, values: Values) -> Apply:
        """``f or``: `or` is an argument here, because Nix has it so."""
        function, word = values
        return Apply(self._over(values), function, Variable(self._token_span(word), "or"))

    # -- simple expressions --

    def variable(self, values: Values) -> Variable:
        token = values[0]
        return Variable(self._token_span(token), self._token_text(token))

    def integer(self, values: Values) -> Integer:
        token = values[0]
        digits = self._token_text(token).lstrip("0") or "0"
        if len(digits) > 19 or int(digits) > refusals.LARGEST_INTEGER:
            self._refuse(refusals.LARGE_INTEGER, self._token_span(token))
            digits = "0"
        return Integer(self._token_span(token), int(digits))

    def path(self, values: Values) -> PathLiteral:
        token = values[0]
        text = self._token_text(token)
        if text.endswith("/") and not self.text.startswith("${", token.end):  # that is an error of its own
            self._refuse(refusals.PATH_SLASH, self._token_span(token))
        return PathLiteral(self._token_span(token), text)

    def parenthesised(self, values: Values) -> Expression:
        opening, node, closing = values
        self._parenthesised[id(node)] = (node, opening.start, closing.end)
        expression: Expression = node
        return expression

    def empty_list_literal(self, values: Values) -> ListLiteral:
        return ListLiteral(self._over(values), ())

    def list_literal(self, values: Values) -> ListLiteral:
        return ListLiteral(self._over(values), tuple(values[1]))

    def empty_set(self, values: Values) -> AttributeSet:
        return AttributeSet(self._over(values), (), recursive=False)

    def set(self, values: Values) -> AttributeSet:
        return AttributeSet(self._over(values), tuple(values[1]), recursive=False)

    def empty_recursive_set(self, values: Values) -> AttributeSet:
        return AttributeSet(self._over(values), (), recursive=True)

    def recursive_set(self, values: Values) -> AttributeSet:
        return AttributeSet(self._over(values), tuple(values[2]), recursive=True)

    def binding(self, values: Values) -> Binding:
        path, _, value, semicolon = values
        return Binding(self._span(path[0].span.start, semicolon.end), tuple(path), value)

    def inherit(self, values: Values) -> Inherit:
        return Inherit(self._over(values), None, tuple(values[1]))

    def inherit_from(self, values: Values) -> Inherit:
        return Inherit(self._over(values), values[2], tuple(values[4]))

    # -- strings --

    def plain_string(self, values: Values) -> String:
        token = values[0]
        text = self.text[token.start + 1 : token.end - 1]
        return String(self._token_span(token), (text,) if text else (), indented=False)

    def append_interpolation(self, values: Values) -> Values:
        parts: Values
        parts, _, expression, _ = values
        parts.append(expression)
        return parts

    def string(self, values: Values) -> String:
        parts = tuple(strings.unescape(self._token_text(p)) if type(p) is Token else p for p in values[1])
        return String(self._over(values), parts, indented=False)

    def indented_string(self, values: Values) -> String:
        parts: list[Any] = []
        for part in values[1]:
            if type(part) is not Token:
                parts.append(strings.Interpolated(part))
            elif part.kind == "INDENTED_TEXT":
                parts.append(strings.text_piece(self._token_text(part)))
            else:
                parts.append(strings.escape_piece(self._token_text(part)))
        return String(self._over(values), strings.strip_indentation(parts), indented=True)

    # -- what Nix has and this language has not --

    def refused_float(self, values: Values) -> Integer:
        span = self._token_span(values[0])
        self._refuse(refusals.FLOAT, span)
        return Integer(span, 0)

    def refused_uri(self, values: Values) -> String:
        span = self._token_span(values[0])
        self._refuse(refusals.URI, span)
        return String(span, (self._token_text(values[0]),), indented=False)

    def refused_absolute_path(self, values: Values) -> PathLiteral:
        self._refuse(refusals.ABSOLUTE_PATH, self._token_span(values[0]))
        return self.path(values)

    def refused_home_path(self, values: Values) -> PathLiteral:
        self._refuse(refusals.HOME_PATH, self._token_span(values[0]))
        return self.path(values)

    def refused_search_path(self, values: Values) -> PathLiteral:
        self._refuse(refusals.SEARCH_PATH, self._token_span(values[0]))
        return self.path(values)

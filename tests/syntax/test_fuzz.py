"""Issue 2.4: a fuzzer over the grammar and over bytes."""

from __future__ import annotations

from functools import cache

import lark
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.syntax import grammar
from envdsl.syntax.parser import decode, parse_expression
from tests.syntax.layer_texts import damaged, sentences
from tests.syntax.notation import EXPRESSIONS, findings, nodes, show, source

# Dynamic names in `let`, doubled formals and the like are refused by the builder, not by the grammar.
BEYOND_THE_GRAMMAR = {
    "syntax-not-associative",
    "syntax-dynamic-let",
    "syntax-dynamic-inherit",
    "syntax-dynamic-import",
    "syntax-duplicate-formal",
}

# Nix has them, this language has not: the grammar reads them, and the builder refuses them.
REFUSED = {
    "syntax-with",
    "syntax-float",
    "syntax-uri",
    "syntax-absolute-path",
    "syntax-home-path",
    "syntax-search-path",
}

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def codes(found: list[Diagnostic]) -> set[str]:
    return {diagnostic.code for diagnostic in found}


@cache
def oracle() -> lark.Lark:
    return lark.Lark(grammar.grammar_text(), parser="lalr", lexer="contextual", start=list(grammar.STARTS))


def accepted_by_lark(text: str, start: str) -> bool:
    try:
        oracle().parse(text, start=start)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


@quick
@given(sentences("file"))
def test_every_file_that_the_grammar_derives_is_read(text: str) -> None:
    assert codes(findings(text)) <= BEYOND_THE_GRAMMAR


@quick
@given(sentences("expression"))
def test_every_expression_that_the_grammar_derives_is_read_and_spanned_exactly(text: str) -> None:
    found = findings(text, expression=True)
    assert codes(found) <= BEYOND_THE_GRAMMAR
    if found:
        return
    for node in nodes(parse_expression(source(text))):
        if isinstance(node, EXPRESSIONS) and show(node) != "or":  # `f or`: only there it is an expression
            again = parse_expression(source(text[node.span.start : node.span.end]))
            assert show(again) == show(node)


@quick
@given(damaged("file"))
def test_our_automaton_takes_what_lark_takes_and_nothing_else(text: str) -> None:
    accepted = codes(findings(text)) <= BEYOND_THE_GRAMMAR | {"syntax-path-slash", "syntax-integer-too-large"} | REFUSED
    assert accepted == accepted_by_lark(text, "file")


@quick
@given(st.one_of(damaged("file"), st.text(), st.text("{}[]()\"'$;=.,:/ \nabx1#*\\")))
def test_any_text_gets_a_tree_or_errors_with_places(text: str) -> None:
    for found in (findings(text), findings(text, expression=True)):
        assert len(found) <= 20
        for diagnostic in found:
            assert diagnostic.code.startswith("syntax-")
            assert diagnostic.message
            assert diagnostic.span is not None
            assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)


@quick
@given(st.binary(max_size=300))
def test_any_bytes_get_a_tree_or_an_error(data: bytes) -> None:
    try:
        text = decode("a.layer", data).text
    except EnvdslError as error:
        text, decoded = "", {error.code}
    else:
        decoded = set()
    assert decoded <= {"syntax-not-utf8", "syntax-nul"}
    assert all(code.startswith("syntax-") for code in codes(findings(text)))

"""Operators bind as in Nix; each line is what `nix-instantiate --parse` would make of it, in this notation."""

from __future__ import annotations

import pytest

from tests.syntax.notation import findings, shape

BY_LEVEL = [
    # tightest first, each against its neighbour
    ("a.b c", "((a.b) c)"),
    ("f a.b", "(f (a.b))"),
    ("f a b", "((f a) b)"),
    ("-f a", "(-(f a))"),
    ("-a ? b", "((-a) ? b)"),
    ("a ++ b ? c", "(a ++ (b ? c))"),
    ("a ? b ++ c", "((a ? b) ++ c)"),
    ("a * b ++ c", "(a * (b ++ c))"),
    ("a + b * c", "(a + (b * c))"),
    ("a * b + c", "((a * b) + c)"),
    ("a / b - c", "((a / b) - c)"),
    ("!a + b", "(!(a + b))"),
    ("!a ? b", "(!(a ? b))"),
    ("!a // b", "((!a) // b)"),
    ("a // b + c", "(a // (b + c))"),
    ("a < b // c", "(a < (b // c))"),
    ("a == b < c", "(a == (b < c))"),
    ("a <= b != c", "((a <= b) != c)"),
    ("a && b == c", "(a && (b == c))"),
    ("a || b && c", "(a || (b && c))"),
    ("a && b || c", "((a && b) || c)"),
    ("a -> b || c", "(a -> (b || c))"),
    ("a || b -> c", "((a || b) -> c)"),
]
ASSOCIATIVE = [
    ("a - b - c", "((a - b) - c)"),
    ("a - b + c", "((a - b) + c)"),
    ("a / b * c", "((a / b) * c)"),
    ("a ++ b ++ c", "(a ++ (b ++ c))"),
    ("a // b // c", "(a // (b // c))"),
    ("a && b && c", "((a && b) && c)"),
    ("a || b || c", "((a || b) || c)"),
    ("a -> b -> c", "(a -> (b -> c))"),
]
PREFIXES = [
    ("- -a", "(-(-a))"),
    ("!!a", "(!(!a))"),
    ("!-a", "(!(-a))"),
    ("-!a + b", "(-(!(a + b)))"),
    ("a + -b * c", "(a + ((-b) * c))"),
    ("a + !b // c", "((a + (!b)) // c)"),
    ("a * !b + c", "(a * (!(b + c)))"),
    ("a == !b && c", "((a == (!b)) && c)"),
    ("a - -1", "(a - (-1))"),
    ("f -1", "(f - 1)"),
]
FORMS = [
    ("x: y: x + y", "(x: (y: (x + y)))"),
    ("if a then b else c + d", "(if a then b else (c + d))"),
    ("let a = b; in c // d", "(let a = b; in (c // d))"),
    ("assert a; b == c", "(assert a; (b == c))"),
    ("a.b.c or d.e or f", "(a.b.c or (d.e or f))"),
    ("a.b or c d", "((a.b or c) d)"),
    ("f a.b or c", "(f (a.b or c))"),
    ("[ a.b or c d ]", "[(a.b or c) d]"),
    ("[ f a (g b) ]", "[f a (g b)]"),
    ("(a b).c", "((a b).c)"),
    ("a ? b.c && d", "((a ? b.c) && d)"),
    ('a."b".${c}', "(a.b.${c})"),
    ("f or", "(f or)"),
]


@pytest.mark.parametrize(("text", "expected"), BY_LEVEL + ASSOCIATIVE + PREFIXES + FORMS)
def test_operators_bind_as_in_nix(text: str, expected: str) -> None:
    """Issue 2.1: precedence is Nix's."""
    assert shape(text) == expected


def test_or_is_a_name_where_nix_has_it_so() -> None:
    assert shape("{ or = 1; }.or") == "({or = 1;}.or)"
    assert shape("map or xs") == "((map or) xs)"
    assert shape("let inherit (a) or; in 1") == "(let inherit (a) or; in 1)"


@pytest.mark.parametrize(
    "text", ["a == b == c", "a != b == c", "a < b < c", "a <= b > c", "a ? b ? c", "a == b && c == d == e"]
)
def test_operators_that_do_not_associate_need_parentheses(text: str) -> None:
    assert [finding.code for finding in findings(text, expression=True)] == ["syntax-not-associative"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a-b", "a-b"),
        ("a - b", "(a - b)"),
        ("a -b", "(a - b)"),
        ("a/b", "<a/b>"),
        ("a / b", "(a / b)"),
        ("a//b", "(a // b)"),
        ("1+2/3", "<1+2/3>"),
        ("./a/b.txt", "<./a/b.txt>"),
        ("../a", "<../a>"),
        ("./.", "<./.>"),
        ("a->b", "(a- > b)"),
        ("a <b", "(a < b)"),
        ("x' y''", "(x' y'')"),
        ("1a", "(1 a)"),
        ("007", "7"),
        ("{}: x", "({}: x)"),
        ("a/*b*/c", "(a c)"),
        ("a# b\nc", "(a c)"),
        ("_a", "_a"),
        ("letx", "letx"),
        ("if-then", "if-then"),
        ("rec-x", "rec-x"),
    ],
)
def test_words_and_signs_are_told_apart_as_in_nix(text: str, expected: str) -> None:
    assert shape(text) == expected

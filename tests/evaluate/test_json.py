"""JSON out of values and back."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ("toJSON 1", '"1"'),
    ('toJSON "a"', '"\\"a\\""'),
    ("toJSON null", '"null"'),
    ("toJSON true", '"true"'),
    ('toJSON [ 1 "a" ]', '"[1,\\"a\\"]"'),
    ("toJSON { b = 1; a = [ ]; }", '"{\\"a\\":[],\\"b\\":1}"'),
    ("toJSON { }", '"{}"'),
    ('toJSON "é"', '"\\"é\\""'),
    ('toJSON "\\n\\t\\"\\\\"', '"\\"\\\\n\\\\t\\\\\\"\\\\\\\\\\""'),
    ('toJSON { __toString = self: "x"; }', '"\\"x\\""'),
    ('toJSON { outPath = "p"; a = x: x; }', '"\\"p\\""'),
    ("toJSON [ [ ] [ [ ] ] ]", '"[[],[[]]]"'),
    ("toJSON { a.b.c = 1; }", '"{\\"a\\":{\\"b\\":{\\"c\\":1}}}"'),
    ('fromJSON "1"', "1"),
    ('fromJSON "[1, null, true, \\"a\\"]"', '[ 1 null true "a" ]'),
    ('fromJSON "{\\"a\\": {\\"b\\": []}}"', "{ a = { b = [ ]; }; }"),
    ('fromJSON "-5"', "-5"),
    ('fromJSON "\\"\\\\u00e9\\""', '"é"'),
    ("fromJSON (toJSON { a = [ 1 { b = null; } ]; })", "{ a = [ 1 { b = null; } ]; }"),
    ('fromJSON " {} "', "{ }"),
    ('let s = { a = 1; b = [ "x" ]; }; in fromJSON (toJSON s) == s', "true"),
    ('length (fromJSON "[1.5, 2]")', "2"),
]

ERRORS: list[tuple[str, str]] = [
    ("toJSON (x: x)", "eval-json"),
    ("toJSON { a = map; }", "eval-json"),
    ('toJSON [ (throw "x") ]', "eval-throw"),
    ('fromJSON ""', "eval-json"),
    ('fromJSON "[1,"', "eval-json"),
    ('fromJSON "{a: 1}"', "eval-json"),
    ("fromJSON 1", "eval-type"),
    ('fromJSON "nul"', "eval-json"),
    ('fromJSON "[1] x"', "eval-json"),
    ("let a = { b = a; }; in toJSON a", "eval-infinite-recursion"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_json_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: toJSON and fromJSON are Nix's."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_json_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

"""Types and conversions to strings."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    (
        'map typeOf [ 1 true "a" null [ ] { } (x: x) map ]',
        '[ "int" "bool" "string" "null" "list" "set" "lambda" "lambda" ]',
    ),
    ('map isInt [ 1 true "1" ]', "[ true false false ]"),
    ("map isBool [ 1 true ]", "[ false true ]"),
    ('map isString [ "a" 1 ]', "[ true false ]"),
    ("map isNull [ null false ]", "[ true false ]"),
    ("map isList [ [ ] { } ]", "[ true false ]"),
    ("map isAttrs [ { } [ ] ]", "[ true false ]"),
    ("map isFunction [ (x: x) map (map 1) 1 ]", "[ true true true false ]"),
    ('isPath "a"', "false"),
    ("toString 1", '"1"'),
    ("toString (-1)", '"-1"'),
    ('toString "a"', '"a"'),
    ("toString true", '"1"'),
    ("toString false", '""'),
    ("toString null", '""'),
    ("toString [ 1 2 ]", '"1 2"'),
    ('toString [ 1 [ 2 3 ] "a" null true ]', '"1 2 3 a  1"'),
    ("toString [ ]", '""'),
    ("toString [ [ ] 1 ]", '"1"'),
    ("toString [ 1 [ ] 2 ]", '"1 2"'),
    ("toString [ [ ] [ ] ]", '""'),
    ('toString [ "" 1 ]', '" 1"'),
    ('toString { __toString = self: "x${self.a}"; a = "y"; }', '"xy"'),
    ('toString { outPath = "p"; }', '"p"'),
    ("toString { __toString = self: 1; }", '"1"'),
    ('"${{ __toString = self: "x"; }}"', '"x"'),
    ('"${{ outPath = "p"; }}"', '"p"'),
    ('"a" + { __toString = self: "b"; }', '"ab"'),
    ('{ __toString = self: "a"; } + "b"', '"ab"'),
    ('toString [ { __toString = self: "x"; } ]', '"x"'),
    ("true", "true"),
    ("null", "null"),
    ("[ true false null ]", "[ true false null ]"),
]

ERRORS: list[tuple[str, str]] = [
    ("toString { }", "eval-type"),
    ("toString (x: x)", "eval-type"),
    ('"${1}"', "eval-type"),
    ('"${null}"', "eval-type"),
    ('"${true}"', "eval-type"),
    ('"${[ ]}"', "eval-type"),
    ('"${{ }}"', "eval-type"),
    ('"${x: x}"', "eval-type"),
    ('"a" + 1', "eval-type"),
    ('"a" + null', "eval-type"),
    ('"a" + [ ]', "eval-type"),
    ('[ ] + "a"', "eval-type"),
    ("{ } + { }", "eval-type"),
    ("toString [ { } ]", "eval-type"),
    ('"${{ __toString = self: 1; }}"', "eval-type"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_types_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: types and string conversions are Nix's."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_types_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

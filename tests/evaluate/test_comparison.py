"""Equality, order and logic."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ("1 == 1", "true"),
    ("1 == 2", "false"),
    ("1 != 2", "true"),
    ('"a" == "a"', "true"),
    ('"a" == 1', "false"),
    ("null == null", "true"),
    ("null == false", "false"),
    ("true == 1", "false"),
    ("[ 1 2 ] == [ 1 2 ]", "true"),
    ("[ 1 2 ] == [ 2 1 ]", "false"),
    ("[ 1 ] == [ 1 2 ]", "false"),
    ("[ ] == [ ]", "true"),
    ("{ a = 1; } == { a = 1; }", "true"),
    ("{ a = 1; } == { a = 2; }", "false"),
    ("{ a = 1; } == { b = 1; }", "false"),
    ("{ a = 1; } == { a = 1; b = 2; }", "false"),
    ("{ } == { }", "true"),
    ("{ a = { b = [ 1 ]; }; } == { a.b = [ 1 ]; }", "true"),
    ("[ ] == { }", "false"),
    ("(x: x) == (x: x)", "false"),
    ("let f = x: x; in f == f", "false"),
    ("let f = x: x; in [ f ] == [ f ]", "true"),
    ("let s = { f = x: x; }; in s == s", "true"),
    ("let f = x: x; in { a = f; } == { a = f; }", "true"),
    ("[ (x: x) ] == [ (x: x) ]", "false"),
    ("(x: x) == 1", "false"),
    ("map == map", "false"),
    ("1 < 2", "true"),
    ("2 < 1", "false"),
    ("1 <= 1", "true"),
    ("1 >= 2", "false"),
    ("2 > 1", "true"),
    ('"a" < "b"', "true"),
    ('"B" < "a"', "true"),
    ('"a" < "ab"', "true"),
    ('"" < "a"', "true"),
    ('"a" <= "a"', "true"),
    ('"é" > "z"', "true"),
    ("[ 1 2 ] < [ 1 3 ]", "true"),
    ("[ 1 2 ] < [ 1 2 3 ]", "true"),
    ("[ 1 2 3 ] < [ 1 2 ]", "false"),
    ("[ ] < [ 1 ]", "true"),
    ("[ ] < [ ]", "false"),
    ('[ "a" ] < [ "b" ]', "true"),
    ("[ [ 1 ] ] < [ [ 2 ] ]", "true"),
    ("[ 1 ] <= [ 1 ]", "true"),
    ("[ 2 ] > [ 1 5 ]", "true"),
    ('[ 1 (throw "x") ] < [ 2 ]', "true"),
    ("true && true", "true"),
    ("true && false", "false"),
    ('false && (throw "x")', "false"),
    ('true || (throw "x")', "true"),
    ("false || true", "true"),
    ("!true", "false"),
    ("!false", "true"),
    ('false -> (throw "x")', "true"),
    ("true -> false", "false"),
    ("true -> true", "true"),
    ("false -> false -> false", "true"),
    ("!(1 == 2)", "true"),
    ("1 == 1 && 2 == 2", "true"),
    ("1 < 2 == true", "true"),
    ("1 + 1 == 2", "true"),
    ("true || false && false", "true"),
    ("false || false -> true", "true"),
    ("[ 1 ] ++ [ 2 ] == [ 1 2 ]", "true"),
    ("{ a = 1; } // { a = 2; } == { a = 2; }", "true"),
    ("lessThan 1 2", "true"),
    ('builtins.lessThan "b" "a"', "false"),
    ("!true || true", "true"),
    ('[ 1 "a" null true ] == [ 1 "a" null true ]', "true"),
    ('"a${"b"}" == "ab"', "true"),
    ("!{ a = true; }.a", "false"),
    ("!{ } ? a", "true"),
]

ERRORS: list[tuple[str, str]] = [
    ('1 < "a"', "eval-type"),
    ("null < null", "eval-type"),
    ("true < false", "eval-type"),
    ("{ } < { }", "eval-type"),
    ("[ 1 ] < 1", "eval-type"),
    ('[ 1 ] < [ "a" ]', "eval-type"),
    ("(x: x) < (x: x)", "eval-type"),
    ("1 && true", "eval-type"),
    ("true && 1", "eval-type"),
    ("0 || true", "eval-type"),
    ("false || 0", "eval-type"),
    ("!1", "eval-type"),
    ("null -> true", "eval-type"),
    ("true -> 1", "eval-type"),
    ("if 1 then 2 else 3", "eval-type"),
    ("if null then 2 else 3", "eval-type"),
    ("! 1 == 2", "eval-type"),
    ('(throw "x") == 1', "eval-throw"),
    ('[ (throw "x") ] == [ 1 ]', "eval-throw"),
    ("let a = { x = a; }; b = { x = b; }; in a == b", "eval-too-deep"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_comparison_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: equality, order and logic are Nix's."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_comparison_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

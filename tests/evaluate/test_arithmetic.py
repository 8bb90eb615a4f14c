"""Integers and their operators."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ("1 + 2 * 3", "7"),
    ("(1 + 2) * 3", "9"),
    ("7 / 2", "3"),
    ("-7 / 2", "-3"),
    ("7 / -2", "-3"),
    ("-7 / -2", "3"),
    ("0 - 5", "-5"),
    ("-5", "-5"),
    ("- 5 + 3", "-2"),
    ("10 - 2 - 3", "5"),
    ("100 / 10 / 5", "2"),
    ("2 * 3 / 4", "1"),
    ("9223372036854775807", "9223372036854775807"),
    ("-9223372036854775807 - 1", "-9223372036854775808"),
    ("-9223372036854775807 / -1", "9223372036854775807"),
    ("1 - -1", "2"),
    ("let x = 5; in -x", "-5"),
    ("- (1 + 2)", "-3"),
    ("builtins.add 1 2", "3"),
    ("builtins.sub 1 2", "-1"),
    ("mul 4 5", "20"),
    ("div (0 - 7) 2", "-3"),
    ("min 3 2", "2"),
    ("max 3 2", "3"),
    ('min "b" "a"', '"a"'),
    ("max [ 1 2 ] [ 1 3 ]", "[ 1 3 ]"),
    ("min 1 1", "1"),
    ("0 * 5", "0"),
    ("007", "7"),
    ("let f = x: x * x; in f 12", "144"),
]

ERRORS: list[tuple[str, str]] = [
    ("9223372036854775807 + 1", "eval-overflow"),
    ("0 - 9223372036854775807 - 2", "eval-overflow"),
    ("9223372036854775807 * 2", "eval-overflow"),
    ("(0 - 9223372036854775807 - 1) / (0 - 1)", "eval-overflow"),
    ("-(0 - 9223372036854775807 - 1)", "eval-overflow"),
    ("9223372036854775808", "syntax-integer-too-large"),
    ("1 / 0", "eval-division-by-zero"),
    ("div 1 0", "eval-division-by-zero"),
    ('1 + "a"', "eval-type"),
    ("1 + true", "eval-type"),
    ('1 - "a"', "eval-type"),
    ('"a" - 1', "eval-type"),
    ("null * 2", "eval-type"),
    ('-"a"', "eval-type"),
    ("-[ ]", "eval-type"),
    ('add "a" "b"', "eval-type"),
    ("true + 1", "eval-type"),
    ("1 + null", "eval-type"),
    ('min 1 "a"', "eval-type"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_arithmetic_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: arithmetic is Nix's: 64 bits, division as in C++."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_arithmetic_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

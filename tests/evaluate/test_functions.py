"""Functions, their arguments, and sets that can be called."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ("(x: x + 1) 2", "3"),
    ("(x: y: x + y) 1 2", "3"),
    ("(x: x) (y: y)", "<LAMBDA>"),
    ("builtins.map", "<PRIMOP>"),
    ("map (x: x)", "<PRIMOP-APP>"),
    ("foldl' (a: b: a) 1", "<PRIMOP-APP>"),
    ("let f = { a, b ? 2 }: a + b; in f { a = 1; }", "3"),
    ("let f = { a, b ? 2 }: a + b; in f { a = 1; b = 5; }", "6"),
    ("let f = { a ? b, b ? 1 }: a; in f { }", "1"),
    ("let f = { a ? b, b ? 1 }: a; in f { b = 7; }", "7"),
    ("let f = { a, ... }: a; in f { a = 1; z = 2; }", "1"),
    ("({ ... }: 1) { a = 1; }", "1"),
    ("({ }: 1) { }", "1"),
    ("let f = p@{ a, ... }: p; in f { a = 1; b = 2; }", "{ a = 1; b = 2; }"),
    ("let f = { a ? 1, ... }@p: p; in f { b = 2; }", "{ b = 2; }"),
    ("let f = { a ? p.b, ... }@p: a; in f { b = 2; }", "2"),
    ("let x = 1; f = { x ? x }: x; in f { x = 3; }", "3"),
    ('let f = { a, b ? throw "unused" }: a; in f { a = 1; }', "1"),
    ('let f = { a, b }: a; in f { a = 1; b = throw "unused"; }', "1"),
    ('(x: 1) (throw "unused")', "1"),
    ("(_: 1) 2", "1"),
    ("let x = 1; f = x: x; in f 2", "2"),
    ("let f = x: let x = 5; in x; in f 2", "5"),
    ("functionArgs ({ a, b ? 1 }: a)", "{ a = false; b = true; }"),
    ("functionArgs (x: x)", "{ }"),
    ("functionArgs ({ ... }: 1)", "{ }"),
    ("functionArgs map", "{ }"),
    ("functionArgs (map (x: x))", "{ }"),
    ("let s = { __functor = self: x: self.n + x; n = 10; }; in s 5", "15"),
    ("let s = { __functor = self: x: x * 2; }; in map s [ 1 2 ]", "[ 2 4 ]"),
    ("let s = { __functor = self: { a }: a; }; in s { a = 1; }", "1"),
    ("let s = { __functor = s2: s2.g; g = x: x + 1; }; in s 1", "2"),
    ("(let f = n: if n == 0 then 1 else n * f (n - 1); in f 10)", "3628800"),
    ("let fix = f: let x = f x; in x; in fix (self: { a = 1; b = self.a + 1; })", "{ a = 1; b = 2; }"),
    ("let compose = f: g: x: f (g x); in compose (x: x + 1) (x: x * 2) 5", "11"),
    ("let f = a: b: c: [ a b c ]; g = f 1 2; in g 3", "[ 1 2 3 ]"),
    ("let even = n: n == 0 || odd (n - 1); odd = n: n != 0 && even (n - 1); in even 10", "true"),
    ("x: x + 1", "<LAMBDA>"),
    ("(x: x) 1", "1"),
    ("let base = x: x; on = 1; in base on", "1"),
    ("isFunction { __functor = self: x: x; }", "false"),
    ("let f = { a, b ? a * 2, c ? b + 1 }: [ a b c ]; in f { a = 1; }", "[ 1 2 3 ]"),
    ("({ a ? 1 }: a) { }", "1"),
]

ERRORS: list[tuple[str, str]] = [
    ("1 2", "eval-not-a-function"),
    ('"a" 1', "eval-not-a-function"),
    ("{ } 1", "eval-not-a-function"),
    ("null 1", "eval-not-a-function"),
    ("(x: x) 1 2", "eval-not-a-function"),
    ("({ a }: a) { }", "eval-missing-argument"),
    ("({ a }: a) { a = 1; b = 2; }", "eval-unexpected-argument"),
    ("({ }: 1) { a = 1; }", "eval-unexpected-argument"),
    ("({ a }: a) 1", "eval-type"),
    ("({ a }: a) [ ]", "eval-type"),
    ("functionArgs 1", "eval-type"),
    ("functionArgs { __functor = self: x: x; }", "eval-type"),
    ("({ a, a }: a) { a = 1; }", "syntax-duplicate-formal"),
    ("(a@{ a }: a) { a = 1; }", "syntax-duplicate-formal"),
    ("({ a ? b, b ? a }: a) { }", "eval-infinite-recursion"),
    ("{ __functor = 1; } 2", "eval-not-a-function"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_functions_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: functions are Nix's: patterns, defaults, functors."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_functions_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

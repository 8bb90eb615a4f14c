"""What is evaluated, and what is not."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ('let x = throw "unused"; in 1', "1"),
    ('(x: 1) (throw "unused")', "1"),
    ('length [ (throw "a") (throw "b") ]', "2"),
    ('attrNames { a = throw "x"; }', '[ "a" ]'),
    ('if true then 1 else throw "x"', "1"),
    ("let a = b; b = c; c = 1; in a", "1"),
    ("let xs = [ 1 ] ++ map (x: x + 1) [ 1 ]; in xs", "[ 1 2 ]"),
    ("let l = [ 1 (elemAt l 0) ]; in l", "[ 1 1 ]"),
    ("let s = { a = 1; b = s.a; }; in s", "{ a = 1; b = 1; }"),
    ('rec { x = y; y = 1; z = throw "x"; }.x', "1"),
    ('head (map (x: x) [ 1 (throw "x") ])', "1"),
    ('({ a = 1; } // { b = throw "x"; }).a', "1"),
    ("seq 1 2", "2"),
    ('seq { a = throw "x"; } 2', "2"),
    ('seq [ (throw "x") ] 2', "2"),
    ("deepSeq { a = [ 1 ]; } 2", "2"),
    ("deepSeq (let a = { b = a; }; in a) 1", "1"),
    ("let x = { a = 1; }; in deepSeq x x.a", "1"),
    ("tryEval 1", "{ success = true; value = 1; }"),
    ('tryEval (throw "x")', "{ success = false; value = false; }"),
    ("tryEval (assert false; 1)", "{ success = false; value = false; }"),
    ('(tryEval { a = throw "x"; }).success', "true"),
    ('tryEval (tryEval (throw "x")).success', "{ success = true; value = false; }"),
    ('(tryEval (deepSeq { a = throw "x"; } 1)).success', "false"),
    ('let bad = throw "x"; in [ (tryEval bad).success (tryEval bad).success ]', "[ false false ]"),
    ('(tryEval (let x = throw "a"; in x + 1)).value', "false"),
    ('(tryEval [ (throw "x") ]).success', "true"),
    ("assert true; 1", "1"),
    ("assert 1 == 1; assert 2 == 2; 3", "3"),
    ('trace "hello" 1', "1"),
    ("trace { a = 1; } 2", "2"),
    ("builtins.trace 1 2", "2"),
    ("let f = x: x; in f (f (f 1))", "1"),
    ('foldl\' (a: x: if x > 2 then throw "never" else a + x) 0 [ 1 2 ]', "3"),
    ('let inherit (throw "x") a; in 1', "1"),
    ("let a = 1; in let b = a; a = 2; in b", "2"),
    ('(x: x.a) { a = 1; b = throw "x"; }', "1"),
    ("let in 1", "1"),
    ("let true = false; in true", "false"),
    ("let null = 1; in null", "1"),
    ('let map = f: xs: "mine"; in map 1 2', '"mine"'),
    ("builtins ? map", "true"),
    ("builtins.builtins.builtins.length [ 1 2 ]", "2"),
    ("builtins.true", "true"),
    ("builtins ? foo", "false"),
    ("builtins.foo or 1", "1"),
]

ERRORS: list[tuple[str, str]] = [
    ('throw "x"', "eval-throw"),
    ('throw "a${"b"}"', "eval-throw"),
    ('abort "x"', "eval-abort"),
    ('tryEval (abort "x")', "eval-abort"),
    ('tryEval (1 + "a")', "eval-type"),
    ("tryEval { }.a", "eval-missing-attribute"),
    ("tryEval (head [ ])", "eval-out-of-bounds"),
    ("assert false; 1", "eval-assertion"),
    ("assert 1; 1", "eval-type"),
    ('seq (throw "x") 1', "eval-throw"),
    ('deepSeq [ (throw "x") ] 1', "eval-throw"),
    ('deepSeq { a.b = throw "x"; } 1', "eval-throw"),
    ("throw 1", "eval-type"),
    ("let a = a; in a", "eval-infinite-recursion"),
    ("rec { a = a; }.a", "eval-infinite-recursion"),
    ("let a = b; b = a; in a", "eval-infinite-recursion"),
    ("let a = a + 1; in a", "eval-infinite-recursion"),
    ("tryEval (let a = a; in a)", "eval-infinite-recursion"),
    ("let f = x: f x; in f 1", "eval-too-deep"),
    ("let f = x: 1 + f (x + 1); in f 1", "eval-too-deep"),
    ("let x = 1; in y", "eval-undefined-name"),
    ("let f = x: y; in 1", "eval-undefined-name"),
    ("if true then 1 else nope", "eval-undefined-name"),
    ("fooBar", "eval-undefined-name"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_laziness_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: evaluation is lazy, and shares what it has evaluated."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_laziness_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

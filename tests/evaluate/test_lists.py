"""Lists and their builtins."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ("[ ]", "[ ]"),
    ('[ 1 "a" [ 2 ] { } null true (x: x) ]', '[ 1 "a" [ 2 ] { } null true <LAMBDA> ]'),
    ("[ 1 ] ++ [ ] ++ [ 2 3 ]", "[ 1 2 3 ]"),
    ("[ 1 (1 + 1) (-3) ]", "[ 1 2 -3 ]"),
    ("[ { a = 1; }.a ]", "[ 1 ]"),
    ("let f = x: x; in [ f 1 ]", "[ <LAMBDA> 1 ]"),
    ("map (x: x + 1) [ 1 2 3 ]", "[ 2 3 4 ]"),
    ("map (x: x) [ ]", "[ ]"),
    ('length (map (x: throw "x") [ 1 2 ])', "2"),
    ("filter (x: x > 1) [ 1 2 3 ]", "[ 2 3 ]"),
    ("filter (x: false) [ 1 2 ]", "[ ]"),
    ("foldl' (a: b: a + b) 0 [ 1 2 3 ]", "6"),
    ("foldl' (a: b: a ++ [ b ]) [ ] [ 1 2 ]", "[ 1 2 ]"),
    ("foldl' (a: b: b) 0 [ ]", "0"),
    ('foldl\' (a: b: b) (throw "unused") [ 1 ]', "1"),
    ("concatMap (x: [ x (x * 10) ]) [ 1 2 ]", "[ 1 10 2 20 ]"),
    ("concatMap (x: [ ]) [ 1 2 ]", "[ ]"),
    ("concatLists [ [ 1 ] [ ] [ 2 3 ] ]", "[ 1 2 3 ]"),
    ("concatLists [ ]", "[ ]"),
    ("length [ 1 2 3 ]", "3"),
    ('length [ (throw "x") ]', "1"),
    ("head [ 1 2 ]", "1"),
    ("tail [ 1 2 3 ]", "[ 2 3 ]"),
    ("tail [ 1 ]", "[ ]"),
    ('head [ 1 (throw "x") ]', "1"),
    ("elem 2 [ 1 2 ]", "true"),
    ("elem 3 [ 1 2 ]", "false"),
    ("elem [ 1 ] [ [ 1 ] ]", "true"),
    ('elem 1 [ 1 (throw "x") ]', "true"),
    ("elem (x: x) [ ]", "false"),
    ("elemAt [ 1 2 3 ] 0", "1"),
    ("elemAt [ 1 2 3 ] 2", "3"),
    ("all (x: x > 0) [ 1 2 ]", "true"),
    ("all (x: x > 1) [ 1 2 ]", "false"),
    ('all (x: throw "x") [ ]', "true"),
    ("any (x: x > 1) [ 1 2 ]", "true"),
    ("any (x: x > 2) [ 1 2 ]", "false"),
    ('any (x: throw "x") [ ]', "false"),
    ('any (x: x == 1) [ 1 (throw "x") ]', "true"),
    ('all (x: x == 2) [ 1 (throw "x") ]', "false"),
    ("sort (a: b: a < b) [ 3 1 2 ]", "[ 1 2 3 ]"),
    ('sort builtins.lessThan [ "b" "a" "C" ]', '[ "C" "a" "b" ]'),
    (
        "sort (a: b: a.k < b.k) [ { k = 2; v = 1; } { k = 1; v = 2; } { k = 2; v = 3; } { k = 1; v = 4; } ]",
        "[ { k = 1; v = 2; } { k = 1; v = 4; } { k = 2; v = 1; } { k = 2; v = 3; } ]",
    ),
    ("sort lessThan [ ]", "[ ]"),
    ('sort (a: b: throw "x") [ 1 ]', "[ 1 ]"),
    ("sort lessThan [ 5 4 3 2 1 0 9 8 7 6 ]", "[ 0 1 2 3 4 5 6 7 8 9 ]"),
    ("partition (x: x > 2) [ 1 3 2 4 ]", "{ right = [ 3 4 ]; wrong = [ 1 2 ]; }"),
    ('groupBy (x: if x > 2 then "big" else "small") [ 1 3 2 4 ]', "{ big = [ 3 4 ]; small = [ 1 2 ]; }"),
    ("groupBy (x: x) [ ]", "{ }"),
    ('groupBy (substring 0 1) [ "foo" "bar" "baz" ]', '{ b = [ "bar" "baz" ]; f = [ "foo" ]; }'),
    ("genList (x: x * x) 5", "[ 0 1 4 9 16 ]"),
    ("genList (x: x) 0", "[ ]"),
    ('length (genList (x: throw "x") 3)', "3"),
    ("range 1 3", "[ 1 2 3 ]"),
    ("range 3 1", "[ ]"),
    ("range 2 2", "[ 2 ]"),
    ("range (0 - 1) 1", "[ -1 0 1 ]"),
    ("optional true 1", "[ 1 ]"),
    ('optional false (throw "x")', "[ ]"),
    ("optionals true [ 1 2 ]", "[ 1 2 ]"),
    ('optionals false (throw "x")', "[ ]"),
    ("optionals true 1", "1"),
    ('catAttrs "a" [ { a = 1; } { b = 0; } { a = 2; } ]', "[ 1 2 ]"),
    ("let xs = [ 1 2 ]; in [ xs xs ] == [ [ 1 2 ] [ 1 2 ] ]", "true"),
    ("map (f: f 1) [ (x: x + 1) (add 10) ]", "[ 2 11 ]"),
    ("foldl' (f: x: f x) (a: b: a + b) [ 1 2 ]", "3"),
]

ERRORS: list[tuple[str, str]] = [
    ("[ 1 ] ++ 2", "eval-type"),
    ("1 ++ [ 2 ]", "eval-type"),
    ("[ ] ++ null", "eval-type"),
    ("map 1 2", "eval-type"),
    ("map 1 [ 2 ]", "eval-not-a-function"),
    ("filter (x: 1) [ 1 ]", "eval-type"),
    ("head [ ]", "eval-out-of-bounds"),
    ("tail [ ]", "eval-out-of-bounds"),
    ("elemAt [ 1 ] 1", "eval-out-of-bounds"),
    ("elemAt [ 1 ] (0 - 1)", "eval-out-of-bounds"),
    ('elemAt [ 1 ] "0"', "eval-type"),
    ("length 1", "eval-type"),
    ("length { }", "eval-type"),
    ("concatLists [ 1 ]", "eval-type"),
    ("concatMap (x: x) [ 1 ]", "eval-type"),
    ("genList (x: x) (0 - 1)", "eval-out-of-bounds"),
    ("sort (a: b: 1) [ 1 2 ]", "eval-type"),
    ('sort lessThan [ 1 "a" ]', "eval-type"),
    ("groupBy (x: 1) [ 1 ]", "eval-type"),
    ("all (x: 1) [ 1 ]", "eval-type"),
    ("optional 1 2", "eval-type"),
    ("optional null 2", "eval-type"),
    ("foldl' 1 0 [ 1 ]", "eval-not-a-function"),
    ('foldl\' (a: b: throw "x") 0 [ 1 ]', "eval-throw"),
    ('foldl\' (a: b: a) (throw "x") [ ]', "eval-throw"),
    ("partition (x: null) [ 1 ]", "eval-type"),
    ('elem (throw "x") [ 1 ]', "eval-throw"),
    ('range "a" 2', "eval-type"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_lists_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: lists and their builtins are Nix's."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_lists_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

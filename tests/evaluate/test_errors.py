"""What an error of an expression says: its place, its trail, its hint."""

from __future__ import annotations

import pytest

from envdsl.errors import EnvdslError
from envdsl.evaluate.expression import evaluate_expression
from tests.evaluate.language import error
from tests.evaluate.projects import shown


@pytest.mark.parametrize(
    ("expression", "text", "code"),
    [
        ("1 + (2 + true)", "2 + true", "eval-type"),
        ('"a${toString 1}${2}"', "2", "eval-type"),
        ("{ a = 1; }.b", "b", "eval-missing-attribute"),
        ("{ a.b = 1; }.a.c", "c", "eval-missing-attribute"),
        ("let s = 1; in s.a", "s", "eval-type"),
        ("if 1 + 1 then 1 else 2", "1 + 1", "eval-type"),
        ("true && 1", "1", "eval-type"),
        ("assert 1 == 2; 3", "1 == 2", "eval-assertion"),
        ("[ 1 (head [ ]) ]", "head [ ]", "eval-out-of-bounds"),
        ("map (x: x.a) [ { } ]", "a", "eval-missing-attribute"),
        ('map (x: hasPrefix x "a") [ 1 ]', 'hasPrefix x "a"', "eval-type"),
        ("let f = { a }: a; in f { b = 1; }", "f { b = 1; }", "eval-missing-argument"),
        ("let a = 1 + b; b = a; in a", "a", "eval-infinite-recursion"),
        ("{ a = 1; a = 2; }", "a", "eval-duplicate-attribute"),
        ("[ lengt ]", "lengt", "eval-undefined-name"),
        ("1 2", "1 2", "eval-not-a-function"),
        ("{ ${1} = 1; }", "1", "eval-type"),
        ('sort lessThan [ 1 "a" ]', 'sort lessThan [ 1 "a" ]', "eval-type"),
    ],
)
def test_an_error_marks_the_expression_at_fault(expression: str, text: str, code: str) -> None:
    """Issue 2.3: place and code."""
    assert shown(error(expression)) == (text, code)


def test_the_second_place_of_a_double_definition_is_marked_and_the_first_noted() -> None:
    found = error("{ a.b = 1;\n  a.b = 2; }")
    assert str(found.span) == "<expr>:2:5"
    assert [str(note.span) for note in found.trail] == ["<expr>:1:5"]


def test_the_trail_leads_from_the_fault_outwards() -> None:
    """Issue 2.3: the trail of definitions."""
    found = error('let f = x: x + 1; in { a = { b = f "c"; }.b; }')
    assert [note.message for note in found.trail] == [
        "while calling `f`",
        "while evaluating `b`",
        "while evaluating `a`",
    ]


def test_builtins_stand_in_the_trail() -> None:
    found = error('map (x: x + 1) [ "a" ]')
    assert found.trail == ()
    found = error("concatMap (x: x + 1) [ 1 ]")
    assert [note.message for note in found.trail] == ["while calling the builtin `concatMap`"]


def test_the_trail_is_short_however_deep_the_calls() -> None:
    found = error('let f = n: if n == 0 then throw "deep" else 1 + f (n - 1); in f 1000')
    assert found.message == "deep"
    assert 1 <= len(found.trail) <= 10
    chain = "".join(f"f{n} = x: f{n + 1} x; " for n in range(40))
    found = error(f'let {chain} f40 = x: throw "deep"; in f0 1')
    assert len(found.trail) == 10
    assert found.trail[0].message == "while calling `f40`"
    assert found.trail[-1].message == "while calling `f0`"


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("lenght [ ]", "did you mean `length`?"),
        ("let version = 1; in verson", "did you mean `version`?"),
        ("{ name = 1; }.nam", "did you mean `name`?"),
        ("{ a = 1; b = 2; }.zzz", "it has a, b"),
        ("{ }.a", "it is empty"),
        ("({ name }: 1) { name = 1; nam = 2; }", "did you mean `name`?"),
        ('"${1}"', "use `toString` to make a string of it"),
        ('[ "a" ] + [ "b" ]', "lists are joined by `++`"),
        ("{ a = 1; } + { b = 2; }", "sets are joined by `//`"),
        ("[ six ]", 'if it is the name of a package or the like, quote it: "six"'),
        ("[ lenght ]", "did you mean `length`?"),
    ],
)
def test_hints(expression: str, hint: str) -> None:
    """Issue 2.3: "did you mean"."""
    assert error(expression).hint == hint


def test_all_undefined_names_of_an_expression_are_reported() -> None:
    with pytest.raises(EnvdslError) as raised:
        evaluate_expression("[ foo bar (x: baz) ]")
    assert [shown(found)[0] for found in raised.value.diagnostics] == ["foo", "bar", "baz"]


def test_trace_reports_to_the_caller() -> None:
    said: list[str] = []
    evaluate_expression('trace "a" (trace { b = [ 1 (1 + 1) ]; c = throw "x"; } 1)', trace=said.append)
    assert said == ["a", "{ b = <CODE>; c = <CODE>; }"]

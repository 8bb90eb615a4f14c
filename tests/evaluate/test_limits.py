"""Hostile input gets a clear error: no traceback, no hang, no crash."""

from __future__ import annotations

import gc
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.evaluate.builtins import GLOBALS
from envdsl.evaluate.expression import evaluate_expression
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.project import evaluate
from envdsl.evaluate.render import render_nix, to_json
from tests.evaluate.language import MemoryReader, error
from tests.patience import TWO_SECONDS

LONG = 'concatStringsSep "" (genList (x: "xxxxxxxxxx") 50000)'
DEEP = "foldl' (a: i: [ a ]) [ ] (range 1 20000)"
SHARED = "foldl' (a: i: { l = a; r = a; }) { } (range 1 60)"

HOSTILE = [
    # endless recursion
    ("let a = a; in a", "eval-infinite-recursion"),
    ("let a = [ b ]; b = head a; in b", "eval-infinite-recursion"),
    ("let f = x: f (x + 1); in f 1", "eval-too-deep"),
    ("let f = x: f x + 1; in f 1", "eval-too-deep"),
    ("let f = self: { __functor = f; }; in f 1 2", "eval-too-deep"),
    ("let s = { __toString = self: self; }; in toString s", "eval-too-deep"),
    ('let s = { outPath = s; }; in "${s}"', "eval-too-deep"),
    ("let s = { outPath = s; }; in toJSON s", "eval-too-many-steps"),
    ("let l = [ l ]; in toString l", "eval-too-deep"),
    ("let l = [ l ]; m = [ m ]; in l == m", "eval-too-deep"),
    ("let l = [ l ]; m = [ m ]; in l < m", "eval-too-deep"),
    ("let g = x: sort (a: b: g x) [ 1 2 ]; in g 1", "eval-too-deep"),
    ("let g = x: map (y: head (g y)) [ 1 ]; in head (g 1)", "eval-too-deep"),
    ("let g = x: (mapAttrs (n: y: (g y).a) { a = 1; }).a; in g 1", "eval-too-deep"),
    ("let a = { b = a; }; in toJSON a", "eval-infinite-recursion"),
    # growth
    ("let f = n: if n == 0 then 1 else f (n - 1) + f (n - 1); in f 40", "eval-too-many-steps"),
    ('foldl\' (a: i: a + a) "x" (range 1 60)', "eval-too-large"),
    ("foldl' (a: i: a ++ a) [ 1 ] (range 1 60)", "eval-too-large"),
    ("range 1 1000000000000", "eval-too-large"),
    ("genList (x: x) 9223372036854775807", "eval-too-large"),
    (f"let s = {LONG}; in concatStringsSep s (genList (x: s) 10000)", "eval-too-large"),
    (f'let s = {LONG}; in replaceStrings [ "x" ] [ s ] s', "eval-too-large"),
    (f"let s = {LONG}; in genList (i: s + toString i) 10000", "eval-too-large"),
    ("concatMap (x: range 1 100000) (range 1 100)", "eval-too-large"),
    ("concatLists (genList (x: range 1 100000) 100)", "eval-too-large"),
    # work without growth
    (f'let s = {LONG}; in filter (i: s == s + "") (range 1 100000)', "eval-too-large"),
    (f'let s = {LONG}; t = s + ""; in filter (i: s == t) (range 1 100000)', "eval-too-many-steps"),
    (f"let s = {LONG}; in filter (i: splitString s s == [ ]) (range 1 100000)", "eval-too-many-steps"),
    (f'let s = {LONG}; in filter (i: replaceStrings [ "x" ] [ "y" ] s == "") (range 1 100000)', "eval-too-many-steps"),
    ("let l = genList (x: x) 200000; in filter (x: elem x l) l", "eval-too-many-steps"),
    ("length (sort lessThan (genList (x: 0 - x) 100000))", "eval-too-many-steps"),
    (f"{SHARED} == {SHARED}", "eval-too-many-steps"),
    (f"toString ({SHARED.replace('{ l = a; r = a; }', '[ a a ]').replace('{ }', '[ ]')})", "eval-too-many-steps"),
    (f"toJSON ({SHARED})", "eval-too-large"),
    # depth of data
    (f"toString ({DEEP})", "eval-too-deep"),
    (f"deepSeq ({DEEP}) 1", "eval-too-deep"),
    (f"({DEEP}) == ({DEEP})", "eval-too-deep"),
    (DEEP, "eval-too-deep"),
    ("foldl' (a: i: x: a x) (x: x) (range 1 20000) 1", "eval-too-deep"),
    ('fromJSON (concatStringsSep "" (genList (x: "[") 100000))', "eval-too-deep"),
    ("let " + "".join(f"a{n} = a{n + 1}; " for n in range(6000)) + "a6000 = 1; in a0", "eval-too-deep"),
    # regular expressions
    (f'match "(a|a)*b" ({LONG})', "eval-too-large"),
    (f'match "{"a" * 2001}" "a"', "eval-too-large"),
    ('match "((((a{1,30}){1,30}){1,30}){1,30})" "aaa"', "eval-regex"),
    ('split "(a)|.*b" (concatStringsSep "" (genList (x: "a") 200000))', "eval-too-many-steps"),
]


@pytest.mark.parametrize(("expression", "code"), HOSTILE)
def test_hostile_expressions_get_an_error(expression: str, code: str) -> None:
    """Issue 2.4: recursion, steps, sizes and depth are bounded."""
    limits = Limits(steps=100_000) if code == "eval-too-many-steps" else Limits()
    with pytest.raises(EnvdslError) as raised:
        evaluate_expression(expression, limits=limits)
    assert raised.value.code == code


@pytest.mark.parametrize(
    "expression",
    [
        "let f = n: if n == 0 then 1 else f (n - 1) + f (n - 1); in f 40",
        "length (sort lessThan (genList (x: 0 - x) 100000))",
        f"let s = {LONG}; in filter (i: splitString s s == [ ]) (range 1 100000)",
        f"{SHARED} == {SHARED}",
    ],
)
def test_the_whole_budget_is_spent_within_two_seconds(expression: str) -> None:
    """Issue 2.4: each a clear error within two seconds."""
    begin = time.process_time()
    assert error(expression).code == "eval-too-many-steps"
    assert time.process_time() - begin < TWO_SECONDS


@pytest.mark.parametrize(
    "pattern",
    ["(a*)*b", "(a|aa)+$", "(.*)(.*)(.*)(.*)(.*)(.*)x", "(([ab]{0,255}){0,3}c){0,1}", "(x+x+)+y", "([a-z]+)*[0-9]"],
)
def test_no_regular_expression_hangs(pattern: str) -> None:
    """Issue 2.4: patterns that make a backtracking matcher hang."""
    begin = time.process_time()
    subject = 'concatStringsSep "" (genList (x: "aaaaaaaaaaaaaaaaaaaa") 5000)'
    assert render_nix(evaluate_expression(f'match "{pattern}" ({subject} + "!")')) == "null"
    assert time.process_time() - begin < TWO_SECONDS


def test_a_shared_value_is_too_large_to_print_not_to_hold() -> None:
    value = evaluate_expression(SHARED)
    for write in (render_nix, to_json):
        with pytest.raises(EnvdslError) as raised:
            write(value)
        assert raised.value.code == "eval-too-large"


def test_deep_data_prints_without_recursion() -> None:
    value = evaluate_expression("foldl' (a: i: [ a ]) [ ] (range 1 4000)")
    assert render_nix(value).count("[") == 4001
    assert to_json(value) == "[" * 4001 + "]" * 4001


def test_honest_recursion_has_room() -> None:
    assert evaluate_expression("let f = n: if n == 0 then 0 else 1 + f (n - 1); in f 2000") == 2000
    assert evaluate_expression("foldl' (a: b: a + b) 0 (range 1 20000)") == 200010000


def test_limits_are_the_callers_to_set() -> None:
    with pytest.raises(EnvdslError) as raised:
        evaluate_expression("length (map (x: x) (range 1 100))", limits=Limits(items=50))
    assert raised.value.code == "eval-too-large"
    with pytest.raises(EnvdslError) as raised:
        evaluate_expression("foldl' (a: b: a + b) 0 (range 1 100)", limits=Limits(steps=50))
    assert raised.value.code == "eval-too-many-steps"


def test_the_interpreter_of_python_is_left_as_it_was() -> None:
    before = sys.getrecursionlimit(), gc.isenabled()
    error("let f = x: f x; in f 1")
    assert (sys.getrecursionlimit(), gc.isenabled()) == before


def test_evaluations_in_threads_do_not_disturb_each_other() -> None:
    before = sys.getrecursionlimit(), gc.isenabled()
    results: list[object] = []

    def work() -> None:
        for depth in (2000, 10, 2000, 10):
            source = f"let f = n: if n == 0 then 0 else 1 + f (n - 1); in f {depth}"
            results.append(evaluate_expression(source))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results, key=str) == [10] * 8 + [2000] * 8
    assert (sys.getrecursionlimit(), gc.isenabled()) == before


def test_evaluation_works_on_a_small_stack() -> None:
    """Depth costs heap, not C stack: a thread with little of it can evaluate whatever the limits allow.

    Not quite so little since Python 3.13, which frees nested values up to ten thousand levels deep in C.
    """
    results: list[str] = []

    def work() -> None:
        for expression in ("let f = x: 1 + f x; in f 1", DEEP, "let g = x: sort (a: b: g x) [ 1 2 ]; in g 1"):
            try:
                evaluate_expression(expression)
            except EnvdslError as failure:
                results.append(failure.code)

    previous = threading.stack_size(256 * 1024 if sys.version_info < (3, 13) else 4 * 1024 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(previous)
    assert results == ["eval-too-deep"] * 3


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe\x00",
        b"base \xe9 { }",
        b"\0" * 100,
        b"(" * 100_000,
        b"base a { x = " + b"[" * 100_000,
        b'"' * 99_999,
        b"let a = " + b"1 + " * 20_000 + b"1;",
        b"''" * 50_001,
        b"${" * 50_000,
        b"/*" * 50_000,
        b"base a " * 20_000,
    ],
)
def test_hostile_files_get_an_error(data: bytes) -> None:
    """Issue 2.4: nested brackets, bytes that are not UTF-8."""
    with pytest.raises(EnvdslError):
        evaluate(["a.layer"], MemoryReader({"a.layer": data}))


def test_a_loop_that_declares_without_end_is_stopped() -> None:
    text = (
        'for (a in range 1 500) { for (b in range 1 500) { base "l${toString a}-${toString b}" { python = "3.12"; } } }'
    )
    begin = time.process_time()
    with pytest.raises(EnvdslError) as raised:
        evaluate(["a.layer"], MemoryReader({"a.layer": text}))
    assert raised.value.code in ("eval-too-large", "eval-too-many-steps")
    assert time.process_time() - begin < TWO_SECONDS


def test_a_spent_budget_is_reported_once() -> None:
    layers = "".join(f'base l{n} {{ python = "3.12"; description = bomb; }}\n' for n in range(50))
    bomb = 'let f = n: if n == 0 then "" else f (n - 1) + f (n - 1); let bomb = f 40;'
    with pytest.raises(EnvdslError) as raised:
        evaluate(["a.layer"], MemoryReader({"a.layer": bomb + layers}))
    assert [found.code for found in raised.value.diagnostics] == ["eval-too-many-steps"]


# -- random programs ---------------------------------------------------------------------------------

NAMES = ["a", "b", "f", "xs"]


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = ["+", "-", "*", "/", "++", "//", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "->"]
    name = st.sampled_from(NAMES)
    builtin = st.sampled_from(sorted(GLOBALS))
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(operators), inner),
        st.builds("({} {})".format, inner, inner),
        st.builds("({} {})".format, builtin, inner),
        st.builds("({} {} {})".format, builtin, inner, inner),
        st.builds("({} {} {} {})".format, builtin, inner, inner, inner),
        st.builds("(if {} then {} else {})".format, inner, inner, inner),
        st.builds("(let {} = {}; {} = {}; in {})".format, st.just("a"), inner, st.just("b"), inner, inner),
        st.builds("({}: {})".format, name, inner),
        st.builds("({{ a ? {}, ... }}@xs: {})".format, inner, inner),
        st.builds("[ {} {} ]".format, inner, inner),
        st.builds("{{ a = {}; b.f = {}; }}".format, inner, inner),
        st.builds("rec {{ a = {}; ${{{}}} = {}; }}".format, inner, inner, inner),
        st.builds("({}.{} or {})".format, inner, name, inner),
        st.builds("({} ? {})".format, inner, name),
        st.builds('"x${{{}}}"'.format, inner),
        st.builds("(assert {}; {})".format, inner, inner),
        st.builds("(-{})".format, inner),
        st.builds("(!{})".format, inner),
    )


LEAVES = st.sampled_from(
    ["0", "1", "9223372036854775807", '""', '"a"', '"[a-z]+"', "true", "null", "[ ]", "{ }", "./p", "(x: x)", *NAMES]
)
PROGRAMS = st.recursive(LEAVES, _compound, max_leaves=12).map(
    lambda body: f'let a = 1; b = {{ f = x: x; }}; f = x: y: x; xs = [ 1 "2" ]; in {body}'
)
SMALL = Limits(steps=20_000, depth=300, memory=2**20, string=10_000, items=2_000)


def outcome(program: str) -> tuple[str, ...]:
    try:
        return ("value", render_nix(evaluate_expression(program, limits=SMALL)))
    except EnvdslError as failure:
        return tuple(str((found.code, found.message, found.hint, str(found.span))) for found in failure.diagnostics)


@settings(max_examples=150, deadline=None)
@given(PROGRAMS)
def test_a_random_program_gives_a_value_or_an_error_and_always_the_same(program: str) -> None:
    """Issue 2.4: a fuzzer; evaluation is deterministic, and raises EnvdslError or nothing."""
    assert outcome(program) == outcome(program)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_random_bytes_give_an_error_or_a_specification(data: bytes) -> None:
    """Issue 2.4: a fuzzer over bytes."""
    try:
        spec = evaluate(["a.layer"], MemoryReader({"a.layer": data}))
    except EnvdslError:
        return
    assert spec.inputs.keys() == {"a.layer"}


@settings(max_examples=50, deadline=None)
@given(PROGRAMS)
def test_a_random_attribute_never_escapes_the_checks(program: str) -> None:
    attributes = "".join(
        f"{name} = value; " for name in ("packages", "env", "platforms", "allow", "meta", "python", "exclude-newer")
    )
    text = f"let value = {program}; base a {{ {attributes} }} x b on a {{ {attributes} }}"
    # No value is a list, a set and a string at once.
    with pytest.raises(EnvdslError) as raised:
        evaluate(["a.layer"], MemoryReader({"a.layer": text}), limits=SMALL)
    assert all(found.code.startswith(("eval-", "syntax-")) for found in raised.value.diagnostics)

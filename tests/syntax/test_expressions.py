from __future__ import annotations

import pytest

from tests.syntax.notation import findings, shape, shapes

SOFT_WORDS = ["base", "x", "iso", "on", "for", "import", "as", "layer", "true", "null", "builtins", "map"]
RESERVED = ["let", "in", "if", "then", "else", "assert", "with", "rec", "inherit"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x: x", "(x: x)"),
        ("{ }: 1", "({}: 1)"),
        ("{ ... }: 1", "({...}: 1)"),
        ("{ a }: 1", "({a}: 1)"),
        ("{ a, }: 1", "({a}: 1)"),
        ("{ a, b ? 1 + 1, ... }: a", "({a, b ? (1 + 1), ...}: a)"),
        ("all@{ a, ... }: all", "({a, ...}@all: all)"),
        ("{ a, ... }@all: all", "({a, ...}@all: all)"),
        ("{ }@all: all", "({}@all: all)"),
        ("{}", "{}"),
        ("rec { a = b; }", "rec {a = b;}"),
        ("rec {}", "rec {}"),
        ('{ a.b."c".${d}."e${f}" = 1; }', "{a.b.c.${d}.${string('e' f)} = 1;}"),
        ('{ inherit a "b" or; inherit (c.d) e; inherit; }', "{inherit a b or; inherit ((c.d)) e; inherit;}"),
        ("let in 1", "(let in 1)"),
        ('let "a" = 1; b.c = 2; inherit (d) e; in a', "(let a = 1; b.c = 2; inherit (d) e; in a)"),
        ("let a.${b} = 1; in a", "(let a.${b} = 1; in a)"),
        ("if a then if b then c else d else e", "(if a then (if b then c else d) else e)"),
        ("assert a; assert b; c", "(assert a; (assert b; c))"),
        ("[ ]", "[]"),
        ("[ 1 \"a\" ./b (c) { } [ ] ''d'' a.b ]", "[1 string('a') <./b> c {} [] indented('d') (a.b)]"),
        ("((((1))))", "1"),
    ],
)
def test_every_form_of_an_expression_is_read(text: str, expected: str) -> None:
    """Issue 2.1: the expression language of DESIGN.md."""
    assert shape(text) == expected


@pytest.mark.parametrize("word", SOFT_WORDS)
def test_the_words_of_declarations_are_free_in_expressions(word: str) -> None:
    """Issue 2.1: the words of declarations are not reserved in expressions."""
    assert shape(f"{word}: {word} + 1") == f"({word}: ({word} + 1))"
    assert shape(f"{{ {word} = 1; }}.{word}") == f"({{{word} = 1;}}.{word})"
    assert shape(f"let {word} = 1; in [ {word} {word} ]") == f"(let {word} = 1; in [{word} {word}])"
    assert shape(f"{{ {word} ? 1, ... }}@{word}s: {word}") == f"({{{word} ? 1, ...}}@{word}s: {word})"
    assert shape(f'"${{{word}}}" {word} {word}') == f"((string({word}) {word}) {word})"
    assert shape(f"{{ inherit (a) {word}; }}") == f"{{inherit (a) {word};}}"
    assert shapes(f"let {word} = {word} {word};") == [f"let {word} = ({word} {word})"]
    assert shapes(f"base {word} {{ {word} = {word}; }}") == [f"base {word} {{{word} = {word};}}"]
    assert shapes(f"x {word} on {word} {{ }}") == [f"x {word} on {word} {{}}"]
    assert shapes(f'import "a" as {word};') == [f"import a as {word}"]
    assert shapes(f"for ({word} in {word}) {{ }}") == [f"for {word} in {word}: "]


@pytest.mark.parametrize("word", RESERVED)
def test_reserved_words_are_no_names(word: str) -> None:
    for text in (
        f"{{ {word} = 1; }}",
        f"a.{word}",
        f"let {word} = 1; in 2",
        f"{{ {word} }}: 1",
        f"{{ inherit {word}; }}",
    ):
        assert findings(text, expression=True), text
    assert shape(f'{{ "{word}" = 1; }}."{word}"') == f"({{{word} = 1;}}.{word})"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("with a; b", "syntax-with"),
        ("3.12", "syntax-float"),
        ("[ 1. .5 ]", "syntax-float"),
        ("https://example.org/a?b=c", "syntax-uri"),
        ("x:x", "syntax-uri"),
        ("/etc/passwd", "syntax-absolute-path"),
        ("a /b", "syntax-absolute-path"),
        ("~/a", "syntax-home-path"),
        ("<nixpkgs>", "syntax-search-path"),
        ("<nixpkgs/lib>", "syntax-search-path"),
        ("./a/", "syntax-path-slash"),
        ("9223372036854775808", "syntax-integer-too-large"),
        ("9" * 5000, "syntax-integer-too-large"),
        ("let ${a} = 1; in 1", "syntax-dynamic-let"),
        ('{ inherit (a) "${b}"; }', "syntax-dynamic-inherit"),
        ("{ a, a }: 1", "syntax-duplicate-formal"),
        ("a@{ a }: 1", "syntax-duplicate-formal"),
    ],
)
def test_what_the_language_leaves_out_is_refused_with_the_reason(text: str, code: str) -> None:
    found = findings(text, expression=True)
    assert {finding.code for finding in found} == {code}
    assert all(finding.hint for finding in found)


def test_the_largest_integer_of_nix_is_read() -> None:
    assert shape("9223372036854775807") == "9223372036854775807"

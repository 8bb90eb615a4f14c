"""The canonical form: what it looks like, and that it changes neither meaning nor comments."""

from __future__ import annotations

import importlib
import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.evaluate.expression import evaluate_expression
from envdsl.evaluate.project import evaluate
from envdsl.evaluate.reader import DirectoryReader
from envdsl.evaluate.render import render_nix
from envdsl.model.span import Source
from envdsl.syntax.parser import parse_expression, parse_file
from envdsl.syntax.printer import format_expression, format_file, same
from tests.syntax.layer_texts import Derivation, productions

ROOT = Path(__file__).parents[2]
CORPUS = sorted(
    path
    for directory in ("layers.d", "examples", "tests/syntax/testdata")
    for path in (ROOT / directory).rglob("*.layer")
    if "error" not in path.name
)
TOPICS = "arithmetic comparison functions json laziness lists sets strings types regex"


def file(text: str) -> str:
    return format_file(Source("test.layer", text))


def expression(text: str) -> str:
    return format_expression(Source("<expr>", text)).removesuffix("\n")


LAYERS = [
    # what was written, and its form
    ('base   a{python="3.12";packages=["x"   "y"];}', 'base a { python = "3.12"; packages = [ "x" "y" ]; }\n'),
    ("base a {\npython = v; }", "base a {\n  python = v;\n}\n"),
    ("x b on a.c{}", "x b on a.c { }\n"),
    ('import   "a.layer"as b  ;', 'import "a.layer" as b;\n'),
    ("for(v in[1 2]){base a{}}", "for (v in [ 1 2 ]) {\n  base a { }\n}\n"),
    ("let a=1;\n\n\n\nlet b=2;", "let a = 1;\n\nlet b = 2;\n"),
    ("", ""),
    ("# only\n\n\n# comments", "# only\n\n# comments\n"),
    ("\ufeff"[1:] + "let a = 1; # why\r\n\r\n", "let a = 1; # why\n"),
    (
        "base a {\n\n  # about b\n\n  b = 1;   # one\n  /* two */ c = 2;\n\n}",
        "base a {\n  # about b\n\n  b = 1; # one\n  /* two */ c = 2;\n}\n",
    ),
    ("base a {\n    /* a\n         b */\n  c = 1;\n}", "base a {\n  /* a\n       b */\n  c = 1;\n}\n"),
    ("let a = 1 # one\n;", "let a = 1; # one\n"),
]

EXPRESSIONS = [
    ("a++b++[\n1]", "a ++ b ++ [\n  1\n]"),
    ("{a,b?1,...}@c:a", "{ a, b ? 1, ... }@c: a"),
    ("{\na,b}:a", "{\n  a,\n  b,\n}:\na"),
    ("{\na,b # why\n}:a", "{\n  a,\n  b, # why\n}:\na"),
    ("let a=1;in a", "let a = 1; in a"),
    ("let\na=1;in a", "let\n  a = 1;\nin\na"),
    ("if a then b else if c then d else e", "if a then b else if c then d else e"),
    ("- ./a", "- ./a"),
    ("-1 + - 2 * (3)", "-1 + -2 * (3)"),
    ("! (a) ? b.c", "!(a) ? b.c"),
    ("a.b or(c)", "a.b or (c)"),
    ('"a${ {b=1;} . b }"', '"a${{ b = 1; }.b}"'),
    ("assert a;b", "assert a; b"),
    ("rec{inherit a b;inherit(c)d;}", "rec { inherit a b; inherit (c) d; }"),
    ("map(x: {\na=x;})[ 1 ]", "map\n  (x: {\n    a = x;\n  })\n  [ 1 ]"),
    ("''\n        a\n          b\n      ''", "''\n  a\n    b\n''"),
    ("''a\n   b''", "''a\n   b''"),
    ("{a=''\n  x\n'';}", "{\n  a = ''\n    x\n  '';\n}"),
    ('"two\n lines"', '"two\n lines"'),
]


@pytest.mark.parametrize(("text", "form"), LAYERS)
def test_the_form_of_declarations(text: str, form: str) -> None:
    """Issue 5.1: one canonical form, comments kept where they belong."""
    assert file(text) == form
    assert file(form) == form


@pytest.mark.parametrize(("text", "form"), EXPRESSIONS)
def test_the_form_of_expressions(text: str, form: str) -> None:
    """Issue 5.1."""
    assert expression(text) == form
    assert expression(form) == form


def test_what_does_not_fit_is_broken() -> None:
    """Lines have up to 100 characters, where the text allows it."""
    words = " ".join(f'"package-number-{number}"' for number in range(8))
    text = (
        f"let a = [ {words} ]; let b = f {'a' * 60} {'b' * 40} c;"
        f"let c = {'a' * 50} + {'b' * 50}; let d = if {'a' * 60} then {'b' * 30} else c;"
    )
    form = file(text)
    assert max(map(len, form.splitlines())) <= 100
    assert file(form) == form
    assert "let b = f" not in form
    assert f"let b =\n  f\n    {'a' * 60}\n    {'b' * 40}\n    c;\n" in form
    assert f"let c = {'a' * 50}\n" not in form
    assert f"let d =\n  if {'a' * 60} then\n    {'b' * 30}\n  else\n    c;\n" in form


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_the_layers_of_this_repository_are_in_the_form(path: Path) -> None:
    """Issue 5.1: curated layers and examples are formatted, which takes nothing but a second run to see."""
    text = path.read_text(encoding="utf-8")
    form = format_file(Source(path.name, text))
    assert format_file(Source(path.name, form)) == form
    if "testdata" not in path.parts:
        assert text == form


@pytest.mark.parametrize(("path", "fence"), [("README.md", "```nix\n"), ("docs/spec.md", "```\n")])
def test_the_first_example_of_a_document_is_in_the_form(path: str, fence: str) -> None:
    """Issue 5.1: what people copy."""
    example = (ROOT / path).read_text(encoding="utf-8").partition(fence)[2].partition("```\n")[0]
    assert "base" in example
    assert file(example) == example


@pytest.mark.parametrize("path", [path for path in CORPUS if "testdata" not in path.parts], ids=lambda path: path.name)
def test_a_formatted_project_evaluates_to_the_same(path: Path, tmp_path: Path) -> None:
    """Issue 5.1: evaluate before and after. The file is first crushed, so that the form has something to do."""
    root = path.parents[1]
    name = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    for source in root.rglob("*"):
        if source.is_file() and source.suffix in (".layer", ".toml", ".txt") and "store" not in source.parts:
            target = tmp_path / source.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    (tmp_path / "src").mkdir(exist_ok=True)
    for wheel in re.findall(r"\.\./(\S+\.whl)", text):  # which the example's README builds, and git does not have
        (tmp_path / wheel).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / wheel).touch()
    before = evaluate([name], DirectoryReader(tmp_path))
    crushed = text.replace("\n", "\n\n\n").replace("  ", "     ").replace(" = ", "=")
    (tmp_path / name).write_text(format_file(Source(name, crushed)), encoding="utf-8")
    assert evaluate([name], DirectoryReader(tmp_path)).layers == before.layers


@pytest.mark.parametrize("topic", TOPICS.split())
def test_formatted_expressions_have_the_same_value(topic: str) -> None:
    """Issue 5.1: each expression that the language's tests evaluate has the same value in its canonical form."""
    for text, _ in importlib.import_module(f"tests.evaluate.test_{topic}").CASES:
        form = expression(text)
        assert expression(form) == form
        assert render_nix(evaluate_expression(form)) == render_nix(evaluate_expression(text))


class Spread(Derivation):
    """Random sentences of the grammar with all that can stand between tokens, and names and strings of all sorts."""

    BETWEEN = (
        *(" ", " ", " ", "\n", "\n\n", "\n\n\n", "\r\n", "\t", " # end\n", "\n# own\n", "\n\n# own\n\n# two\r\n"),
        *(" /* inline */ ", "\n  /* many\n     lines\n  x */\n", "/* a\nb */", " /* one */ # two\n"),
    )
    INDENTED = ("\n    a\n      b", "  \n", "\n\n     ", "\t x\n", "\n   \n  c   \n")

    def _spelling(self, token: str) -> str:
        rare = self.random.random() < 0.3
        if token == "IDENTIFIER" and rare:
            return "a" + "long" * self.random.randint(1, 9)
        if token == "INDENTED_TEXT" and rare:
            return self.random.choice(self.INDENTED)
        return super()._spelling(token)


_PRODUCTIONS = productions()


@st.composite
def sentences(draw: st.DrawFn) -> tuple[str, str]:
    start = draw(st.sampled_from(("file", "expression")))
    seed = draw(st.integers(0, 2**32))
    text = Spread(seed, _PRODUCTIONS).text(start, draw(st.integers(1, 70)))
    chance = random.Random(seed)
    pieces = text.split(" /* comment */ ")
    return start, "".join(piece + chance.choice(Spread.BETWEEN) for piece in pieces[:-1]) + pieces[-1]


def outcome(text: str) -> str:
    """What an expression evaluates to, or the code of its error."""
    try:
        return render_nix(evaluate_expression(text))
    except EnvdslError as error:
        return error.code


@settings(max_examples=200, deadline=None)
@given(sentences())
def test_any_text_keeps_its_meaning_and_its_comments(sentence: tuple[str, str]) -> None:
    """Issue 5.1: the tree is the same but for places, no comment is lost, and a second run changes nothing."""
    start, text = sentence
    parse, form = (parse_file, format_file) if start == "file" else (parse_expression, format_expression)
    source = Source("test.layer", text)
    try:
        before = parse(source)
    except EnvdslError:
        return  # white space between tokens can make a path end with a slash, or a URI
    once = form(source)
    after = parse(Source("test.layer", once))
    if start == "file":
        assert same(before.declarations, after.declarations)  # type: ignore[union-attr]
        assert [c.text.split() for c in before.comments] == [c.text.split() for c in after.comments]  # type: ignore[union-attr]
    else:
        assert same(before, after)
        assert outcome(text) == outcome(once)
    assert form(Source("test.layer", once)) == once


def test_a_file_with_errors_has_no_form() -> None:
    """Issue 5.1."""
    with pytest.raises(EnvdslError) as raised:
        file("base a { x = }")
    assert raised.value.code.startswith("syntax-")


def test_a_form_that_would_change_the_meaning_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5.1: were the printer wrong, nothing would be written."""
    monkeypatch.setattr("envdsl.syntax.printer.render", lambda document: "let a = 2;\n")
    with pytest.raises(EnvdslError) as raised:
        file("let a = 1;")
    assert raised.value.code == "syntax-format"


def test_deep_and_long_texts_are_formatted_without_recursion() -> None:
    for text in ("[" * 480 + "]" * 480, "a: " * 400 + "a", "f (" * 200 + "a" + ")" * 200, "a" + " ++ a" * 480):
        form = expression(text)
        assert same(parse_expression(Source("", form)), parse_expression(Source("", text)))

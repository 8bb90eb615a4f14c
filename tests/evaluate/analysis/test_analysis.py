"""What names mean without evaluating, held against the evaluator, and on any text however broken."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.analysis.completion import Where, place_at
from envdsl.evaluate.analysis.links import Links
from envdsl.evaluate.analysis.names import Kind, names_of
from envdsl.evaluate.analysis.rename import rename
from envdsl.evaluate.builtins import GLOBALS
from envdsl.evaluate.project import evaluate
from envdsl.model.span import Source
from envdsl.syntax.parser import parse_file
from envdsl.syntax.printer import same
from envdsl.syntax.tolerant import is_unfinished, read_file
from tests.evaluate.language import MemoryReader
from tests.syntax.layer_texts import damaged, sentences


def links(**files: str) -> Links:
    """The links of files; ``main`` is ``main.layer``."""
    texts = {f"{name}.layer": text for name, text in files.items()}
    return Links({path: names_of(read_file(Source(path, text)).file) for path, text in texts.items()})


def target(text: str, **more: str) -> tuple[str, int, Kind] | None:
    """What the `|` in ``text`` speaks of: the file, the line (from 1) and the kind of the definition."""
    found = links(main=text.replace("|", "", 1), **more).at("main.layer", text.index("|"))
    return (found.target.path, found.target.span.line, found.target.kind) if found is not None else None


MAIN = "main.layer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let a = 1;\nlet b = |a;", (MAIN, 1, Kind.LET)),
        ("let b = |a;\nlet a = 1;", (MAIN, 2, Kind.LET)),
        ("let a = 1;\nlet b = a: |a;", (MAIN, 2, Kind.PARAMETER)),
        ("let a = 1;\nlet b = { a ? |a }: 1;", (MAIN, 2, Kind.FORMAL)),
        ("let b = { a }@all:\n |all;", (MAIN, 1, Kind.PARAMETER)),
        ("let b = all@{ a }:\n |all;", (MAIN, 1, Kind.PARAMETER)),
        ("let a = 1;\nlet b = let a = 2; in |a;", (MAIN, 2, Kind.BINDING)),
        ("let a = 1;\nlet b = let\n a = a; in\n |a;", (MAIN, 3, Kind.BINDING)),
        ("let a = 1;\nlet b = { a = 2; c = |a; };", (MAIN, 1, Kind.LET)),
        ("let a = 1;\nlet b = rec { a = 2; c = |a; };", (MAIN, 2, Kind.ATTRIBUTE)),
        ("let a = 1;\nlet b = rec { inherit a; c = |a; };", (MAIN, 1, Kind.LET)),
        ("let a = 1;\nlet b = { inherit |a; };", (MAIN, 1, Kind.LET)),
        ("let a = 1;\nfor (a in [ a ]) {\n base b { c = |a; }\n}", (MAIN, 2, Kind.LOOP)),
        ("let a = 1;\nfor (b in [ |a ]) { let a = 2; }", (MAIN, 1, Kind.LET)),
        ('for (b in [ ]) {\n let a = 2;\n base "${|a}" { }\n}', (MAIN, 2, Kind.LET)),
        ("let a = { b.c = 1; };\nlet d = a.b.|c;", (MAIN, 1, Kind.ATTRIBUTE)),
        ("let a = let\n b.c = 1; in\n b.|c;", (MAIN, 2, Kind.ATTRIBUTE)),
        ("base a { }\nx b on |a { }", (MAIN, 1, Kind.LAYER)),
        ('base "a-b" { }\nx b on "|a-b" { }', (MAIN, 1, Kind.LAYER)),
        ("let a = |map;", None),
        ("let a = |nobody;", None),
        ("let a = { b = 1; };\nlet c = a.|nobody;", None),
    ],
)
def test_a_name_speaks_of_its_definition(text: str, expected: tuple[str, int, Kind] | None) -> None:
    """Issue 5.8: definitions follow the scopes of the language."""
    assert target(text) == expected


def test_what_an_import_offers_is_followed_through_other_imports() -> None:
    """Issue 5.8: across files."""
    lib = 'import "deep.layer" as deep;\nlet own = { a = 1; };\nbase office { }\n'
    deep = "\n\nlet far = 1;\nbase cellar { }\n"
    start = 'import "lib.layer" as lib;\n'
    for text, expected in (
        ("let a = lib.|own;", ("lib.layer", 2, Kind.LET)),
        ("let a = lib.own.|a;", ("lib.layer", 2, Kind.ATTRIBUTE)),
        ("let a = lib.deep.|far;", ("deep.layer", 3, Kind.LET)),
        ("let a = lib.|deep;", ("lib.layer", 1, Kind.IMPORT)),
        ("x a on lib.|office { }", ("lib.layer", 3, Kind.LAYER)),
        ("x a on lib.deep.|cellar { }", ("deep.layer", 4, Kind.LAYER)),
        ("x a on |office { }", ("lib.layer", 3, Kind.LAYER)),
        ("x a on lib.|cellar { }", None),
    ):
        assert target(start + text, lib=lib, deep=deep) == expected, text


@settings(max_examples=150, deadline=None)
@given(sentences("file"))
@example("let a = { inherit b; }; let c = rec { inherit (d) e; f = e; }; for (g in [ h ]) { let i = g; }")
@example("let f = { a, b ? a, c ? d }@e: [ a b e g ]; x m on n.o { p = q; }")
def test_the_evaluator_agrees_on_which_names_are_undefined(text: str) -> None:
    """Issue 5.8: two implementations of the scopes, one answer."""
    source = Source(MAIN, text)
    try:
        file = parse_file(source)
    except EnvdslError:
        return
    unknown = {use.span.start for use in names_of(file).uses if use.target is None and use.name not in GLOBALS}
    try:
        evaluate([MAIN], MemoryReader({MAIN: text}))
        found = []
    except EnvdslError as error:
        found = list(error.diagnostics)
    reported = {
        item.span.start
        for item in found
        if item.code == "eval-undefined-name" and item.span is not None and item.message.startswith("the name")
    }
    assert reported <= unknown
    # What is defined twice, or inherited under no name, is never looked at by the evaluator.
    if not any("duplicate" in item.code for item in found) and "inherit" not in text and len(found) < 100:
        assert reported == unknown


@settings(max_examples=200, deadline=None)
@given(damaged("file"), st.integers(0, 200))
def test_any_text_is_read_as_far_as_it_goes(text: str, offset: int) -> None:
    """Issue 5.8: with an unfinished file too: no text makes the analysis fail."""
    source = Source(MAIN, text)
    reading = read_file(source)
    names = names_of(reading.file)
    found = Links({MAIN: names})
    found.at(MAIN, min(offset, len(text)))
    for definition in names.definitions:
        for span in found.references(definition, definition=True):
            assert 0 <= span.start <= span.end <= len(text)
    errors: tuple[Diagnostic, ...] = ()
    try:
        assert same(parse_file(source).declarations, reading.file.declarations)
    except EnvdslError as error:
        errors = error.diagnostics
    assert [item.code for item in errors] == [item.code for item in reading.diagnostics]


@settings(max_examples=40, deadline=None)
@given(damaged("file"), st.integers(0, 100))
def test_completion_is_asked_for_anywhere(text: str, offset: int) -> None:
    """Issue 5.8: a place has an answer or none, but never an error; its word lies around the place."""
    place = place_at(Source(MAIN, text), min(offset, len(text)))
    if place is not None:
        assert place.span.start <= min(offset, len(text)) <= place.span.end


@pytest.mark.parametrize(
    ("text", "where", "attribute"),
    [
        ("base a { pack|", Where.ATTRIBUTE, ()),
        ("base a { env = { L| }; }", Where.ATTRIBUTE, ("env",)),
        ("base a { env.L| }", Where.ATTRIBUTE, ("env",)),
        ('base a { packages = [ "num|', Where.STRING, ("packages",)),
        ('base a { packages = [ "num|" ]; }', Where.STRING, ("packages",)),
        ("base a { packages = comm|\n env = { }; }", Where.EXPRESSION, ("packages",)),
        ("base a { packages = common.|\n env = { }; }", Where.MEMBER, ()),
        ("x a on |", Where.BASE, ()),
        ("x a on common.| { }", Where.BASE, ()),
        ('import "li|" as a;', Where.IMPORT, ()),
        ("base a { }\n|\nbase b { }", Where.DECLARATION, ()),
        ('let a = "${b|}";', Where.EXPRESSION, ()),
    ],
)
def test_what_could_be_written_at_a_place(text: str, where: Where, attribute: tuple[str, ...]) -> None:
    """Issue 5.8: completion in unfinished text."""
    place = place_at(Source(MAIN, text.replace("|", "", 1)), text.index("|"))
    assert place is not None
    assert (place.where, place.attribute) == (where, attribute)


@pytest.mark.parametrize("text", ["# comm|ent", "base a { x = 1; } /* |", "let a = 1|2;"])
def test_nothing_is_proposed_where_nothing_can_stand(text: str) -> None:
    assert place_at(Source(MAIN, text.replace("|", "", 1)), text.index("|")) is None


@settings(max_examples=60, deadline=None)
@given(sentences("file"), st.integers(0, 1000), st.sampled_from(["a", "base", "fresh", "_c-d", "x"]))
def test_a_rename_keeps_the_meaning_or_is_refused(text: str, choice: int, new: str) -> None:
    """Issue 5.8: after it, each place speaks of the same definition, and the tree differs by the name alone."""
    source = Source(MAIN, text)
    try:
        parse_file(source)
    except EnvdslError:
        return
    before = links(main=text)
    definitions = before.files[MAIN].definitions
    if not definitions:
        return
    chosen = definitions[choice % len(definitions)]
    try:
        edits = rename(before, chosen, new, GLOBALS.__contains__)
    except EnvdslError:
        return
    changed = text
    for span, replacement in reversed(edits[MAIN]):
        changed = changed[: span.start] + replacement + changed[span.end :]
    after = names_of(parse_file(Source(MAIN, changed)))
    index = {id(item): number for number, item in enumerate(definitions)}
    index_after = {id(item): number for number, item in enumerate(after.definitions)}
    assert [index.get(id(use.target)) for use in before.files[MAIN].uses] == [
        index_after.get(id(use.target)) for use in after.uses
    ]


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("1 +", "expression", True),
        ("[ 1", "expression", True),
        ('"a', "expression", True),
        ("''a", "expression", True),
        ("let a = 1;", "expression", True),
        ("1", "expression", False),
        ("1 )", "expression", False),
        ("base a {", "file", True),
        ("base a { }", "file", False),
    ],
)
def test_unfinished_text_is_told_from_wrong_text(text: str, start: str, expected: bool) -> None:
    """Issue 5.11: more lines are asked for only where they can help."""
    assert is_unfinished(text, start) is expected

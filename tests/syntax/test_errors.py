"""Syntax errors, each written beside its line.

A file in `testdata` holds chunks between lines of `---`, and each chunk is parsed by itself. Beside a line stands
`### "regex"` for each error that is reported there, in their order, matched against `code: message (hint)`; and no
other error may be reported. A chunk that begins with `# expression` is one expression. Marks are no part of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from envdsl.errors import Diagnostic
from tests.syntax.notation import findings

TESTDATA = Path(__file__).with_name("testdata")
_MARKER = re.compile(r'"((?:[^"\\]|\\.)*)"')


def chunks() -> Iterator[object]:
    for path in sorted(TESTDATA.glob("errors*.layer")):
        line = 1
        for text in re.split(r"^---\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            yield pytest.param(text, id=f"{path.name}:{line}")
            line += text.count("\n") + 1


def expectations(text: str) -> list[tuple[int, str]]:
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        _, marker, rest = line.partition("###")
        if marker:
            patterns = _MARKER.findall(rest)
            assert patterns, f"a marker without a pattern: {line}"
            found += [(number, pattern.replace(r"\"", '"')) for pattern in patterns]
    return found


def told(diagnostic: Diagnostic) -> str:
    return f"{diagnostic.code}: {diagnostic.message} ({diagnostic.hint})"


@pytest.mark.parametrize("text", list(chunks()))
def test_each_error_is_reported_at_its_line_in_the_words_of_the_writer(text: str) -> None:
    """Issue 2.3: all errors of a file, each with code, place and hint."""
    expected = expectations(text)
    found = findings(re.sub(r" *###.*", "", text), expression=text.startswith("# expression"))
    reported = [(diagnostic.span.line if diagnostic.span else 0, told(diagnostic)) for diagnostic in found]
    report = "\n".join(f"  {line}: {words}" for line, words in reported)
    assert [line for line, _ in reported] == [line for line, _ in expected], f"reported:\n{report}"
    for (_, words), (_, pattern) in zip(reported, expected, strict=True):
        assert re.search(pattern, words), f"{pattern!r} is not in: {words}"


def test_an_error_points_at_exactly_what_is_wrong() -> None:
    """The marked range, not only the line."""
    cases = {
        "base a { b = [ 1, 2 ]; }": ",",
        "base a { b = [ 1 2; }": "[",
        'base a { b = "x; }': '"',
        "base a { b = 3.12; }": "3.12",
        "base a { b c = 1; }": "c",
        "base a { b = with c; d; }": "with",
        "bse a { }": "bse",
        "base a { then = 1; }": "then",
        "base a { b = ./c/${d}; }": "./c/${",
        "base a { b = a == b == c; }": "==",
        "base a { b = 1 }": "",
    }
    for text, marked in cases.items():
        (diagnostic,) = findings(text)
        assert diagnostic.span is not None
        assert text[diagnostic.span.start : diagnostic.span.end] == marked, text
    (missing,) = findings("base a {\n  b = f x # of y\n}")
    assert missing.span is not None
    assert (missing.span.line, missing.span.column) == (2, 10)  # right behind the value, before the comment


def test_a_mismatch_names_both_ends() -> None:
    (diagnostic,) = findings("base a {\n  b = [ 1 2;\n}")
    assert diagnostic.message == "unclosed `[` opened at 2:7"
    (note,) = diagnostic.trail
    assert note.message == "`;` stands where `]` was expected"
    assert note.span is not None
    assert str(note.span) == "test.layer:2:12"


def test_a_string_that_runs_over_lines_is_pointed_out() -> None:
    (diagnostic,) = findings('base a {\n  b = [ "c ];\n  d = [ "e" ];\n}\nbase f { }')
    assert diagnostic.code == "syntax-unterminated-string"
    assert [str(note.span) for note in diagnostic.trail] == ["test.layer:2:9"]
    assert "closing" in diagnostic.trail[0].message


def test_no_more_than_twenty_errors_are_reported() -> None:
    assert len(findings("base a { b = ; }\n" * 100)) == 20

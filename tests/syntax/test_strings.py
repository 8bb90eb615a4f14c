"""The text of strings, against what Nix makes of them."""

from __future__ import annotations

import pytest

from envdsl.syntax import tree
from envdsl.syntax.parser import parse_expression
from tests.syntax.notation import source


def parts(text: str) -> list[str]:
    """Literal parts as they are, interpolated ones as `<source>`."""
    node = parse_expression(source(text))
    assert isinstance(node, tree.String)
    return [part if isinstance(part, str) else f"<{text[part.span.start : part.span.end]}>" for part in node.parts]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('""', []),
        ('"a"', ["a"]),
        (r'"\n\r\t\\\"\a"', ['\n\r\t\\"a']),
        (r'"\${a}"', ["${a}"]),
        ('"$${a}"', ["$${a}"]),
        ('"$$${a}"', ["$$", "<a>"]),
        ('"$"', ["$"]),
        ('"a$b $"', ["a$b $"]),
        (r'"$\{a}"', ["${a}"]),
        (r'"\$${a}"', ["$", "<a>"]),
        ('"a\r\nb\rc"', ["a\nb\nc"]),
        ('"a # b /* c */"', ["a # b /* c */"]),
        ('"${a}"', ["<a>"]),
        ('" ${ a } ${b}${c}"', [" ", "<a>", " ", "<b>", "<c>"]),
        ('"a${"b${"c"}d"}e"', ["a", '<"b${"c"}d">', "e"]),
        ('"${{ a = "}"; }.a}"', ['<{ a = "}"; }.a>']),
        ("\"${''b${\"c\"}''}\"", ["<''b${\"c\"}''>"]),
        ('"é😀"', ["é😀"]),
    ],
)
def test_quoted_strings_have_the_escapes_of_nix(text: str, expected: list[str]) -> None:
    """Issue 2.1: strings with `${}` and escapes."""
    assert parts(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "''\n  This is the first line.\n    This is the second line.\n  ''",
            ["This is the first line.\n  This is the second line.\n"],
        ),
        ("''''", []),
        ("''   ''", []),
        ("''\n  ''", []),
        ("''a''", ["a"]),
        ("''  a\n    b''", ["a\n  b"]),  # no line break after the opening quotes: the spaces are the first line's
        ("''   \n  a''", ["a"]),
        ("''\n    a\n\n      b\n  c''", ["  a\n\n    b\nc"]),  # an empty line has no indentation
        ("''\n    a\n    \n    b''", ["a\n\nb"]),  # nor has one of spaces
        ("''\n    a\n       \n    b''", ["a\n   \nb"]),
        ("''\n    a\n        ''", ["a\n"]),  # the last line counts for nothing where only the quotes are on it
        ("''\n    a\n  b ''", ["  a\nb "]),
        ("''\n\ta\n\tb''", ["\ta\n\tb"]),  # tabs are no indentation
        ("''\n   a\n \tb''", ["  a\n\tb"]),
        ("''\n  ${a}\n    b''", ["<a>", "\n  b"]),
        ("''\n    ${a}\n  b''", ["  ", "<a>", "\nb"]),
        ("''\n    a ${b} c\n    d''", ["a ", "<b>", " c\nd"]),
        ("''  ${a}\n  ''", ["<a>", "\n"]),
        ("''\n  a ''' b\n  ''", ["a '' b\n"]),
        ("''\n  ''${a} $${b} $''", ["${a} $${b} $"]),
        ("''$$${a}''", ["$$", "<a>"]),
        ("''''${a}''", ["${a}"]),
        (r"''a''\n b''\t c''\\ d \n''", ["a\n b\t c\\ d \\n"]),
        ("''\n  '${a}'\n  $'b'\n  ''", ["'", "<a>", "'\n$'b'\n"]),
        ("''\n    ''\\  a\n    b''", ["  a\nb"]),  # an escaped space is text
        ("''it's \"quoted\" # no comment''", ['it\'s "quoted" # no comment']),
        ("''a${''b${c}''}''", ["a", "<''b${c}''>"]),
    ],
)
def test_indented_strings_lose_the_indentation_that_nix_takes(text: str, expected: list[str]) -> None:
    """Issue 2.1: indented strings mean what they mean in Nix."""
    assert parts(text) == expected


def test_line_ends_of_windows_count_as_one_line_break_in_both_kinds_of_string() -> None:
    assert parts("''\r\n  a\r\n\r\n    b\r\n  ''") == ["a\n\n  b\n"]
    assert parts('"a\r\nb"') == ["a\nb"]


def test_the_kind_of_string_is_kept() -> None:
    for text, indented in (('"a"', False), ("''a''", True), ('"a${b}"', False)):
        node = parse_expression(source(text))
        assert isinstance(node, tree.String)
        assert node.indented is indented

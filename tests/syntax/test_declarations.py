from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.syntax import tree
from envdsl.syntax.parser import parse_expression_with_comments, parse_file
from tests.syntax.notation import shapes, source

DESIGN = Path(__file__).with_name("testdata") / "design.layer"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# nothing\n/* at all */", []),
        ('import "lib/common.layer" as common;', ["import lib/common.layer as common"]),
        ("let a = 1 + 1;", ["let a = (1 + 1)"]),
        ("base office { }", ["base office {}"]),
        ('base "office" { a = 1; }', ["base office {a = 1;}"]),
        ('base "py${v}" { }', ["base ${string('py' v)} {}"]),
        ("iso legacy { inherit a; }", ["iso legacy {inherit a;}"]),
        ("x viz on office { }", ["x viz on office {}"]),
        ("x viz on common.base.office { }", ["x viz on common.base.office {}"]),
        ('x "a${b}" on "c${d}" { }', ["x ${string('a' b)} on ${string('c' d)} {}"]),
        ('x "a" on "c" { }', ["x a on c {}"]),
        ("for (v in [ 1 2 ]) { }", ["for v in [1 2]: "]),
        (
            "for (v in a) { base a { } for (w in b) { iso b { } } let c = v; }",
            ["for v in a: base a {}; for w in b: iso b {}; let c = v"],
        ),
        ("base a { } base b { } let c = 1; let d = 2;", ["base a {}", "base b {}", "let c = 1", "let d = 2"]),
        ("base base { base = base; } x x on x { x = x; }", ["base base {base = base;}", "x x on x {x = x;}"]),
    ],
)
def test_every_declaration_is_read(text: str, expected: list[str]) -> None:
    """Issue 2.1: declarations `base`, `x … on …`, `iso`, `let`, `import … as`, `for`."""
    assert shapes(text) == expected


def test_the_example_of_the_design_is_read() -> None:
    file = parse_file(source(DESIGN.read_text(encoding="utf-8")))
    kinds = [type(declaration).__name__ for declaration in file.declarations]
    assert kinds == ["Import", "LetDeclaration", "LayerDeclaration", "LayerDeclaration", "LayerDeclaration", "For"]
    loop = file.declarations[-1]
    assert isinstance(loop, tree.For)
    assert [type(declaration).__name__ for declaration in loop.declarations] == ["LayerDeclaration"]


def test_comments_are_kept_in_their_order_with_their_places() -> None:
    text = "# one\nbase a { # two\n  /* three\n */ b = \"# no\"; c = ''/* no */''; }\n#four"
    comments = parse_file(source(text)).comments
    assert [comment.text for comment in comments] == ["# one", "# two", "/* three\n */", "#four"]
    assert [text[comment.span.start : comment.span.end] for comment in comments] == [c.text for c in comments]
    expression, comments = parse_expression_with_comments(source("[ 1 # one\n 2 ] /* two */"))
    assert isinstance(expression, tree.ListLiteral)
    assert [comment.text for comment in comments] == ["# one", "/* two */"]


def test_a_byte_of_a_comment_is_no_part_of_the_next_token() -> None:
    assert shapes("/**/base/**/a/**/{/**/b/**/=/**/1/**/;/**/}/***/") == ["base a {b = 1;}"]

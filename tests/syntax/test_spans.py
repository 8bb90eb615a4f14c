"""Each node's span is its text, exactly: cut out and parsed by itself, it gives the same node."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.model.span import Span
from envdsl.syntax import tree
from envdsl.syntax.parser import parse_expression, parse_file
from tests.syntax.notation import EXPRESSIONS, nodes, shape, show, source

DESIGN = Path(__file__).with_name("testdata") / "design.layer"

TEXTS = [
    "( a ) b",
    "((a.b)).c or (d)",
    "(a + b) * (c)",
    "- (a)",
    "! ( ( a ) )",
    "(a) ? b.${c}",
    "f (a) (b) (c)",
    "x: ( y )",
    "{ a, b ? (1), ... } @ c: (a)",
    "c @ { a }: a",
    "let a = (1); inherit (b) c; in (a)",
    "if (a) then (b) else (c)",
    "assert (a); (b)",
    "rec { a . b = (1) ; inherit c ; }",
    "[ (a) \"b${ (c) }d\" ''\n  e ${f}\n '' ./g ]",
    '{ "a${b}" = 1; ${c}.d = 2; "e" = 3; or = 4; }',
    "(a == b) != (c -> d)",
    "a ++ (b ++ c) ++ d",
    "(x: x) // { }",
]


def slice_of(span: Span) -> str:
    return span.source.text[span.start : span.end]


def all_nodes() -> list[tree.Node]:
    found = [node for text in TEXTS for node in nodes(parse_expression(source(f"  {text}  ")))]
    return found + nodes(parse_file(source(DESIGN.read_text(encoding="utf-8"))))


def test_a_slice_of_an_expression_is_that_expression() -> None:
    checked = 0
    for node in all_nodes():
        if isinstance(node, EXPRESSIONS):
            assert shape(slice_of(node.span)) == show(node)
            checked += 1
    assert checked > 120


def test_a_slice_of_a_declaration_is_that_declaration() -> None:
    file = parse_file(source(DESIGN.read_text(encoding="utf-8")))
    for declaration in file.declarations:
        (again,) = parse_file(source(slice_of(declaration.span))).declarations
        assert show(again) == show(declaration)


def test_a_slice_of_any_other_node_is_its_text() -> None:
    for node in all_nodes():
        text = slice_of(node.span)
        match node:
            case tree.Name():
                assert text.strip('"') == node.text
            case tree.DynamicName():
                assert text[0] in '$"'
                assert text[-1] in '}"'
            case tree.Binding() | tree.Inherit():
                wrapped = parse_expression(source(f"{{ {text} }}"))
                assert show(wrapped) == f"{{{show(node)}}}"
            case tree.Pattern():
                assert show(parse_expression(source(f"{text}: 1"))) == f"({show(node)}: 1)"
            case tree.Field():
                assert show(parse_expression(source(f"{{ {text} }}: 1"))) == f"({{{show(node)}}}: 1)"


def test_children_lie_inside_their_parents_in_order_without_overlap() -> None:
    from envdsl.syntax.depth import children

    for node in all_nodes():
        position = node.span.start
        # A pattern's name may stand before or behind it; all other fields are in the order of the text.
        for child in children(node):
            assert position <= child.span.start < child.span.end <= node.span.end, show(node)
            position = child.span.end


@pytest.mark.parametrize(
    ("text", "outer", "inner"),
    [("( a ) b", "( a ) b", "a"), ("((a)).b", "((a)).b", "a"), ("-(a)", "-(a)", "a"), ("(a) + b", "(a) + b", "a")],
)
def test_a_node_is_spanned_without_its_parentheses_and_its_parent_with_them(text: str, outer: str, inner: str) -> None:
    root, *below = nodes(parse_expression(source(text)))
    assert slice_of(root.span) == outer
    assert slice_of(below[0].span) == inner

"""Nodes of the tree are frozen records, whose classes cost nothing to declare."""

from __future__ import annotations

import pytest

from envdsl.model.span import Source, Span
from envdsl.syntax import tree

SPAN = Span(Source("test.layer", "a"), 0, 1)


def test_a_node_takes_each_field_by_position_or_by_name() -> None:
    for node in (tree.Field(SPAN, "a", None), tree.Field(SPAN, "a", default=None)):
        assert (node.span, node.name, node.default) == (SPAN, "a", None)
        assert repr(node) == f"Field(span={SPAN!r}, name='a', default=None)"


def test_a_node_without_a_field_or_with_one_too_many_is_a_type_error() -> None:
    for arguments in ((SPAN,), (SPAN, "a", None, None)):
        with pytest.raises(TypeError):
            tree.Field(*arguments)


def test_a_node_is_frozen_and_compared_by_identity() -> None:
    node = tree.Name(SPAN, "a")
    with pytest.raises(AttributeError):
        node.text = "b"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        node.more = "b"
    with pytest.raises(AttributeError):
        del node.text
    assert node.text == "a"
    assert node != tree.Name(SPAN, "a")
    assert not hasattr(node, "__dict__")

"""The depth of a tree, so that whoever walks it can count on a bound."""

from __future__ import annotations

from collections.abc import Iterator

from envdsl.syntax.tree import File, Node

DEPTH_LIMIT = 500
"""Nodes on the way from a declaration or an expression to any node in it."""


def children(node: Node) -> Iterator[Node]:
    """The nodes right below ``node``, in the order of their fields."""
    for name in node.__match_args__:
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif type(value) is tuple:
            for item in value:
                if isinstance(item, Node):
                    yield item


def first_too_deep(root: File | Node) -> Node | None:
    """A node that lies deeper than DEPTH_LIMIT, or None. Takes no recursion itself."""
    level: list[Node] = list(root.declarations) if isinstance(root, File) else [root]
    for _ in range(DEPTH_LIMIT):
        level = [child for node in level for child in children(node)]
        if not level:
            return None
    return level[0]

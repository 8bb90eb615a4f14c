"""Chains of operators: those that bind equally tightly stand below one another where they do not fit on a line."""

from __future__ import annotations

from dataclasses import dataclass

from envdsl.syntax.formatting.documents import Doc, Group, Joined, Line, Text, hugging, sequence
from envdsl.syntax.operators import BINARY, Associativity

_JOINING = frozenset({"++", "//", "+"})
"""Operators whose last operand may begin on the line of the others: ``common.documents ++ [``."""


@dataclass(frozen=True, slots=True)
class Chain:
    """``first``, and each operator (its spelling and document) with the operand behind it."""

    level: int
    first: Doc
    rest: tuple[tuple[str, Text, Doc], ...]


def join(left: Doc | Chain, operator: str, word: Text, right: Doc | Chain) -> Chain:
    """``left operator right``, as one chain with those of both that associate."""
    level, associativity = BINARY[operator]
    if isinstance(left, Chain) and left.level == level and associativity is Associativity.LEFT:
        return Chain(level, left.first, (*left.rest, (operator, word, finish(right))))
    if isinstance(right, Chain) and right.level == level and associativity is Associativity.RIGHT:
        return Chain(level, finish(left), ((operator, word, right.first), *right.rest))
    return Chain(level, finish(left), ((operator, word, finish(right)),))


def finish(value: Doc | Chain) -> Doc:
    """The document of a chain; any other document as it is."""
    if not isinstance(value, Chain):
        return value
    lines: list[Doc] = [value.first]
    flat: list[Doc] = [value.first, Text(" ")]
    for _, word, operand in value.rest:
        lines += (Line(), word, Text(" "), operand)
        flat += (word, Text(" "), operand, Text(" "))
    broken = Group(Joined(tuple(lines)))
    if any(operator not in _JOINING for operator, _, _ in value.rest):
        return broken
    return hugging(sequence(*flat[:-2]), value.rest[-1][2], broken) or broken

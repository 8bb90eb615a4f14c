"""Operators: how tightly each binds, and flat chains of them put into a tree.

The table is that of the Nix manual ("Operators"). Application and selection bind tighter than all of it. A prefix
operator may stand after any other operator and takes what binds tighter than itself, as in Nix:
``a + !b // c`` is ``(a + !b) // c``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from envdsl.syntax.automaton import Token


class Associativity(Enum):
    LEFT = "left"
    RIGHT = "right"
    NONE = "none"  # `a == b == c` is an error


class Precedence(NamedTuple):
    level: int  # higher binds tighter
    associativity: Associativity


BINARY: dict[str, Precedence] = {
    "?": Precedence(12, Associativity.NONE),
    "++": Precedence(11, Associativity.RIGHT),
    "*": Precedence(10, Associativity.LEFT),
    "/": Precedence(10, Associativity.LEFT),
    "+": Precedence(9, Associativity.LEFT),
    "-": Precedence(9, Associativity.LEFT),
    "//": Precedence(7, Associativity.RIGHT),
    "<": Precedence(6, Associativity.NONE),
    "<=": Precedence(6, Associativity.NONE),
    ">": Precedence(6, Associativity.NONE),
    ">=": Precedence(6, Associativity.NONE),
    "==": Precedence(5, Associativity.NONE),
    "!=": Precedence(5, Associativity.NONE),
    "&&": Precedence(4, Associativity.LEFT),
    "||": Precedence(3, Associativity.LEFT),
    "->": Precedence(2, Associativity.RIGHT),
}
PREFIX: dict[str, int] = {"-": 13, "!": 8}


def resolve(
    chain: list[Any],
    text: str,
    build: Callable[[Token, bool, list[Any]], Any],
    clash: Callable[[Token, Token], None],
) -> Any:
    """The tree of a chain: ``[prefix*, operand, (operator, prefix*, operand | "?", path)*]``, operators being tokens of
    ``text``.

    ``build(operator, is_prefix, operands)`` takes what the operator joins off the end of ``operands`` and gives the
    node; ``clash(first, second)`` is told of two operators side by side that do not associate. Operator-precedence
    parsing with two stacks: no chain is too long for it.
    """
    operands: list[Any] = []
    pending: list[tuple[int, Token, bool]] = []  # level, operator, is it a prefix
    expect_operand = True
    for item in chain:
        if type(item) is not Token:
            operands.append(item)
            expect_operand = False
            continue
        operator = text[item.start : item.end]
        if expect_operand:
            pending.append((PREFIX[operator], item, True))
            continue
        level, associativity = BINARY[operator]
        while pending and pending[-1][0] >= level:
            top_level, top, is_prefix = pending[-1]
            if top_level == level:
                if associativity is Associativity.RIGHT:
                    break
                if associativity is Associativity.NONE:
                    clash(top, item)
            pending.pop()
            operands.append(build(top, is_prefix, operands))
        pending.append((level, item, False))
        expect_operand = True
    while pending:
        _, top, is_prefix = pending.pop()
        operands.append(build(top, is_prefix, operands))
    return operands[0]

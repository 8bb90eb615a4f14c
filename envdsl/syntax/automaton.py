"""The LALR automaton: one loop that finds tokens, shifts and reduces.

Lark makes the tables (:mod:`envdsl.syntax.grammar`), and this loop gives them Lark's meaning, contextual lexer included.
It is our own because the loop is where parsing time goes (Lark's makes a string with line and column for each
token), because the tree is built while it runs, by a builder that belongs to one parse, and because
limits, messages and recovery need the stacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from envdsl.syntax.tables import COMMENT, END, PASS_THROUGH, Tables

STACK_LIMIT = 1000
"""Entries on the stack: a bracket takes one to four, an ``else if`` six."""

TOKEN_LIMIT = 200_000
"""Tokens in one text: what is read in about a second."""


class Token(NamedTuple):
    kind: str
    start: int
    end: int


class Unexpected(Exception):  # noqa: N818 - not an error yet: the parser explains it or goes on
    """``token`` cannot stand where it does; its kind is empty where no terminal matches."""

    def __init__(self, token: Token) -> None:
        super().__init__(token)
        self.token = token


class LimitExceeded(Exception):  # noqa: N818 - as above
    """The text is too long or too deeply nested at ``token``."""

    def __init__(self, token: Token, limit: str) -> None:
        super().__init__(token, limit)
        self.token = token
        self.limit = limit


class Automaton:
    """One run over one text. ``states`` and ``values`` are the stacks; ``states`` is longer by the start state."""

    def __init__(self, tables: Tables, builder: Any, text: str, start: str, position: int = 0) -> None:
        self._tables = tables
        self._text = text
        self._final = tables.finals[start]
        self._rules: list[tuple[str, int, Callable[[list[Any]], Any] | None]] = [
            (rule.origin, rule.size, None if rule.action == PASS_THROUGH else getattr(builder, rule.action))
            for rule in tables.rules
        ]
        self._comment: Callable[[int, int], None] = builder.comment
        self.states: list[int] = [tables.starts[start]]
        self.values: list[Any] = []
        self.position = position
        self.budget = TOKEN_LIMIT

    def run(self) -> Any:
        """Go on from ``position`` to the end of the text and give the start symbol's value.

        Raises Unexpected, with the stacks as they were when the token could not be taken, and LimitExceeded.
        """
        text, states, values = self._text, self.states, self.values
        rows, rules, final = self._tables.states, self._rules, self._final
        new_token, position, budget = tuple.__new__, self.position, self.budget
        try:
            while True:
                row = rows[states[-1]]
                match = row.scanner.match(text, position)
                if match is None:
                    token = self._unmatched(position)
                    kind = token.kind
                else:
                    group = match.lastindex
                    kind = row.scanner.names[group]
                    start, position = match.span(group)
                    if kind == COMMENT:
                        self._comment(start, position)
                        continue
                    token = new_token(Token, (kind, start, position))
                action = row.actions.get(kind)
                while action is not None and action < 0:
                    origin, size, build = rules[~action]
                    if build is not None:
                        if size:
                            children = values[-size:]
                            del values[-size:], states[-size:]
                        else:
                            children = []
                        values.append(build(children))
                    else:
                        states.pop()
                    state = rows[states[-1]].gotos[origin]
                    states.append(state)
                    if state == final and kind == END:
                        return values[-1]
                    action = rows[state].actions.get(kind)
                if action is None:
                    raise Unexpected(token)
                states.append(action)
                values.append(token)
                budget -= 1
                if budget < 0:
                    raise LimitExceeded(token, "tokens")
                if len(states) > STACK_LIMIT:
                    raise LimitExceeded(token, "nesting")
        finally:
            self.position, self.budget = position, budget

    def _unmatched(self, position: int) -> Token:
        """The end of the text, or the one character that no terminal of this state begins with."""
        text = self._text
        if not self._tables.states[self.states[-1]].scanner.in_string:
            position = self._tables.skip_whitespace(text, position)
        if position == len(text):
            return Token(END, position, position)
        return Token("", position, position + 1)

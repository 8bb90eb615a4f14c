"""The LALR automaton: one loop that finds tokens, shifts and reduces.

Lark makes the tables (:mod:`envdsl.syntax.grammar`), and this loop gives them Lark's meaning, contextual lexer
included. It is our own because parsing time goes here (Lark's loop makes a string with line and column for each token),
because the tree is built while it runs, by a builder that belongs to one parse, and because limits, messages
and recovery need the stacks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from envdsl.syntax.tables import COMMENT, END, Tables

STACK_LIMIT = 1000
"""Entries on the stack; a bracket takes one to four of them, an ``else if`` six."""

TOKEN_LIMIT = 100_000
"""Tokens in one text, comments included: what is read in about a second; some 2,000 layers."""


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
    """One run over one text.

    ``values`` and ``states`` are the stacks; ``states`` is longer by the start state. ``builder`` has a method for each
    action of the grammar, and ``comment(start, end)``.
    """

    def __init__(self, tables: Tables, builder: Any, text: str, start: str, position: int = 0) -> None:
        self.tables = tables
        self.text = text
        self._final = tables.finals[start]
        self._rules: list[tuple[str, int, Callable[[list[Any]], Any]]] = [
            (rule.origin, rule.size, getattr(builder, rule.action)) for rule in tables.rules
        ]
        self._comment: Callable[[int, int], None] = builder.comment
        self.states: list[int] = [tables.starts[start]]
        self.values: list[Any] = []
        self.position = position
        self.tokens = 0
        self.deepest = 0
        """The most entries that the stack has held."""

    def run(self) -> Any:
        """Go on from ``position`` to the end of the text and give the start symbol's value.

        Raises Unexpected, with the stacks as they were when the token could not be taken, and LimitExceeded.
        """
        text, states, values = self.text, self.states, self.values
        rows, rules, final = self.tables.states, self._rules, self._final
        after, follow = self.tables.after, self.tables.follow
        new_token, position, tokens, deepest = tuple.__new__, self.position, self.tokens, self.deepest
        try:
            while True:
                row = rows[states[-1]]
                match = row.scanner.match(text, position)
                tokens += 1
                if tokens > TOKEN_LIMIT:
                    raise LimitExceeded(Token("", position, position), "tokens")
                if match is None:
                    token = self._unmatched(position)
                    kind = token.kind
                else:
                    group = match.lastindex or 0  # never 0: each alternative is a group
                    kind = row.scanner.names[group]
                    start, position = match.span(group)
                    if kind == COMMENT:
                        self._comment(start, position)
                        continue
                    token = new_token(Token, (kind, start, position))
                action = row.actions.get(kind)
                while action is not None and action < 0:
                    origin, size, build = rules[~action]
                    if size:
                        children = values[-size:]
                        del values[-size:], states[-size:]
                        values.append(build(children))
                    else:
                        values.append(build([]))
                    key = (states[-1], origin, kind)
                    state, action = after.get(key) or follow(key)
                    states.append(state)
                    if state == final and kind == END:
                        return values[-1]
                if action is None:
                    raise Unexpected(token)
                states.append(action)
                values.append(token)
                if len(states) > deepest:
                    deepest = len(states)
                    if deepest > STACK_LIMIT:
                        raise LimitExceeded(token, "nesting")
        finally:
            self.position, self.tokens, self.deepest = position, tokens, deepest

    def _unmatched(self, position: int) -> Token:
        """The end of the text, or the one character that no terminal of this state begins with."""
        if not self.tables.states[self.states[-1]].scanner.in_string:
            position = self.tables.skip_whitespace(self.text, position)
        if position == len(self.text):
            return Token(END, position, position)
        return Token("", position, position + 1)

    def settle(self) -> None:
        """Do the reductions that are due whatever comes next, so that the stacks show what is complete."""
        rows, rules = self.tables.states, self._rules
        while True:
            actions = set(rows[self.states[-1]].actions.values())
            action = actions.pop() if len(actions) == 1 else 0
            if action >= 0:
                return
            origin, size, build = rules[~action]
            children = self.values[len(self.values) - size :]
            self.unwind(len(self.values) - size)
            self.values.append(build(children))
            self.states.append(rows[self.states[-1]].gotos[origin])

    def acceptable(self) -> frozenset[str]:
        """The terminals that could really come next: those that lead to a shift in the end."""
        return frozenset(kind for kind in self.tables.states[self.states[-1]].actions if self._leads_to_shift(kind))

    def _leads_to_shift(self, kind: str) -> bool:
        rows, rules, states = self.tables.states, self.tables.rules, list(self.states)
        while True:
            action = rows[states[-1]].actions.get(kind)
            if action is None or action >= 0:
                return action is not None or (kind == END and states[-1] == self._final)
            rule = rules[~action]
            if rule.size:
                del states[-rule.size :]
            states.append(rows[states[-1]].gotos[rule.origin])

    def unwind(self, height: int) -> None:
        """Drop all but the lowest ``height`` values."""
        del self.values[height:]
        del self.states[height + 1 :]

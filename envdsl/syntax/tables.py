"""LALR tables in the form that :mod:`envdsl.syntax.automaton` runs on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

END = "$END"
COMMENT = "COMMENT"
WHITESPACE = "WHITESPACE"
PASS_THROUGH = "pass_through"


class Rule(NamedTuple):
    """A production: the nonterminal it gives, how many symbols it takes, and the builder's method for it."""

    origin: str
    size: int
    action: str


class Terminal(NamedTuple):
    name: str
    pattern: str  # a regular expression without groups
    literal: str | None  # the text, where the terminal stands for just one
    priority: int
    width: int  # the longest text that the pattern matches


class Scanner:
    """Finds the next token where certain terminals may stand: the first that matches, in the order of Lark's lexer.

    White space before it is skipped, and comments are found as tokens, except inside strings: there text outranks both.
    """

    def __init__(self, terminals: Iterable[Terminal], whitespace: Terminal, comment: Terminal) -> None:
        wanted = list(terminals)
        self.in_string = any(terminal.priority > comment.priority for terminal in wanted)
        if not self.in_string:
            wanted.append(comment)
        wanted.sort(key=lambda t: (-t.priority, -t.width, -len(t.literal or t.pattern), t.name))
        self.names = ("", *(terminal.name for terminal in wanted))  # by number of the group
        self._regex = "|".join(f"({terminal.pattern})" for terminal in wanted)
        if not self.in_string:
            self._regex = f"(?:{whitespace.pattern})?(?:{self._regex})"

    @cached_property
    def match(self) -> Callable[[str, int], re.Match[str] | None]:
        return re.compile(self._regex).match  # on first use: most files meet a third of all states


@dataclass(frozen=True, slots=True)
class State:
    """One row of the automaton.

    ``actions`` gives for a terminal the state to shift to (``n >= 0``) or the rule to reduce by (``~n``); ``gotos``
    gives for a nonterminal the state that follows it.
    """

    actions: Mapping[str, int]
    gotos: Mapping[str, int]
    scanner: Scanner


@dataclass(frozen=True, slots=True)
class Tables:
    states: list[State]
    rules: list[Rule]
    starts: Mapping[str, int]
    finals: Mapping[str, int]
    terminals: Mapping[str, Terminal]
    after: dict[tuple[int, str, str], tuple[int, int | None]] = field(default_factory=dict)

    def follow(self, key: tuple[int, str, str]) -> tuple[int, int | None]:
        """Where a nonterminal leads in a state with a given token ahead: the state and its action, beyond all rules
        that only pass the value through. Kept in ``after``: most reductions are such rules.
        """
        state, nonterminal, kind = key
        while True:
            following = self.states[state].gotos[nonterminal]
            action = self.states[following].actions.get(kind)
            if action is None or action >= 0 or self.rules[~action].action != PASS_THROUGH:
                self.after[key] = following, action
                return following, action
            nonterminal = self.rules[~action].origin

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Tables:
        """From what :func:`envdsl.syntax.grammar.generate` gives."""
        terminals = {row[0]: Terminal(*row) for row in data["terminals"]}
        scanners: dict[frozenset[str], Scanner] = {}
        states = []
        for actions, gotos in data["states"]:
            wanted = frozenset(actions) - {END}
            if wanted not in scanners:
                scanners[wanted] = Scanner(
                    (terminals[name] for name in wanted), terminals[WHITESPACE], terminals[COMMENT]
                )
            states.append(State(actions, gotos, scanners[wanted]))
        return cls(states, [Rule(*row) for row in data["rules"]], data["starts"], data["finals"], terminals)

    def skip_whitespace(self, text: str, position: int) -> int:
        match = re.compile(self.terminals[WHITESPACE].pattern).match(text, position)
        return match.end() if match else position

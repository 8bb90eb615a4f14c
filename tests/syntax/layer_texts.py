"""Hypothesis strategies for layer text: random derivations of the grammar itself, and ways to damage them."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from envdsl.syntax.grammar import tables
from envdsl.syntax.tables import Rule

# For terminals that stand for more than one text. White space stands between any two tokens, except inside strings.
EXAMPLES = {
    "IDENTIFIER": ["a", "b'", "_c-d", "base", "x", "iso", "on", "for", "import", "as", "true"],
    "INTEGER": ["0", "1", "42", "9223372036854775807"],
    "PATH": ["./a", "../b/c.txt", "a/b", "./."],
    "PLAIN_STRING": ['""', '"a"', '"numpy>=2"', '"two\nlines"'],
    "STRING_TEXT": ["a", "\\n", "\\${", "$$", "# no comment", '\\"'],
    "INDENTED_TEXT": ["a", "\n  ", "b\n", "# no comment", "$$"],
    "INDENTED_ESCAPE": ["'''", "''$", "''\\n"],
    "OPEN_INDENTED": ["''", "''\n"],
    "OPERATOR": ["++", "//", "->", "&&", "||", "+", "*", "/", "<"],
}
_WORDS = "LET IN IF THEN ELSE ASSERT REC INHERIT OR IMPORT AS BASE ISO ON FOR"
KEYWORDS = {name: name.lower() for name in _WORDS.split()} | {"EXTENSION": "x"}


class Derivation:
    """A random sentence of the grammar, from its rules as the parser has them."""

    def __init__(self, seed: int, productions: dict[str, list[tuple[Rule, list[str]]]]) -> None:
        self.random = random.Random(seed)
        self.productions = productions
        self.cost = _costs(productions)

    def text(self, start: str, size: int) -> str:
        tokens: list[str] = []
        pending = [start]
        while pending:
            symbol = pending.pop()
            if symbol not in self.productions:
                tokens.append(symbol)
                continue
            choices = self.productions[symbol]
            if len(tokens) + len(pending) > size:
                cheapest = min(self._cost(expansion) for _, expansion in choices)
                choices = [choice for choice in choices if self._cost(choice[1]) == cheapest]
            pending.extend(reversed(self.random.choice(choices)[1]))
        return self._spell(tokens)

    def _cost(self, expansion: list[str]) -> int:
        return sum(self.cost.get(symbol, 1) for symbol in expansion)

    def _spell(self, tokens: list[str]) -> str:
        pieces: list[str] = []
        quotes: list[str] = []  # what is open: a kind of string, or an interpolation or set in it
        for token in tokens:
            inside = bool(quotes) and quotes[-1] in ("QUOTE", "OPEN_INDENTED")
            if not inside:
                pieces.append(self.random.choice((" ", " ", "\n", " # comment\n", " /* comment */ ")))
            pieces.append(self._spelling(token))
            if (token == "QUOTE" and inside) or token == "CLOSE_INDENTED":
                quotes.pop()
            elif token in ("QUOTE", "OPEN_INDENTED", "INTERPOLATION", "OPEN_BRACE"):
                quotes.append(token)
            elif token == "CLOSE_BRACE":
                quotes.pop()
        return "".join(pieces)

    def _spelling(self, token: str) -> str:
        if token in EXAMPLES:
            return self.random.choice(EXAMPLES[token])
        literal = tables().terminals[token].literal
        return literal if literal is not None else KEYWORDS[token]


def _costs(productions: dict[str, list[tuple[Rule, list[str]]]]) -> dict[str, int]:
    """The fewest tokens that each nonterminal can stand for."""
    costs: dict[str, int] = {}
    while True:
        before = dict(costs)
        for symbol, choices in productions.items():
            known = [
                sum(costs.get(part, 1) if part in productions else 1 for part in expansion)
                for _, expansion in choices
                if all(part in costs or part not in productions for part in expansion)
            ]
            if known:
                costs[symbol] = min(known)
        if costs == before:
            return costs


def productions() -> dict[str, list[tuple[Rule, list[str]]]]:
    """The grammar's rules by what they give, without those that only refuse."""
    from lark import Lark

    from envdsl.syntax.grammar import STARTS, grammar_text

    lark = Lark(grammar_text(), parser="lalr", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=False)
    found: dict[str, list[tuple[Rule, list[str]]]] = {}
    for rule in lark.rules:
        action = rule.alias or rule.origin.name
        if not action.startswith("refused_"):
            expansion = [symbol.name for symbol in rule.expansion]
            found.setdefault(rule.origin.name, []).append((Rule(rule.origin.name, len(expansion), action), expansion))
    return found


_PRODUCTIONS = productions()


def sentences(start: str) -> st.SearchStrategy[str]:
    """Texts that the grammar derives from ``start``."""
    return st.builds(
        lambda seed, size: Derivation(seed, _PRODUCTIONS).text(start, size),
        st.integers(0, 2**32),
        st.integers(1, 60),
    )


@st.composite
def damaged(draw: st.DrawFn, start: str) -> str:
    """A derivation with a few characters dropped, doubled or replaced."""
    text = draw(sentences(start))
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, len(text)))
        length = draw(st.integers(0, 3))
        text = (
            text[:position]
            + draw(st.sampled_from(["", *"{}[]()\"'$;=,:.", "''", "${", "let ", "\n"]))
            + text[position + length :]
        )
    return text

"""The one place that loads ``grammar/layer.lark``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from envdsl.syntax.tables import PASS_THROUGH, Tables

STARTS = ("file", "expression")


def grammar_text() -> str:
    """The grammar: package data of an installed envdsl, or ``grammar/`` of a checkout."""
    packaged = files("envdsl") / "grammar" / "layer.lark"
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = Path(__file__).resolve().parents[2] / "grammar" / "layer.lark"
    return checkout.read_text(encoding="utf-8")


@cache
def tables() -> Tables:
    """The tables of the language, built once in a process and only when something is parsed."""
    return Tables.of(generate(grammar_text()))


def generate(grammar: str) -> dict[str, Any]:
    """The LALR tables of a grammar as data for JSON; the same for the same text, whatever the hash seed.

    Raises lark's GrammarError for a grammar that is wrong or not LALR(1).
    """
    from lark import Lark
    from lark.grammar import Rule
    from lark.lexer import TerminalDef

    lark = Lark(
        grammar, parser="lalr", lexer="contextual", start=list(STARTS), keep_all_tokens=True, maybe_placeholders=False
    )
    data, memo = lark.memo_serialize([TerminalDef, Rule])
    lalr = data["parser"]["parser"]
    symbols: dict[int, str] = lalr["tokens"]
    rules = {number: item for number, item in memo.items() if item["__type__"] == "Rule"}
    rule_index = {number: index for index, number in enumerate(rules)}
    order = _state_order(lalr["states"], symbols, [lalr["start_states"][start] for start in STARTS])
    state_index = {number: index for index, number in enumerate(order)}

    states = []
    for number in order:
        actions: dict[str, int] = {}
        gotos: dict[str, int] = {}
        for symbol, (is_reduction, target) in sorted(lalr["states"][number].items(), key=lambda row: symbols[row[0]]):
            name = symbols[symbol]
            row = actions if name.isupper() else gotos
            row[name] = ~rule_index[target["@"]] if is_reduction else state_index[target]
        states.append([actions, gotos])
    return {
        "terminals": [
            [
                terminal.name,
                terminal.pattern.to_regexp(),
                terminal.pattern.value if terminal.pattern.type == "str" else None,
                terminal.priority,
                terminal.pattern.max_width,
            ]
            for terminal in lark.terminals
        ],
        "rules": [_rule(item) for item in rules.values()],
        "states": states,
        "starts": {start: state_index[lalr["start_states"][start]] for start in STARTS},
        "finals": {start: state_index[lalr["end_states"][start]] for start in STARTS},
    }


def _rule(item: Any) -> list[Any]:
    action = item["alias"] or item["origin"]["name"]
    size = len(item["expansion"])
    if action == PASS_THROUGH and size != 1:
        raise ValueError(f"{action} takes one symbol, not {size}: {item}")
    return [item["origin"]["name"], size, action]


def _state_order(states: Any, symbols: dict[int, str], starts: list[int]) -> list[int]:
    """All states, breadth first by symbol name: Lark numbers them by the order of a set, which no two runs share."""
    order = list(starts)
    seen = set(order)
    for number in order:
        for _, (is_reduction, target) in sorted(states[number].items(), key=lambda row: symbols[row[0]]):
            if not is_reduction and target not in seen:
                seen.add(target)
                order.append(target)
    return order

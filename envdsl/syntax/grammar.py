"""The one place that loads ``grammar/layer.lark``.

Lark needs some 0.3 s to be imported and to make the tables, which is most of what a small check takes. So the tables
lie beside this module as ``layer.json``, with the digest of the grammar that they were made of. An edited grammar
has another digest: Lark makes its tables in each process then, until ``python -m envdsl.syntax.grammar`` writes them.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from envdsl.model.digest import blake3_hex
from envdsl.syntax.tables import PASS_THROUGH, Tables

STARTS = ("file", "expression")
_UNBOUNDED = 9999  # widths only order the terminals, and what is unbounded differs between versions of Python
_TABLES = Path(__file__).with_name("layer.json")


def grammar_text() -> str:
    """The grammar: package data of an installed envdsl, or ``grammar/`` of a checkout."""
    package = Path(__file__).resolve().parents[1]  # importlib.resources would take longer to import than all this
    for root in (package, package.parent):
        with suppress(FileNotFoundError):
            return (root / "grammar" / "layer.lark").read_text(encoding="utf-8")
    raise RuntimeError("this installation of envdsl lacks its grammar, envdsl/grammar/layer.lark")


@cache
def tables() -> Tables:
    """The tables of the language, loaded once in a process and only when something is parsed."""
    grammar = grammar_text()
    with suppress(FileNotFoundError):
        data = json.loads(_TABLES.read_bytes())
        if data["grammar"] == digest(grammar):
            return Tables.of(data)
    return Tables.of(generate(grammar))


def digest(grammar: str) -> str:
    return blake3_hex(grammar.encode("utf-8"))


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
        "grammar": digest(grammar),
        "terminals": [
            [
                terminal.name,
                terminal.pattern.to_regexp(),
                terminal.pattern.value if terminal.pattern.type == "str" else None,
                terminal.priority,
                min(terminal.pattern.max_width, _UNBOUNDED),
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


def encode(data: dict[str, Any]) -> str:
    """Tables as JSON with one row in each line, so that a change of the grammar shows as one."""
    parts = []
    for key, value in data.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f"{json.dumps(key)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    _TABLES.write_text(encode(generate(grammar_text())), encoding="utf-8")

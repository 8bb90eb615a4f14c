"""The parts of docs/spec.md that are made from code: attributes of layers, and builtins.

``python -m envdsl.evaluate.reference docs/spec.md`` brings the file up to date; without an argument it prints
both parts. In the file they stand between ``<!-- name -->`` and ``<!-- end of name -->``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from envdsl.evaluate.builtins import TOPICS
from envdsl.evaluate.schema import ATTRIBUTES


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def attributes() -> str:
    """The table of layer attributes."""
    rows = ([f"`{attribute.name}`", attribute.form, attribute.summary] for attribute in ATTRIBUTES.values())
    return "\n".join(_table(("attribute", "value", "meaning"), rows))


def builtins() -> str:
    """A table of builtins for each topic."""
    parts: list[str] = []
    for topic in TOPICS:
        rows = [
            [f"`{text.signature}`", text.summary, f"`{text.example}`", f"`{text.result}`"]
            for _, text in sorted(topic.functions.values(), key=lambda entry: entry[1].name.lower())
        ]
        parts += [f"### {topic.title}", "", *_table(("call", "meaning", "example", "gives"), rows), ""]
    return "\n".join(parts).rstrip()


PARTS = {"attributes": attributes, "builtins": builtins}


def update(text: str) -> str:
    """``text`` with each part replaced by what the code says. Raises ValueError when a mark is missing."""
    for name, make in PARTS.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        if not begin or not end:
            raise ValueError(f"no place for the part `{name}`")
        text = f"{before}{begin}\n{make()}\n\n{end}{after}"
    return text


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.stdout.write("\n\n".join(make() for make in PARTS.values()) + "\n")
    for argument in arguments:
        path = Path(argument)
        path.write_text(update(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

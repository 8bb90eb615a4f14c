"""The project's own code: it is imported into the sandbox as it stands, without being built or installed."""

from __future__ import annotations

from jinja2 import Template
from tabulate import tabulate

REPORT = Template("{{ title }}\n\n{{ table }}\n\n{{ count }} items in all.")


def report(stock: dict[str, int]) -> str:
    table = tabulate(sorted(stock.items()), headers=("item", "pieces"))
    return REPORT.render(title="Stocktake", table=table, count=sum(stock.values()))

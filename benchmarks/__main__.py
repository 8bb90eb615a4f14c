"""``python -m benchmarks``: measure, and print the table (Markdown, or JSON) to stdout; progress goes to stderr."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict

from benchmarks import (
    bench_imports,
    bench_install,
    bench_layers,
    bench_nothing,
    bench_sandbox,
    bench_service,
    bench_store,
)
from benchmarks.harness import Row, fresh_file_system, table
from benchmarks.machine import describe
from benchmarks.scratch import Scratch

LINES: Mapping[str, Callable[[Scratch], Row]] = {
    **bench_sandbox.LINES,
    **bench_install.LINES,
    **bench_nothing.LINES,
    **bench_imports.LINES,
    **bench_store.LINES,
    **bench_layers.LINES,
    **bench_service.LINES,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed as ratios against peers.")
    parser.add_argument("--only", metavar="TEXT", default="", help="the lines whose work contains TEXT")
    parser.add_argument("--quick", action="store_true", help="few runs: does it work, rather than how fast is it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    chosen = {work: line for work, line in LINES.items() if options.only.lower() in work.lower()}
    if not chosen:
        parser.error("no such line; there are:\n  " + "\n  ".join(LINES))
    rows: list[Row] = []
    with fresh_file_system() as (root, kind):
        scratch = Scratch(root, kind, quick=options.quick)
        facts = describe(scratch)
        for work, line in chosen.items():
            print(f"{work} …", file=sys.stderr, flush=True)
            row = line(scratch)
            print(f"    ratio {row.ratio:.2f}, at most {row.at_most:g}", file=sys.stderr, flush=True)
            rows.append(row)
    if options.json:
        lines = [asdict(row) | {"reached": row.reached} for row in rows]
        print(json.dumps({"machine": facts, "rows": lines}, indent=2))
    else:
        print("\n".join(f"- {name}: {value}" for name, value in facts.items()))
        print()
        print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())

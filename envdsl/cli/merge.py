"""``envdsl merge-lock``: the merge driver for git."""

from __future__ import annotations

from pathlib import Path

import click

from envdsl.cli import output
from envdsl.errors import EnvdslError

_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    "merge-lock",
    epilog="\b\nExamples, once in a clone, and once in the project's .gitattributes:\n"
    "  git config merge.envdsl-lock.driver 'envdsl merge-lock %O %A %B %P'\n"
    "  echo 'layers.d/pylock.*.toml merge=envdsl-lock' >> .gitattributes",
)
@click.argument("base", type=_file)
@click.argument("ours", type=_file)
@click.argument("theirs", type=_file)
@click.argument("path", type=click.Path(path_type=Path))
def merge_lock(base: Path, ours: Path, theirs: Path, path: Path) -> int:
    """Merge two versions of a lock package by package; git calls it with three files and the PATH in the project.

    The outcome is written to OURS. It is no lock yet: `envdsl lock` resolves it, keeping its pins as far as they fit,
    and until then `build` and `lock --check` refuse it. Exit status 1 where a side cannot be read: a conflict for git.
    """
    from envdsl.lock.merging import merge
    from envdsl.lock.pylock import parse_lock, write_lock

    try:
        old = base.read_bytes()
        merged = merge(
            parse_lock(old, path) if old.strip() else None,
            parse_lock(ours.read_bytes(), path),
            parse_lock(theirs.read_bytes(), path),
        )
    except EnvdslError as error:
        output.report(error.diagnostics)
        output.message(f"{path}: not merged; `envdsl lock` makes it anew once the layer files are merged")
        return 1
    write_lock(ours, merged.text)
    for conflict in merged.conflicts:
        output.message(f"{path}: {conflict}")
    output.message(f"{path}: merged; run `envdsl lock` and commit what it writes")
    return 0

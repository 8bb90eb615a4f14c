"""``envdsl lsp``."""

from __future__ import annotations

import click

from envdsl.cli.control import extra


@click.command(epilog="\b\nExamples:\n  envdsl lsp    # an editor starts it; docs/editors.md says how")
def lsp() -> None:
    """Serve editors with the Language Server Protocol, over standard input and output.

    Errors as you type, hover, completion, definitions, references, rename, formatting, symbols, and locking a layer.
    """
    with extra("lsp", "editors are served by pygls"):
        from envdsl.lsp.server import create
    create().start_io()

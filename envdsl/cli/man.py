"""``envdsl man``."""

from __future__ import annotations

import click

from envdsl.cli import output


@click.command(epilog="\b\nExamples:\n  envdsl man | man -l -\n  envdsl man > /usr/local/share/man/man1/envdsl.1")
def man() -> None:
    """Print the manual page, made from the help of all commands."""
    from envdsl.cli import reference

    output.result(reference.to_roff(reference.pages()))

"""``envdsl completion``: click's own completion scripts."""

from __future__ import annotations

import click

from envdsl.cli import output


@click.command(epilog='\b\nExamples:\n  eval "$(envdsl completion bash)"\n  envdsl completion fish | source')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes envdsl's commands, options, layers, sessions, requests and tokens in SHELL."""
    from click.shell_completion import get_completion_class

    from envdsl.cli.group import cli

    kind = get_completion_class(shell)
    assert kind is not None
    output.result(kind(cli, {}, "envdsl", "_ENVDSL_COMPLETE").source())

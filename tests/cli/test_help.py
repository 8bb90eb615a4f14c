"""``--help`` of every command: what it does, and how it is called."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest

from envdsl.cli.group import cli


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(commands(cli))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_says_what_it_does_and_shows_how(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    examples = re.split(r"Examples?\b[^\n]*:\n", command.epilog or "")
    assert len(examples) == 2, f"envdsl {' '.join(path)} --help has no example"
    lines = [line for line in examples[1].splitlines() if line.strip()]
    assert any("envdsl" in line and path[-1] in line for line in lines), lines
    # what is shown is what the command takes
    options = {word for option in command.params for word in (*option.opts, *option.secondary_opts)} | {"--help"}
    for line in lines:
        called = re.search(rf"envdsl {re.escape(' '.join(path))}\\b([^|&;)]*)", line)
        for word in re.findall(r"(?<=\s)--[a-z-]+", called[1].partition(" -- ")[0] if called else ""):
            assert word in options, f"{word} in {line!r}"

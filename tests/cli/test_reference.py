"""The reference of commands says what ``--help`` says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from envdsl.cli import reference
from envdsl.cli.group import COMMANDS, cli
from envdsl.cli.reference import Page
from tests.cli.conftest import Cli

DOCS = Path(__file__).parents[2] / "docs" / "commands"


def every(pages: tuple[Page, ...]) -> Iterator[Page]:
    for page in pages:
        yield page
        yield from every(page.children)


def test_the_pages_in_docs_are_made_from_the_commands_as_they_are() -> None:
    """Issue 5: a page in docs/ made from the same source as --help (`make docs` writes them)."""
    written = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert written == reference.files(reference.pages())


def test_every_command_has_an_example_and_says_what_its_options_mean() -> None:
    """Issue 5: every command has an example in its --help."""
    pages = list(every(reference.pages()))
    assert len(pages) > len(COMMANDS)
    assert [page.path for page in pages if not page.children and not page.examples] == []
    root = click.Context(cli, info_name="envdsl")
    for name in COMMANDS:
        assert undocumented(cli.get_command(root, name)) == [], name


def undocumented(command: click.Command | None) -> list[str]:
    assert command is not None
    found = [item.opts[0] for item in command.params if isinstance(item, click.Option) and not item.help]
    if isinstance(command, click.Group):
        found += [name for child in command.commands.values() for name in undocumented(child)]
    return found


def test_examples_begin_with_the_command_that_they_explain() -> None:
    for page in every(reference.pages()):
        if page.examples:
            assert any(page.path in line for line in page.examples), page.path


def test_the_manual_page_is_clean_roff_and_has_every_command(run: Cli) -> None:
    """Issue 5.9: a man page made from the CLI."""
    text = run("man").out
    for page in every(reference.pages()):
        assert f"\n.SS {page.path}\n".replace("-", "\\-") in text
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed: the page's markup was not checked")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8"], input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "ENVDSL(1)" in done.stdout

"""The reference of all commands, from the same source as ``--help``: Markdown for ``docs/commands``, roff for ``man``.

``python -m envdsl.cli.reference DIRECTORY`` writes one Markdown page a top-level command and an index;
``envdsl man`` prints the manual page.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from envdsl import __version__
from envdsl.cli.group import COMMANDS, SECTIONS, cli


@dataclass(frozen=True, slots=True)
class Page:
    """One command. ``path`` is how it is called, ``options`` are what is written and what it means, ``examples`` lines
    as they are typed; ``children`` are the commands of a group."""

    path: str
    summary: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    examples: tuple[str, ...]
    children: tuple[Page, ...]


def pages() -> tuple[Page, ...]:
    """All commands in the order of ``--help``."""
    root = click.Context(cli, info_name="envdsl", **cli.context_settings)
    found = []
    for name, entry in COMMANDS.items():
        command = cli.get_command(root, name)
        assert command is not None
        found.append(_page(command, click.Context(command, info_name=name, parent=root), entry.summary))
    return tuple(found)


def _page(command: click.Command, context: click.Context, summary: str) -> Page:
    children = []
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            if child.name != name:
                continue  # another spelling of a command that is told under its own name
            inner = click.Context(child, info_name=name, parent=context)
            children.append(_page(child, inner, child.get_short_help_str(200)))
    records = [record for item in command.get_params(context) if (record := item.get_help_record(context))]
    return Page(
        context.command_path,
        summary,
        " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        tuple(_paragraphs(command.help or "")),
        tuple((_plain(names), _plain(text)) for names, text in records if text),  # the usage has the others
        tuple(_examples(command.epilog or "")),
        tuple(children),
    )


def _paragraphs(text: str) -> Iterator[str]:
    """Paragraphs of a help text, each on one line; one that begins with a backspace keeps its lines (click's mark)."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = paragraph.splitlines()
        if lines and lines[0].strip() == "\b":
            yield "\n".join(lines[1:])
        else:
            yield " ".join(line.strip() for line in lines)


def _examples(epilog: str) -> Iterator[str]:
    lines = epilog.replace("\b", "").strip("\n").splitlines()
    yield from (line[2:] if line.startswith("  ") else line for line in lines if not line.startswith("Example"))


def _plain(text: str) -> str:
    return " ".join(text.split())


def to_markdown(page: Page, *, level: int = 1) -> Iterator[str]:
    """The page of a command and of those below it, line by line."""
    yield f"{'#' * level} {page.path}"
    yield ""
    yield f"    {page.usage}"
    for paragraph in page.paragraphs:
        yield ""
        yield from (f"    {line}" for line in paragraph.splitlines()) if "\n" in paragraph else (_escaped(paragraph),)
    if page.options:
        yield ""
        yield "| option | |"
        yield "|---|---|"
        yield from (f"| `{names.replace('|', chr(92) + '|')}` | {_cell(text)} |" for names, text in page.options)
    if page.examples:
        yield ""
        yield "```sh"
        yield from page.examples
        yield "```"
    for child in page.children:
        yield ""
        yield from to_markdown(child, level=level + 1)


def _escaped(text: str) -> str:
    """Outside of code, what Markdown would take for markup: names of variables, placeholders in angle brackets."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)


def _cell(text: str) -> str:
    return _escaped(text).replace("|", "\\|")


def to_roff(found: tuple[Page, ...]) -> str:
    """``envdsl(1)`` in the macros of man(7)."""
    return "\n".join(_roff(found)) + "\n"


def _roff(found: tuple[Page, ...]) -> Iterator[str]:
    yield f'.TH ENVDSL 1 "" "envdsl {__version__}" "User Commands"'
    yield ".SH NAME"
    yield "envdsl \\- declarative, content\\-addressed Python layers for sandboxes"
    yield ".SH SYNOPSIS"
    yield ".B envdsl"
    yield "COMMAND [ARGUMENTS]..."
    yield ".SH DESCRIPTION"
    for paragraph in _paragraphs(cli.help or ""):
        yield ".PP"
        yield from _roff_text(paragraph)
    yield ".SH COMMANDS"
    for page in found:
        yield from _roff_page(page)


def _roff_page(page: Page) -> Iterator[str]:
    yield f".SS {_roff_escape(page.path)}"
    yield ".nf"
    yield f".B {_roff_escape(page.usage)}"
    yield ".fi"
    for paragraph in page.paragraphs:
        yield ".PP"
        yield from _roff_text(paragraph)
    for names, text in page.options:
        yield from (".TP", f".B {_roff_escape(names)}", _roff_escape(text) or "\\&")
    if page.examples:
        yield ".PP"
        yield "Examples:"
        yield from (".RS", ".nf", *map(_roff_escape, page.examples), ".fi", ".RE")
    for child in page.children:
        yield from _roff_page(child)


def _roff_text(paragraph: str) -> Iterator[str]:
    if "\n" in paragraph:
        yield from (".nf", *map(_roff_escape, paragraph.splitlines()), ".fi")
    else:
        yield _roff_escape(paragraph)


def _roff_escape(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    escaped = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in escaped)
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def files(found: tuple[Page, ...]) -> dict[str, str]:
    """File name -> content of ``docs/commands``."""
    by_name = {page.path.split()[-1]: page for page in found}
    index = ["# Commands", "", "From the same source as `envdsl COMMAND --help`; `make docs` writes these pages."]
    for title, commands in SECTIONS.items():
        index += ["", f"## {title}", ""]
        index += [f"- [{by_name[name].path}]({name}.md): {_escaped(by_name[name].summary)}" for name in commands]
    texts = {f"{name}.md": "\n".join(to_markdown(page)) + "\n" for name, page in by_name.items()}
    return {"README.md": "\n".join(index) + "\n", **texts}


def main(directory: Path) -> None:
    """Write the pages, and remove those of commands that there are no more."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = files(pages())
    for path in directory.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (directory / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

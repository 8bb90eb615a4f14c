"""``envdsl repl``."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import common
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.app.repl import Prompt
    from envdsl.errors import Diagnostic

_FIRST, _MORE = "envdsl> ", "      > "
_KEPT = 1_000  # lines of history
# What ends a word for completion: a name may hold `-` and `'`, and `.` leads into a set.
_DELIMITERS = ' \t\n()[]{};,=+*/<>!&|?@:"$'


@click.command(
    epilog="\b\nExamples:\n  envdsl repl\n  echo 'office-py312.packages' | envdsl repl\n\n"
    '\b\nAt the prompt:\n  map (x: x * 2) [ 1 2 3 ]\n  tools = [ "rich" ]\n  :t tools\n  :doc concatMap\n  :q'
)
@common
def repl(project: Project) -> int:
    """Try the language: expressions and declarations, with the project's layers in scope.

    A name of a layer is the set of its attributes, `layers` the set of all of them. Unfinished input goes
    on in the next line. `:help` lists the commands. Without a terminal, lines are read from standard input, and the
    exit status is 1 where any of them failed.
    """
    from envdsl.app.repl import Prompt

    prompt = Prompt(project)
    if sys.stdin.isatty():
        with _Terminal(prompt):
            _converse(prompt, interactive=True)
        return ExitStatus.OK
    return ExitStatus.OK if _converse(prompt, interactive=False) else ExitStatus.FAILED


def _converse(prompt: Prompt, *, interactive: bool) -> bool:
    """Read, answer, until the person leaves or nothing more comes. Ctrl-C drops the input so far.

    Returns whether all that was read was without an error.
    """
    pending, sound = "", True
    while True:
        try:
            line = _read(_MORE if pending else _FIRST, interactive=interactive)
            if line is None:
                break
            text = f"{pending}\n{line}" if pending else line
            answer = prompt.answer(text)
        except KeyboardInterrupt:
            if not interactive:
                raise
            pending = ""
            output.result("")
            continue
        pending = text if answer.unfinished else ""
        if answer.done:
            return sound
        if answer.text:
            output.result(answer.text)
        output.report(answer.diagnostics)
        sound = sound and not any(item.severity == "error" for item in answer.diagnostics)
    if interactive:
        output.result("")
    elif pending:
        output.report(_complaint(pending))
        return False
    return sound


def _read(shown: str, *, interactive: bool) -> str | None:
    """The next line; None where there is none."""
    if interactive:
        try:
            return input(shown)
        except EOFError:
            return None
    line = sys.stdin.readline()
    return line.removesuffix("\n") if line else None


def _complaint(pending: str) -> tuple[Diagnostic, ...]:
    """Why input that ends too early is none."""
    from envdsl.app.repl import INPUT
    from envdsl.errors import EnvdslError
    from envdsl.model.span import Source
    from envdsl.syntax.parser import parse_expression

    try:
        parse_expression(Source(INPUT, pending))
    except EnvdslError as error:
        return error.diagnostics
    return ()


class _Terminal:
    """Line editing with history and completion, where Python has readline."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._matches: list[str] = []
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        self._history = Path(state).expanduser() / "envdsl" / "repl-history"

    def __enter__(self) -> None:
        try:
            import readline
        except ImportError:
            return
        with suppress(OSError):  # no history is no reason not to talk
            readline.read_history_file(self._history)
        readline.set_history_length(_KEPT)
        readline.set_completer_delims(_DELIMITERS)
        readline.set_completer(self._complete)
        is_editline = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")

    def __exit__(self, *_: object) -> None:
        try:
            import readline
        except ImportError:
            return
        readline.set_completer(None)
        with suppress(OSError):
            self._history.parent.mkdir(parents=True, exist_ok=True)
            self._history.touch(mode=0o600)
            readline.write_history_file(self._history)

    def _complete(self, word: str, number: int) -> str | None:
        import readline

        if number == 0:
            line = readline.get_line_buffer()[: readline.get_endidx()]
            start, found = self._prompt.complete(line)
            # readline replaces the word alone, which may begin behind the `:` of a command.
            self._matches = [match[max(0, len(line) - len(word) - start) :] for match in found]
        return self._matches[number] if number < len(self._matches) else None

"""``envdsl repl``, with lines from a pipe and at a terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envdsl.evaluate.builtins import DOCUMENTATION
from envdsl.evaluate.schema import ATTRIBUTES
from tests.cli.conftest import PYTHON, Cli, Result

Ask = Callable[..., Result]


@pytest.fixture
def ask(run: Cli, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """One conversation through a pipe."""

    def conversation(*lines: str) -> Result:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return run("repl")

    return conversation


def test_expressions_are_evaluated_and_errors_do_not_end_it(ask: Ask) -> None:
    """Issue 5.11: works piped; errors never end it. A script that goes on is told by the exit status."""
    done = ask("1 + 1", "nobody", "1 +* 2", 'throw "no"', ":nonsense", "map (x: x * 2) [ 1 2 ]")
    assert (done.status, done.out) == (1, "2\n[ 2 4 ]\n")
    for code in ("eval-undefined-name", "syntax-", "eval-throw", "repl-unknown-command"):
        assert f"error[{code}" in done.err


def test_unfinished_input_goes_on_in_the_next_line(ask: Ask) -> None:
    """Issue 5.11: multi-line input."""
    assert ask("{", "  a = [", "    1", "  ];", "}.a").out == "[ 1 ]\n"
    assert ask('a = "two', 'lines"', "a").out == '"two\\nlines"\n'
    assert ask("tools = [", "1 ];", "tools").out == "[ 1 ]\n"
    assert "syntax-unclosed-bracket" in ask("(1").err


def test_names_and_declarations_stay_and_can_be_replaced(ask: Ask) -> None:
    """Issue 5.11: a definition sees those before it, and the later of one name counts; a wrong one is not kept."""
    done = ask("a = 1", "b = a + 1", "b", "a = 10;", "b", "a = c", "a", "let d = b; in d", "let d = 5;", "d")
    assert done.out == "2\n11\n10\n11\n5\n"
    assert "eval-undefined-name" in done.err


def test_layers_can_be_declared_and_wrong_ones_are_refused(ask: Ask) -> None:
    """Issue 5.11: anything that a layer file may hold."""
    done = ask('base mine { python = "3.12"; }', "mine.python", "base wrong { pyton = 1; }", "layers ? wrong")
    assert done.out == '"3.12"\nfalse\n'
    assert "did you mean `python`?" in done.err


def test_the_layers_of_the_project_are_in_scope(ask: Ask) -> None:
    """Issue 5.11."""
    done = ask("core.python", "attrNames layers", "one.packages", ":layers")
    assert done.out.splitlines() == [
        f'"{PYTHON}"',
        '[ "alone" "core" "one" "two" ]',
        '[ "foo==1" ]',
        f"iso   alone, Python {PYTHON}",
        f"base  core, Python {PYTHON}",
        f"x     one on core, Python {PYTHON}",
        f"x     two on core, Python {PYTHON}",
    ]


def test_types_are_shown(ask: Ask) -> None:
    """Issue 5.11: `:t`, without evaluating more than that takes."""
    done = ask(":t 1", ':t "a"', ":t x: x", ":t map", ':t [ (throw "no") ]', ":t core", ":t ./a", ":t null")
    assert done.out.split() == ["int", "string", "lambda", "lambda", "list", "set", "path", "null"]


def test_every_builtin_has_its_documentation_at_the_prompt(ask: Ask) -> None:
    """Issue 5.11: `:doc NAME` for every builtin, the texts of docs/spec.md from one source."""
    spec = (Path(__file__).parents[2] / "docs" / "spec.md").read_text(encoding="utf-8").replace("\\|", "|")
    done = ask(*(f":doc {name}" for name in DOCUMENTATION), *(f":doc {name}" for name in ATTRIBUTES))
    assert done.err == ""
    for entry in DOCUMENTATION.values():
        assert f"{entry.signature}\n  {entry.summary}\n  {entry.example}  =>  {entry.result}\n" in done.out
        assert f"| `{entry.signature}` | {entry.summary} |" in spec
    for attribute in ATTRIBUTES.values():
        assert f"{attribute.name}: {attribute.form}\n  {attribute.summary}\n" in done.out
    listed = ask(":doc").out.split()
    assert DOCUMENTATION.keys() <= set(listed)
    assert "did you mean `concatMap`?" in ask(":doc concatmap").err


def test_a_file_can_be_loaded_and_read_again(ask: Ask, project: Path) -> None:
    """Issue 5.11: `:load` takes a file's names into scope; `:reload` reads changed files."""
    (project / "lib.layer").write_text("let shared = [ 1 ];\n")
    assert ask(":load lib.layer", "shared").out == "shared\n[ 1 ]\n"
    assert "repl-load" in ask(":load nowhere.layer").err
    assert "repl-load" in ask(":load /etc/passwd").err


def test_leaving(ask: Ask) -> None:
    assert ask("1", ":q", "2").out == "1\n"


def test_a_broken_project_can_still_be_asked(ask: Ask, project: Path) -> None:
    """Issue 5.11: what is wrong in files is told by `:layers`, and does not stand in the way of the rest."""
    (project / "layers.d" / "broken.layer").write_text("base b { python = }")
    done = ask("1 + 1", "core.kind", ":layers")
    assert done.out.startswith('2\n"base"\n')
    assert "broken.layer:1:" in done.err


def test_at_a_terminal_there_is_completion_history_and_ctrl_c(project: Path, tmp_path: Path) -> None:
    """Issue 5.11: Tab completes, Ctrl-C drops a line, the history is kept for oneself."""
    pytest.importorskip("readline", reason="this Python has no readline")
    state = tmp_path / "state"
    main, other = pty.openpty()
    environment = {**os.environ, "XDG_STATE_HOME": str(state), "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-m", "envdsl", "repl"],
        cwd=project,
        env=environment,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
        preexec_fn=lambda: _own_terminal(),
    ) as process:
        os.close(other)
        try:
            _talk(_Terminal(main))
            assert process.wait(30) == 0
        finally:
            process.kill()
    os.close(main)
    history = state / "envdsl" / "repl-history"
    assert "40 + 2" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def _talk(terminal: _Terminal) -> None:
    terminal.until("envdsl> ")
    terminal.type("concatMa\t (x: [ x x ]) [ 7 ]\n")
    terminal.until("[ 7 7 ]", "envdsl> ")
    terminal.type(":do\t attrNam\t\n")
    terminal.until("The names of the attributes, sorted.", "envdsl> ")
    terminal.type("core.descr\t\n")
    terminal.until('"A base"', "envdsl> ")
    terminal.type("[ 1\n")
    terminal.until("      > ")
    # CPython looks for signals, then waits for keys: one that comes between the two is noticed with the next key.
    terminal.until("envdsl> ", insisting="\x03")
    terminal.type("40 + 2\n")
    terminal.until("42", "envdsl> ")
    terminal.type("\x04")


def _own_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class _Terminal:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def until(self, *wanted: str, insisting: str = "") -> None:
        """Read until all of ``wanted`` has come, one after the other, typing ``insisting`` once a second."""
        deadline = time.monotonic() + 30
        typed = 0.0
        while True:
            position = 0
            for text in wanted:
                position = self._seen.find(text, position) + len(text) if text in self._seen[position:] else -1
                if position < 0:
                    break
            if position >= 0:
                self._seen = self._seen[position:]
                return
            assert time.monotonic() < deadline, self._seen
            if insisting and time.monotonic() > typed + 1:
                self.type(insisting)
                typed = time.monotonic()
            if select.select([self._descriptor], [], [], 0.2)[0]:
                self._seen += os.read(self._descriptor, 4096).decode(errors="replace")

"""Read the ``console`` blocks of a README, run their commands, and hold the README to what they print.

A block is a terminal as a reader sees it::

    $ envdsl session create letters --layer letters
    …/sessions/letters
    $ envdsl run letters -- python3 -c 'import numpy'
    Traceback …
    …
    [exit status 1]

A line that begins with ``$`` is a command, the lines after it are what it prints (stdout and stderr together). ``…``
stands for anything within a line, and alone on a line for any number of lines. Spaces and tabs are alike. The lines
that tell of stages which take long, where a terminal has a bar that vanishes, are left out.
``[exit status N]`` ends the output of a command that is meant to fail.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STAGE = re.compile(
    r"^(Locking|Resolving [^:\s]+|Fetching wheels|Unpacking|Compiling|Probing): [0-9][0-9. KMGiB]*\n|^Python 3\.\d+\n",
    re.MULTILINE,
)
_STATUS = re.compile(r"\[exit status (\d+)\]")


@dataclass(frozen=True)
class Step:
    """One command of a README and what it is said to print."""

    command: str
    output: str
    status: int

    def matches(self, printed: str) -> bool:
        return re.fullmatch(_pattern(self.output), "\n" + printed.rstrip("\n"), re.DOTALL) is not None


def steps(markdown: str) -> Iterator[Step]:
    """The commands of all ``console`` blocks, in order."""
    for block in _BLOCK.findall(markdown):
        _nothing, *chunks = re.split(r"^\$ ", block, flags=re.MULTILINE)
        for chunk in chunks:
            command, _, output = chunk.partition("\n")
            lines = output.rstrip("\n").split("\n")
            status = _STATUS.fullmatch(lines[-1])
            yield Step(command, "\n".join(lines[:-1] if status else lines), int(status[1]) if status else 0)


def environment(directory: Path) -> dict[str, str]:
    """Variables with which ``envdsl`` is this checkout's, by a command made in ``directory``."""
    directory.mkdir()
    command = directory / "envdsl"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m envdsl "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return {
        "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONUNBUFFERED": "1",  # what a command prints to stdout and to stderr comes in order, as on a terminal
        "NO_COLOR": "1",
        "COLUMNS": "100",
    }


def run(readme: Path, *, environment: Mapping[str, str]) -> None:
    """Run every command of ``readme`` in its directory, and fail at the first that does not print what it says."""
    found = list(steps(readme.read_text(encoding="utf-8")))
    assert found, f"{readme.name} has no console block"
    for step in found:
        done = subprocess.run(
            ["bash", "-c", step.command],
            cwd=readme.parent,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        printed = _STAGE.sub("", done.stdout)
        said = f"$ {step.command}\n{printed}"
        assert done.returncode == step.status, f"exit status {done.returncode}, not {step.status}:\n{said}"
        assert step.matches(printed), f"{said}\n--- is not what {readme.parent.name}/README.md says:\n{step.output}"


def _pattern(output: str) -> str:
    """A regular expression for ``output`` with each of its lines, and of what was printed, led by a line break."""
    return "".join("(?:\n.*)?" if line == "…" else "\n" + _line(line) for line in output.split("\n"))


def _line(text: str) -> str:
    return "[^\n]*?".join(_literal(part) for part in text.split("…"))


def _literal(text: str) -> str:
    return "[ \t]+".join(re.escape(part) for part in re.split("[ \t]+", text))

"""How the process ends: with everything written, whatever is not torn down."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "import sys; sys.argv[0] = 'envdsl'; from envdsl.start import main; main()"


def envdsl(program: str, *arguments: str, cwd: Path, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True)


def test_output_and_status_arrive(tmp_path: Path) -> None:
    done = envdsl(PROGRAM, "--version", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("envdsl ")
    assert envdsl(PROGRAM, "no-such-command", cwd=tmp_path).returncode == 2


def test_exit_handlers_run(tmp_path: Path) -> None:
    done = envdsl(f"import atexit; atexit.register(print, 'handled'); {PROGRAM}", "--version", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "handled"


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="no /dev/full")
def test_output_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = envdsl(PROGRAM, "--version", cwd=tmp_path, stdout=full.fileno())
    assert done.returncode != 0
    assert "No space left" in done.stderr

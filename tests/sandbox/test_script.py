"""The script that starts a sandbox without Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from envdsl.sandbox import seccomp
from envdsl.sandbox.argv import arguments, encode
from envdsl.sandbox.script import script
from tests.sandbox.conftest import Caller


@pytest.fixture
def start(caller: Caller) -> Path:
    """A session's `run` and its arguments, in a directory that is awkward to quote."""
    directory = caller.layer.parent / 'it\'s a "session" $HOME'
    directory.mkdir()
    filter_file = seccomp.install(directory)
    (directory / "bwrap.args").write_bytes(encode(arguments(caller.plan)))
    path = directory / "run"
    path.write_text(
        script(
            bwrap=caller.program,
            args=directory / "bwrap.args",
            seccomp_filter=filter_file,
            command=["sh", "-c", "echo the default, quoted: $0", "it's"],
        )
    )
    path.chmod(0o755)
    return path


def execute(caller: Caller, path: Path, *command: str, cwd: str = "/") -> subprocess.CompletedProcess[str]:
    return caller.call(
        lambda: subprocess.run(
            [path, *command], cwd=cwd, capture_output=True, text=True, check=False, env={"SECRET": "x"}
        )
    )


def test_the_script_starts_the_sandbox_from_anywhere(caller: Caller, start: Path) -> None:
    """Issue 2.13: `run` starts the sandbox; exit statuses pass through."""
    for cwd in ("/", "/usr", str(caller.workspace)):
        done = execute(caller, start, "sh", "-c", 'echo "$@"; pwd; exit 7', "sh", "two words", "*", cwd=cwd)
        assert (done.returncode, done.stdout, done.stderr) == (7, "two words *\n/workspace\n", "")


def test_the_script_runs_its_default_command(caller: Caller, start: Path) -> None:
    assert execute(caller, start).stdout == "the default, quoted: it's\n"


def test_the_scripts_sandbox_is_as_closed_as_any(caller: Caller, start: Path) -> None:
    code = (
        "import os; s = open('/proc/self/status').read();"
        "print('CapEff:\\t0000000000000000' in s, 'Seccomp:\\t2' in s, sorted(os.environ), os.listdir('/proc/self/fd'))"
    )
    done = execute(caller, start, "/usr/bin/python3", "-I", "-c", code)
    assert done.stdout == "True True ['HOME', 'LANG', 'PATH', 'PWD'] ['0', '1', '2', '3']\n"


@pytest.mark.parametrize(
    ("missing", "code"), [("bwrap.args", "sandbox-incomplete"), ("seccomp-*.bpf", "sandbox-incomplete")]
)
def test_the_script_refuses_where_a_file_is_missing(caller: Caller, start: Path, missing: str, code: str) -> None:
    """Issue 2.13: status 4, and a sentence that says what is missing and what to do."""
    (path,) = start.parent.glob(missing)
    path.unlink()
    done = execute(caller, start, "true")
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == f"envdsl: {code}: {path} is missing or cannot be read; create the session again\n"


def test_the_script_refuses_where_bubblewrap_is_gone(me: Caller, tmp_path: Path) -> None:
    path = tmp_path / "run"
    path.write_text(script(bwrap=tmp_path / "bwrap", args=path, seccomp_filter=path, command=["true"]))
    path.chmod(0o755)
    done = execute(me, path)
    assert done.returncode == 4
    assert done.stderr == (
        f"envdsl: sandbox-no-bwrap: {tmp_path}/bwrap is gone or cannot be run; 'envdsl doctor' says what to do\n"
    )


def test_a_script_takes_absolute_paths_only(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="absolute"):
        script(bwrap=Path("bwrap"), args=tmp_path, seccomp_filter=tmp_path, command=["true"])


def test_the_script_is_posix_shell(start: Path) -> None:
    for shell in ("dash", "bash", "busybox"):
        if subprocess.run(["sh", "-c", f"command -v {shell}"], capture_output=True, check=False).returncode == 0:
            command = [shell, "sh", "-n", str(start)] if shell == "busybox" else [shell, "-n", str(start)]
            assert subprocess.run(command, check=False).returncode == 0
    assert os.access(start, os.X_OK)

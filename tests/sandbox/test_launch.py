"""Running a command in a sandbox: statuses, signals, limits, and that nothing is left."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.reporter import Reporter
from envdsl.sandbox import cgroups, skeleton
from envdsl.sandbox.launch import run
from envdsl.sandbox.limits import Limits
from envdsl.sandbox.plan import Mount
from envdsl.sandbox.process import CAPTURE_LIMIT
from tests.patience import TWO_SECONDS
from tests.sandbox.conftest import Caller

PYTHON = ("/usr/bin/python3", "-I", "-c")
CAN_LIMIT = cgroups.create(Limits(memory=1 << 20, cpus=1, pids=1))
CONTROLLERS = set(CAN_LIMIT.directories) if CAN_LIMIT is not None else set()
if CAN_LIMIT is not None:
    CAN_LIMIT.remove()


def needs(controller: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(controller not in CONTROLLERS, reason=f"no control group for {controller} here")


class Recorder(Reporter):
    def __init__(self) -> None:
        self.warnings: list[Diagnostic] = []

    def warn(self, diagnostic: Diagnostic) -> None:
        self.warnings.append(diagnostic)


def running(marker: str) -> list[int]:
    """The processes of the host whose command line holds ``marker``."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def eventually(condition: Callable[[], object], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("status", [0, 1, 4, 124, 255])
def test_the_exit_status_passes_through(me: Caller, status: int) -> None:
    """Issue 2.13: exit statuses pass through."""
    assert me.run("sh", "-c", f"exit {status}").status == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_command_that_dies_by_a_signal_gives_128_and_its_number(caller: Caller, number: int) -> None:
    """Issue 2.13: exit statuses pass through."""
    assert caller.run("sh", "-c", f"kill -{int(number)} $$").status == 128 + number


def test_a_command_that_is_not_there_gives_127(me: Caller) -> None:
    outcome = me.run("no-such-command")
    assert outcome.status == 127
    assert b"no-such-command" in outcome.stderr


def test_the_plans_command_runs_where_none_is_given(me: Caller) -> None:
    assert me.run(plan=replace(me.plan, command=("echo", "default"))).stdout == b"default\n"


def test_a_timeout_ends_the_whole_tree_of_processes(caller: Caller) -> None:
    """Issue 2.13: 124, the whole process tree ended: whatever ignores signals or has a session of its own."""
    marker = f"3600.{os.getpid()}{caller.uid}"
    script = f"""
trap '' TERM INT HUP
setsid sleep {marker} &
setsid -f sh -c "trap '' TERM INT HUP; sleep {marker}; sleep {marker}"
(sleep {marker} & )
sleep {marker}
"""
    started = time.monotonic()
    outcome = caller.run("sh", "-c", script, limits=Limits(timeout=0.7))
    assert (outcome.status, outcome.timed_out) == (124, True)
    assert time.monotonic() - started < TWO_SECONDS
    assert running(marker) == []


def test_what_the_command_leaves_running_ends_with_it(me: Caller) -> None:
    marker = f"3601.{os.getpid()}"
    assert me.run("sh", "-c", f"setsid -f sleep {marker}; exit 5").status == 5
    assert running(marker) == []


@needs("memory")
def test_a_memory_limit_kills(me: Caller) -> None:
    """Issue 2.13: --memory."""
    outcome = me.run(*PYTHON, "x = bytearray(400 << 20)", limits=Limits(memory=96 << 20))
    assert (outcome.status, outcome.out_of_memory) == (137, True)
    assert me.run(*PYTHON, "x = bytearray(8 << 20)", limits=Limits(memory=96 << 20)).status == 0


@needs("memory")
def test_files_in_memory_count_against_the_memory_limit(me: Caller) -> None:
    code = "f = open('/tmp/x', 'wb')\nfor _ in range(400): f.write(bytes(1 << 20))"
    assert me.run(*PYTHON, code, limits=Limits(memory=96 << 20)).out_of_memory


@needs("pids")
def test_a_process_limit_holds(me: Caller) -> None:
    """Issue 2.13: --pids: the limit is the number of processes that the command may have, itself included."""
    code = """
import os, time
made = 1
try:
    while made < 50:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except BlockingIOError:
    print(made)
"""
    assert me.run(*PYTHON, code, limits=Limits(pids=7)).stdout == b"7\n"


@needs("cpu")
def test_a_processor_limit_holds(me: Caller) -> None:
    """Issue 2.13: --cpus."""
    code = "import time; t = time.time()\nwhile time.time() < t + 1: pass\nprint(time.process_time())"
    used = float(me.run(*PYTHON, code, limits=Limits(cpus=0.2)).stdout)
    assert used < 0.5


def test_control_groups_are_gone_afterwards(me: Caller) -> None:
    limits = Limits(memory=64 << 20, cpus=0.5, pids=50, timeout=0.3)
    assert me.run("sleep", "60", limits=limits).status == 124
    mine = f"envdsl-{os.getpid()}-"
    assert [path for hierarchy in cgroups.mounted() for path in hierarchy.mount.glob(f"**/{mine}*")] == []


def test_without_control_groups_limits_are_weaker_and_said_to_be(me: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2.13: what cannot be enforced in full is reported, and enforced as far as the kernel goes."""
    monkeypatch.setattr(cgroups, "mounted", list)
    recorder = Recorder()
    limits = Limits(memory=96 << 20, cpus=1, pids=20)
    outcome = me.run(*PYTHON, "x = bytearray(400 << 20)", limits=limits, reporter=recorder)
    assert outcome.status == 1
    assert b"MemoryError" in outcome.stderr
    assert [warning.code for warning in recorder.warnings] == ["sandbox-limits-weak"] * 3
    affinity = me.run(*PYTHON, "import os; print(len(os.sched_getaffinity(0)))", limits=limits, reporter=recorder)
    assert affinity.stdout == b"1\n"


def test_environment_and_mounts_can_be_added_for_one_run(me: Caller) -> None:
    """Issue 2.13: --env, --mount."""
    mounts = [
        Mount.read_only(str(me.layer), "/data/set"),
        Mount.read_only(str(me.layer / "layer.json"), "/config/settings.json"),
    ]
    outcome = me.run(
        "sh", "-c", "echo $MODE $LANG; cat /config/settings.json; ls /data/set",
        environment={"MODE": "fast", "LANG": "C"}, mounts=mounts,
    )  # fmt: skip
    assert outcome.stdout == b"fast C\n{}layer.json\n"


def test_captured_output_is_bounded_to_its_end(me: Caller) -> None:
    outcome = me.run(*PYTHON, "import sys; sys.stdout.write('x' * 5_000_000 + 'end'); sys.stderr.write('error')")
    assert len(outcome.stdout) == CAPTURE_LIMIT
    assert outcome.stdout.endswith(b"xend")
    assert outcome.stderr == b"error"


def test_a_sandbox_that_cannot_be_set_up_is_an_error_of_the_environment(me: Caller) -> None:
    plan = replace(me.plan, mounts=(*me.plan.mounts[:1], Mount.read_only("/no/such/layer", "/envdsl/layers/0")))
    with pytest.raises(EnvdslError) as caught:
        me.run("true", plan=plan)
    assert caught.value.code == "sandbox-start-failed"
    assert caught.value.exit_status == ExitStatus.ENVIRONMENT
    assert "/no/such/layer" in str(caught.value)


def test_a_bubblewrap_that_is_gone_is_an_error_of_the_environment(me: Caller) -> None:
    with pytest.raises(EnvdslError, match="cannot execute") as caught:
        run(me.plan, ["true"], bwrap=Path("/no/such/bwrap"))
    assert caught.value.code == "sandbox-no-bwrap"


def test_a_running_sandbox_holds_its_locks(me: Caller) -> None:
    """Issue 2.13: gc sees from outside, with F_GETLK, that a layer is in use; and that it no longer is."""

    def locked() -> bool:
        with (me.layer / "layer.json").open("r+") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        return bool(struct.unpack("hhqqi4x", answer)[0] != fcntl.F_UNLCK)

    assert not locked()
    process = _launcher(me, "sh", "-c", "echo ready; sleep 60")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert locked()
    process.kill()
    process.wait()
    process.stdout.close()
    assert eventually(lambda: not locked())


_LAUNCHER = """
import pickle, sys
from pathlib import Path
from envdsl.sandbox.launch import run
plan, command, program = pickle.loads(bytes.fromhex(sys.argv[1]))
sys.exit(run(plan, command, bwrap=program).status)
"""


def _launcher(me: Caller, *command: str, **options: object) -> subprocess.Popen[bytes]:
    """Another Python that launches, so that it can be signalled and killed."""
    import pickle

    argument = pickle.dumps((me.plan, command, me.program)).hex()
    options = {"stdout": subprocess.PIPE, "cwd": Path(__file__).parents[2]} | options
    return subprocess.Popen([sys.executable, "-c", _LAUNCHER, argument], **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_are_passed_on_to_the_command(me: Caller, number: signal.Signals) -> None:
    code = (
        "import os, signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: (os.write(1, b'got'), sys.exit(9)))\n"
        "os.write(1, b'ready\\n')\ntime.sleep(60)"
    )
    process = _launcher(me, *PYTHON, code)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.stdout.read() == b"got"
    assert process.wait() == 9
    process.stdout.close()


def test_the_sandbox_ends_when_its_launcher_is_killed(me: Caller) -> None:
    marker = f"3602.{os.getpid()}"
    process = _launcher(me, "sh", "-c", f"setsid -f sleep {marker}; echo ready; sleep {marker}")
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert eventually(lambda: not running(marker))


def test_an_interactive_python_works_in_a_terminal_and_ctrl_c_interrupts_it(me: Caller) -> None:
    """Issue 2.13: a person at a terminal: the prompt comes, Ctrl-C is a KeyboardInterrupt, exit() ends it."""
    child, terminal = pty.fork()
    if child == 0:
        import pickle

        argument = pickle.dumps((me.plan, ("/usr/bin/python3", "-q"), me.program)).hex()
        os.chdir(Path(__file__).parents[2])
        os.execv(sys.executable, [sys.executable, "-c", _LAUNCHER, argument])
    seen = b""

    def expect(text: bytes) -> None:
        nonlocal seen
        deadline = time.monotonic() + 20
        while text not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([terminal], [], [], 0.1)[0]:
                seen += os.read(terminal, 4096)
        seen = seen.partition(text)[2]

    expect(b">>> ")
    os.write(terminal, b"6 * 7\n")
    expect(b"42")
    expect(b">>> ")
    os.write(terminal, b"import time; time.sleep(60)\n")
    time.sleep(0.3)
    os.write(terminal, b"\x03")
    expect(b"KeyboardInterrupt")
    expect(b">>> ")
    os.write(terminal, b"exit(11)\n")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 11
    os.close(terminal)


def test_an_error_does_not_tell_the_environment(me: Caller) -> None:
    """Values that were passed with --env may be secrets."""
    plan = replace(me.plan, mounts=(Mount.read_only("/no/such/layer", "/envdsl/layers/0"),))
    with pytest.raises(EnvdslError) as caught:
        me.run("true", plan=plan, environment={"TOKEN": "s3cret"})
    assert "s3cret" not in repr(caught.value.diagnostics)


def test_a_control_group_that_vanishes_makes_limits_weaker_and_does_not_stop_the_run(
    me: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = cgroups.ControlGroup({"pids": Path("/sys/fs/cgroup/no-such-group")})
    monkeypatch.setattr(cgroups, "create", lambda _: gone)
    recorder = Recorder()
    assert me.run("true", limits=Limits(pids=50), reporter=recorder).status == 0
    assert [warning.code for warning in recorder.warnings] == ["sandbox-limits-weak"]


def test_a_root_that_was_deleted_is_made_again(me: Caller, tmp_path: Path) -> None:
    plan = replace(me.plan, base=skeleton.prepare(tmp_path / "sandbox", me.plan.mounts))
    shutil.rmtree(tmp_path / "sandbox")
    assert me.run("true", plan=plan).status == 0
    assert Path(plan.root).is_dir()

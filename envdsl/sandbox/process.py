"""One running sandbox, from outside.

Three processes matter: bubblewrap itself (our child), the init of the sandbox's PID namespace (its child) and
the command (init's child). bubblewrap tells the init's number on ``--json-status-fd``, and holds the command
back until ``--block-fd`` has something to read: in between, limits are set on the init and inherited by all.
To end everything the init is killed: the kernel then ends whatever is in its namespace, and only after that
is the init reported dead. No grandchild outlives it, whatever it ignores and whichever session it moved to.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.sandbox import seccomp
from envdsl.sandbox.argv import arguments, encode
from envdsl.sandbox.memfd import memory_file
from envdsl.sandbox.plan import SandboxPlan

CAPTURE_LIMIT = 1 << 20
_END_SECONDS = 10.0
_CHILD = re.compile(rb'"child-pid": *([0-9]+)')
_EXIT = re.compile(rb'"exit-code": *([0-9]+)')


class SandboxProcess:
    """A started sandbox whose command waits for :meth:`release`; to be closed, which ends it if it still runs.

    Raises EnvdslError (``sandbox-no-bwrap``) where ``bwrap`` cannot be executed.
    """

    def __init__(
        self, plan: SandboxPlan, command: tuple[str, ...], bwrap: Path, stdin: int | IO[bytes] | None, capture: bool
    ) -> None:
        self.init: int | None = None
        self._init_pidfd: int | None = None
        self._status = b""
        with ExitStack() as ours, ExitStack() as theirs:
            self._status_fd, status = _pipe(ours, theirs)
            gate, self._gate_fd = _pipe(theirs, ours)
            filter_fd = theirs.enter_context(memory_file("seccomp", seccomp.compiled())).fileno()
            options = encode(arguments(plan, seccomp_fd=filter_fd))
            args_fd = theirs.enter_context(memory_file("args", options)).fileno()
            line = ["--args", args_fd, "--json-status-fd", status, "--block-fd", gate, "--"]
            try:
                self._process = subprocess.Popen(
                    [bwrap, *map(str, line), *command],
                    stdin=stdin,
                    stdout=subprocess.PIPE if capture else None,
                    stderr=subprocess.PIPE if capture else None,
                    pass_fds=(args_fd, filter_fd, status, gate),
                    process_group=0,  # Ctrl-C is for the command, not for bubblewrap
                )
            except OSError as error:
                raise EnvdslError.of(
                    "sandbox-no-bwrap",
                    f"cannot execute {bwrap}: {error.strerror}",
                    hint="'envdsl doctor' says what to do",
                    exit_status=ExitStatus.ENVIRONMENT,
                ) from error
            self._stack = ours.pop_all()
        self._pidfd = self._open_pidfd(self._process.pid)
        pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe is not None]
        self._readers = [_Tail(self._stack.enter_context(pipe)) for pipe in pipes]

    def __enter__(self) -> SandboxProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            if self._process.poll() is None:
                self.end()
                self._process.wait()
        finally:
            self._stack.close()

    def _open_pidfd(self, pid: int) -> int:
        pidfd = os.pidfd_open(pid)
        self._stack.callback(os.close, pidfd)
        return pidfd

    def await_init(self, deadline: float | None) -> bool:
        """Wait until the sandbox's init is there; False if there will be none, or not before the deadline."""
        while b"\n" not in self._status and _readable(self._status_fd, deadline):
            chunk = os.read(self._status_fd, 4096)
            if not chunk:
                break
            self._status += chunk
        match = _CHILD.search(self._status)
        if match is None:
            return False
        self.init = int(match[1])
        with suppress(ProcessLookupError):
            self._init_pidfd = self._open_pidfd(self.init)
        return True

    def release(self) -> None:
        """Let the command run."""
        with suppress(BrokenPipeError):  # bubblewrap has failed meanwhile
            os.write(self._gate_fd, b"x")

    def wait(self, deadline: float | None) -> bool:
        """Whether the sandbox ended before the deadline."""
        return _readable(self._pidfd, deadline)

    def signal(self, number: int) -> None:
        """Send a signal to the command; before it runs, to bubblewrap."""
        command = self._command()
        with suppress(ProcessLookupError):
            if command is None:
                self._process.send_signal(number)
            else:
                os.kill(command, number)

    def _command(self) -> int | None:
        """The init's first child."""
        with suppress(OSError):
            children = Path(f"/proc/{self.init}/task/{self.init}/children").read_text().split()
            return int(children[0]) if children else None
        return None

    def end(self) -> None:
        """Kill everything in the sandbox."""
        if self._init_pidfd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init_pidfd, signal.SIGKILL)
            if _readable(self._pidfd, time.monotonic() + _END_SECONDS):
                return
        self._process.kill()  # and --die-with-parent does the rest

    def finish(self) -> tuple[int, bool]:
        """Wait for the end of everything in the sandbox.

        Returns bubblewrap's exit status (128 + N for signal N) and whether the command was ever executed.
        """
        code = self._process.wait()
        if self._init_pidfd is not None:
            _readable(self._init_pidfd, time.monotonic() + _END_SECONDS)
        while chunk := os.read(self._status_fd, 4096):
            self._status += chunk
        for reader in self._readers:
            reader.join()
        return code if code >= 0 else 128 - code, code < 0 or _EXIT.search(self._status) is not None

    @property
    def captured(self) -> tuple[bytes, bytes]:
        """The ends of standard output and error; empty without ``capture``."""
        if not self._readers:
            return b"", b""
        return bytes(self._readers[0].data), bytes(self._readers[1].data)


class _Tail(threading.Thread):
    """Reads a pipe to its end and keeps what came last."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.data = bytearray()
        self._pipe = pipe
        self.start()

    def run(self) -> None:
        while chunk := os.read(self._pipe.fileno(), 1 << 16):
            self.data += chunk
            if len(self.data) > 2 * CAPTURE_LIMIT:
                del self.data[:-CAPTURE_LIMIT]
        del self.data[:-CAPTURE_LIMIT]


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A new pipe whose ends are closed with two different stacks."""
    reading, writing = os.pipe()
    reader.callback(os.close, reading)
    writer.callback(os.close, writing)
    return reading, writing


def _readable(descriptor: int, deadline: float | None) -> bool:
    """Wait until a descriptor is readable (a pidfd: until the process is dead); False at the deadline."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
    return bool(poll.poll(None if remaining is None else remaining * 1000))

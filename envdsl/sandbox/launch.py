"""Carries a plan out: starts the sandbox, keeps its limits, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.reporter import Reporter
from envdsl.sandbox import cgroups, skeleton
from envdsl.sandbox.limits import Limits, apply_without_cgroups
from envdsl.sandbox.plan import Mount, SandboxPlan
from envdsl.sandbox.process import SandboxProcess

TIMED_OUT = 124  # as timeout(1)
NOT_EXECUTABLE = 127  # as a shell

_UNLIMITED = Limits()
_TRUE = ("/usr/bin/true",)
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    ``status`` is the command's exit status; 128 + N for signal N; 124 after a timeout; 127 for a command that
    cannot be executed. ``stdout`` and ``stderr`` are what was captured, at most the last mebibyte of each.
    """

    status: int
    timed_out: bool = False
    out_of_memory: bool = False
    stdout: bytes = b""
    stderr: bytes = b""


def run(
    plan: SandboxPlan,
    command: Sequence[str] = (),
    *,
    bwrap: Path,
    limits: Limits = _UNLIMITED,
    environment: Mapping[str, str] | None = None,
    mounts: Iterable[Mount] = (),
    stdin: int | IO[bytes] | None = None,
    capture: bool = False,
    reporter: Reporter | None = None,
) -> Outcome:
    """Run ``command`` (default: the plan's) in the sandbox and wait for it.

    ``bwrap`` is what ``bwrap.find`` returned. ``environment`` and ``mounts`` add to the plan's for this run.
    ``stdin`` is as ``subprocess`` takes it; output goes where ours goes unless ``capture`` is set, and then there
    is no input by default. ``TERM`` is ours where a person is at a terminal. Signals that we get meanwhile go to
    the command (in the main thread only: Python delivers them nowhere else).

    Raises EnvdslError ``sandbox-start-failed`` where bubblewrap could not set the sandbox up. Limits that cannot
    be enforced in full are reported as the warning ``sandbox-limits-weak``.
    """
    mounts = (*plan.mounts, *mounts)
    plan = replace(plan, base=skeleton.prepare(Path(plan.root).parent, mounts), mounts=mounts)  # as the host is now
    if capture and stdin is None:
        stdin = subprocess.DEVNULL
    terminal = {"TERM": os.environ["TERM"]} if stdin is None and os.isatty(0) and "TERM" in os.environ else {}
    plan = plan.with_environment(terminal | dict(plan.environment) | dict(environment or {}))
    outcome, executed = _execute(plan, tuple(command) or plan.command, bwrap, limits, stdin, capture, reporter)
    if executed:
        return outcome
    # The command never ran. Whether that is the sandbox's fault is found out by running another in it.
    probe, works = _execute(plan, _TRUE, bwrap, _UNLIMITED, subprocess.DEVNULL, True, None)
    if works:
        return replace(outcome, status=NOT_EXECUTABLE)
    raise EnvdslError.of(
        "sandbox-start-failed",
        f"{bwrap} could not set up the sandbox: {probe.stderr.decode(errors='replace').strip()}",
        hint="'envdsl doctor' tests what sandboxes need on this machine, 'envdsl verify' the store",
        exit_status=ExitStatus.ENVIRONMENT,
        details={"mounts": [str(mount) for mount in (*plan.base, *plan.mounts)]},
    )


def _execute(
    plan: SandboxPlan,
    command: tuple[str, ...],
    bwrap: Path,
    limits: Limits,
    stdin: int | IO[bytes] | None,
    capture: bool,
    reporter: Reporter | None,
) -> tuple[Outcome, bool]:
    """One sandbox from start to end, and whether its command was ever executed."""
    deadline = None if limits.timeout is None else time.monotonic() + limits.timeout
    group = cgroups.create(limits) if limits.controllers else None
    with group or nullcontext(), SandboxProcess(plan, command, bwrap, stdin, capture) as process:
        with _forwarding(process):
            if process.await_init(deadline):
                _limit(process, limits, group, reporter or Reporter())
                process.release()
            timed_out = not process.wait(deadline)
            if timed_out:
                process.end()
            status, executed = process.finish()
        outcome = Outcome(
            status=TIMED_OUT if timed_out else status,
            timed_out=timed_out,
            out_of_memory=group is not None and group.out_of_memory(),
            stdout=process.captured[0],
            stderr=process.captured[1],
        )
    return outcome, executed or timed_out or outcome.out_of_memory


def _limit(process: SandboxProcess, limits: Limits, group: cgroups.ControlGroup | None, reporter: Reporter) -> None:
    assert process.init is not None
    enforced: set[str] = set()
    said: list[str] = []
    if group is not None:
        with suppress(OSError):  # the group was taken away from under us, or the init is dead already
            group.add(process.init)
            enforced = set(group.directories)
    with suppress(ProcessLookupError):
        said = apply_without_cgroups(process.init, limits, limits.controllers - enforced)
    for sentence in said:
        reporter.warn(
            Diagnostic(
                "sandbox-limits-weak",
                f"no control group for this limit: {sentence}",
                hint="'envdsl doctor' says which limits can be enforced here, and how to have the others",
                severity="warning",
            )
        )


@contextmanager
def _forwarding(process: SandboxProcess) -> Iterator[None]:
    """Pass signals on to the command. What we were told to ignore (``nohup``) stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def forward(number: int, _frame: FrameType | None) -> None:
        process.signal(number)

    previous = {
        number: signal.signal(number, forward) for number in _FORWARDED if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

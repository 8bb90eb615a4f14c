"""Limits of one run, and how they are kept: by control groups, or as far as the kernel goes without."""

from __future__ import annotations

import math
import os
import re
import resource
from dataclasses import dataclass

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)

# What is limited along with the command: the init of the PID namespace.
OVERHEAD_PROCESSES = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use at most; None is no limit.

    ``memory`` in bytes for the whole tree of processes, files in its ``/tmp`` and home included; ``cpus`` in
    processors (0.5 is half of one); ``pids`` in processes and threads at a time; ``timeout`` in seconds.
    Raises ValueError for a limit that nothing could run under.
    """

    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory < 1 << 20:
            raise ValueError(f"a memory limit is at least 1 MiB, not {self.memory} bytes")
        if self.cpus is not None and not 0.01 <= self.cpus < math.inf:
            raise ValueError(f"a processor limit is at least 0.01, not {self.cpus}")
        if self.pids is not None and self.pids < 1:
            raise ValueError(f"a process limit is at least 1, not {self.pids}")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise ValueError(f"a timeout is more than 0 seconds, not {self.timeout}")

    @property
    def controllers(self) -> frozenset[str]:
        """The control group controllers that these limits ask for."""
        wanted = {"memory": self.memory, "cpu": self.cpus, "pids": self.pids}
        return frozenset(name for name, limit in wanted.items() if limit is not None)


def parse_size(text: str) -> int:
    """Bytes from ``"512M"``, ``"1.5G"``, ``"2GiB"`` or ``"1000000"``; units are powers of 1024.

    Raises ValueError for anything else.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not a size: {text!r} (examples: 512M, 1.5G)")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def apply_without_cgroups(pid: int, limits: Limits, controllers: frozenset[str]) -> list[str]:
    """Set on process ``pid`` what the kernel offers instead of ``controllers``; it is inherited.

    Returns a sentence for each limit that says what is and what is not enforced now.
    """
    said = []
    if "memory" in controllers and limits.memory is not None:
        # Not RLIMIT_AS: numerical libraries reserve far more addresses than they ever use.
        _lower(pid, resource.RLIMIT_DATA, limits.memory)
        said.append("memory is limited for each process by itself, not for all together; files in /tmp do not count")
    if "pids" in controllers and limits.pids is not None:
        _lower(pid, resource.RLIMIT_NPROC, limits.pids + OVERHEAD_PROCESSES)
        said.append(
            "processes are not limited for root without control groups"
            if os.geteuid() == 0
            else "processes are limited by RLIMIT_NPROC, which may count other processes of the same user"
        )
    if "cpu" in controllers and limits.cpus is not None:
        available = sorted(os.sched_getaffinity(pid))
        os.sched_setaffinity(pid, available[: math.ceil(limits.cpus)])
        said.append(f"processors are limited to {min(math.ceil(limits.cpus), len(available))} whole ones")
    return said


def _lower(pid: int, kind: int, limit: int) -> None:
    _, hard = resource.prlimit(pid, kind)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.prlimit(pid, kind, (limit, limit))

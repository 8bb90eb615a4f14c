"""What of all that sandboxes need works on this machine, found out by running it.

Each check gives one :class:`Finding`. ``failed`` means that sandboxes do not start, or do not hold; ``warning``
that something weaker takes the place of something better.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from envdsl.errors import EnvdslError
from envdsl.sandbox import bwrap, cgroups, launch, skeleton
from envdsl.sandbox.limits import Limits
from envdsl.sandbox.plan import SandboxPlan

_OLDEST_KERNEL = (5, 3)  # pidfd_open
_UNSHARE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(ctypes.get_errno() if libc.unshare(0x10000000) else 0)  # CLONE_NEWUSER
"""


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was found, what to do about it (empty where all is well), and facts for machines."""

    check: str
    status: Status
    message: str
    remedy: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


def machine(directory: Path) -> Iterator[Finding]:
    """All checks, in the order to report them. ``directory`` is where the sandboxes' roots are kept.

    Where no sandbox starts, what could only be tested inside one is left out.
    """
    yield kernel()
    yield user_namespaces()
    yield apparmor()
    program, finding = bubblewrap(directory)
    yield finding
    if program is not None:
        facts = _facts(program, directory)
        yield isolation(facts)
        yield network(facts)
        yield system_calls(facts)
    yield control_groups()
    yield landlock()


def kernel() -> Finding:
    release = platform.release()
    numbers = tuple(int(part) for part in release.replace("-", ".").split(".")[:2] if part.isdecimal())
    if numbers < _OLDEST_KERNEL:
        return Finding("kernel", Status.FAILED, f"Linux {release} is too old", "run Linux 5.3 or later")
    return Finding("kernel", Status.OK, f"Linux {release} on {platform.machine()}")


def user_namespaces() -> Finding:
    """Whether this user may make user namespaces, by making one in a child."""
    child = subprocess.run([sys.executable, "-I", "-S", "-c", _UNSHARE], check=False, timeout=60)
    if child.returncode == 0:
        return Finding("user-namespaces", Status.OK, "user namespaces can be made")
    # Not the last word: a bubblewrap with a profile of its own may be allowed what we are not.
    return Finding(
        "user-namespaces",
        Status.WARNING,
        f"this program may not make user namespaces: {os.strerror(max(child.returncode, 0))}",
        bwrap.remedy(),
    )


def apparmor() -> Finding:
    setting = bwrap.setting("kernel/apparmor_restrict_unprivileged_userns")
    if setting == "1":
        return Finding(
            "apparmor",
            Status.WARNING,
            "AppArmor allows user namespaces only to programs with a profile for it",
            "nothing if bubblewrap works below; else " + bwrap.remedy(),
        )
    return Finding("apparmor", Status.OK, "AppArmor does not restrict user namespaces", details={"setting": setting})


def bubblewrap(directory: Path) -> tuple[Path | None, Finding]:
    """Which bubblewrap works, if any: each one is tried with all the options of a real sandbox."""
    try:
        trials = bwrap.attempts(directory)
    except EnvdslError as error:
        first = error.diagnostics[0]
        return None, Finding("bubblewrap", Status.FAILED, first.message, first.hint or "")
    details = {
        "candidates": [
            {"path": str(trial.path), "origin": trial.origin, "works": trial.works, "output": trial.output}
            for trial in trials
        ]
    }
    for trial in trials:
        if trial.works:
            return trial.path, Finding(
                "bubblewrap", Status.OK, f"{trial.path} ({trial.origin}) starts sandboxes", details=details
            )
    tried = "; ".join(f"{trial.path} cannot start a sandbox: {trial.output}" for trial in trials)
    return None, Finding("bubblewrap", Status.FAILED, tried or "there is no bubblewrap", bwrap.remedy(), details)


_PROBE = Path(__file__).with_name("probe.py")
_KEYCTL = {"x86_64": 250, "aarch64": 219}  # a system call that the filter refuses and the kernel does not


def _facts(program: Path, directory: Path) -> dict[str, Any]:
    """What a program inside a sandbox finds; ``{"problem": …}`` where it cannot be asked."""
    python = "/usr/bin/python3"
    if not Path(python).exists():
        return {"problem": f"there is no {python} to look around in a sandbox with"}
    plan = SandboxPlan.of(
        skeleton.prepare(directory), cwd="/", environment={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    )
    command = (python, "-I", "-c", _PROBE.read_text(), str(_KEYCTL.get(platform.machine(), -1)))
    try:
        outcome = launch.run(plan, command, bwrap=program, capture=True, limits=Limits(timeout=30))
        facts: dict[str, Any] = json.loads(outcome.stdout)
    except (EnvdslError, ValueError) as error:
        return {"problem": f"a program inside a sandbox could not look around: {error}"}
    return facts


def isolation(facts: Mapping[str, Any]) -> Finding:
    """No capabilities, nothing of the host, no way to new user namespaces."""
    if "problem" in facts:
        return Finding("isolation", Status.WARNING, facts["problem"], "install a python3 in /usr/bin")
    wrong = []
    if int(facts["capabilities"], 16) or int(facts["bounding"], 16):
        wrong.append(f"a sandbox has capabilities ({facts['capabilities']})")
    if facts["no_new_privileges"] != "1":
        wrong.append("a sandbox may gain privileges")
    if facts["host"]:
        wrong.append(f"a sandbox sees {', '.join(facts['host'])} of the host")
    if facts["writable"]:
        wrong.append(f"a sandbox can write {', '.join(facts['writable'])}")
    if facts["namespace"] is None:
        wrong.append("a sandbox can make user namespaces")
    if len(facts["processes"]) > 4:
        wrong.append("a sandbox sees processes of others")
    if wrong:
        return Finding("isolation", Status.FAILED, "; ".join(wrong), _REPORT, dict(facts))
    return Finding(
        "isolation", Status.OK, "no capabilities, no host files, no new user namespaces", details=dict(facts)
    )


def network(facts: Mapping[str, Any]) -> Finding:
    if "problem" in facts:
        return Finding("network", Status.WARNING, facts["problem"], "install a python3 in /usr/bin")
    if facts["connected"] or facts["routes"]:
        ways = ", ".join(facts["routes"]) or "connected"
        return Finding("network", Status.FAILED, f"a sandbox has a network ({ways})", _REPORT, dict(facts))
    return Finding("network", Status.OK, "a sandbox has a loopback interface and no network")


def system_calls(facts: Mapping[str, Any]) -> Finding:
    """Whether the filter is in force: a call that it refuses is really refused."""
    if "problem" in facts:
        return Finding("seccomp", Status.WARNING, facts["problem"], "install a python3 in /usr/bin")
    if facts["seccomp"] != "2" or facts["filtered"] != "EPERM":
        return Finding(
            "seccomp",
            Status.FAILED,
            "the system call filter is not in force",
            "run a kernel with CONFIG_SECCOMP_FILTER, and not under an emulator of system calls",
            dict(facts),
        )
    return Finding("seccomp", Status.OK, "filtered system calls fail in a sandbox")


def control_groups() -> Finding:
    """Which limits can be enforced, by making a group and removing it again."""
    wanted = Limits(memory=64 << 20, cpus=1.0, pids=16)
    group = cgroups.create(wanted)
    found = set(group.directories) if group is not None else set()
    if group is not None:
        group.remove()
    names = {"memory": "memory", "cpu": "processors", "pids": "processes"}
    details = {
        "enforced": sorted(found),
        "directories": {name: str(path) for name, path in group.directories.items()} if group is not None else {},
    }
    missing = [label for name, label in names.items() if name not in found]
    if not missing:
        return Finding("cgroups", Status.OK, "memory, processors and processes can be limited", details=details)
    return Finding(
        "cgroups",
        Status.WARNING,
        f"no control groups for {', '.join(missing)}: limits on them are weaker (rlimits, each process by itself)",
        "run as root, or let systemd delegate: systemd-run --user --scope -p Delegate=yes envdsl …; "
        "for processors: systemctl edit user@.service, [Service] Delegate=cpu cpuset io memory pids",
        details,
    )


def landlock() -> Finding:
    """The version of Landlock's interface; nothing depends on it, programs in a sandbox may use it."""
    create_ruleset, version_flag = 444, 1
    abi = ctypes.CDLL(None, use_errno=True).syscall(create_ruleset, None, ctypes.c_size_t(0), version_flag)
    message = f"Landlock ABI {abi}" if abi > 0 else "no Landlock; sandboxes do not need it"
    return Finding("landlock", Status.OK, message, details={"abi": max(abi, 0)})


_REPORT = "do not run untrusted code here; please report this with the output of 'envdsl doctor --json'"

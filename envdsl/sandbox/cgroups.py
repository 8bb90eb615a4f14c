"""Control groups of one run, version 1, 2 or both (``Documentation/admin-guide/cgroup-v2.rst``, ``cgroup-v1/``).

Each controller is used where it is mounted. In version 1 a group is made below our own. In version 2 a group
that holds processes cannot have limited children (the "no internal processes" rule), so the new group is made
beside our own, below the nearest ancestor that is writable and passes the controllers on: with systemd this is
the user's own slice, where the session was delegated one. Nothing is asked of systemd, and no process but the
sandbox's is moved.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envdsl.sandbox.limits import OVERHEAD_PROCESSES, Limits

_PREFIX = "envdsl-"
_CPU_PERIOD = 100_000  # microseconds
_REMOVAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One mounted hierarchy: where it is mounted, which controllers it has, and where we are in it."""

    mount: Path
    own: Path
    controllers: frozenset[str]
    unified: bool


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The groups of one run, removed when closed: ``directories`` by controller, in version 2 one for all."""

    directories: Mapping[str, Path]

    def __enter__(self) -> ControlGroup:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def add(self, pid: int) -> None:
        """Put a process, and what it will start, into the group. Raises OSError."""
        for directory in sorted(set(self.directories.values())):
            (directory / "cgroup.procs").write_text(str(pid))

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for its memory limit."""
        directory = self.directories.get("memory")
        if directory is None:
            return False
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError, ValueError):
                facts = dict(line.split() for line in (directory / name).read_text().splitlines())
                return int(facts.get("oom_kill", 0)) > 0
        return False

    def remove(self) -> None:
        """End what is still in the group and remove it."""
        deadline = time.monotonic() + _REMOVAL_SECONDS
        for directory in set(self.directories.values()):
            while directory.exists():
                try:
                    directory.rmdir()
                except OSError:
                    _kill(directory)
                    if time.monotonic() > deadline:
                        return  # unkillable; the next run tries to remove it again
                    time.sleep(0.002)


def create(limits: Limits, hierarchies: list[Hierarchy] | None = None) -> ControlGroup | None:
    """Groups for as many of the limits as control groups can be had for; None where there are none."""
    name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    directories: dict[str, Path] = {}
    for hierarchy in mounted() if hierarchies is None else hierarchies:
        wanted = sorted((limits.controllers & hierarchy.controllers) - directories.keys())
        if not wanted:
            continue
        for parent, passed_on in _parents(hierarchy, wanted):
            directory = parent / name
            try:
                _sweep(parent)
                directory.mkdir()
                for controller in passed_on:
                    _write_limit(directory, controller, limits, unified=hierarchy.unified)
            except OSError:
                with suppress(OSError):
                    directory.rmdir()
                continue
            directories |= dict.fromkeys(passed_on, directory)
            break
    return ControlGroup(directories) if directories else None


def mounted(proc: Path = Path("/proc/self")) -> list[Hierarchy]:
    """The hierarchies mounted here, those of version 1 first (a controller is in one of them only)."""
    try:
        mounts = (proc / "mountinfo").read_text().splitlines()
        memberships = (proc / "cgroup").read_text().splitlines()
    except OSError:
        return []
    # hierarchy-ID:controllers:path; version 2 has no controllers here (cgroups(7))
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in memberships)}
    found = []
    for line in mounts:
        left, _, right = line.partition(" - ")
        root, mount = left.split()[3:5]
        kind, _, options = right.split()[:3]
        if kind == "cgroup2" and "" in paths:
            with suppress(OSError):
                controllers = frozenset((Path(mount) / "cgroup.controllers").read_text().split())
                found.append(Hierarchy(Path(mount), _below(mount, root, paths[""]), controllers, unified=True))
        elif kind == "cgroup":
            for names, path in paths.items():
                if names and set(names.split(",")) <= set(options.split(",")):
                    own = _below(mount, root, path)
                    found.append(Hierarchy(Path(mount), own, frozenset(names.split(",")), unified=False))
    return sorted(found, key=lambda hierarchy: hierarchy.unified)


def _below(mount: str, root: str, path: str) -> Path:
    """Where ``path`` of a hierarchy is, when the hierarchy's ``root`` is mounted at ``mount``."""
    inside = PurePosixPath(path)
    if inside.is_relative_to(root):
        return Path(mount) / inside.relative_to(root)
    return Path(mount)  # a container that sees its own group as the root


def _parents(hierarchy: Hierarchy, wanted: list[str]) -> Iterator[tuple[Path, list[str]]]:
    """Where a new group could be made, and the controllers it would have there."""
    if not hierarchy.unified:
        yield hierarchy.own, wanted
        return
    inside = hierarchy.own.relative_to(hierarchy.mount).parts
    ancestors = [hierarchy.mount.joinpath(*inside[:depth]) for depth in range(len(inside))] or [hierarchy.mount]
    usable = [path for path in reversed(ancestors) if os.access(path / "cgroup.procs", os.W_OK)]
    for path in usable:
        if _passed_on(path, wanted) == wanted:
            yield path, wanted
    for path in usable:  # nowhere all of them: as many as possible, as near as possible
        some = _passed_on(path, wanted)
        if some:
            yield path, some


def _passed_on(path: Path, wanted: list[str]) -> list[str]:
    control = path / "cgroup.subtree_control"
    try:
        enabled = set(control.read_text().split())
    except OSError:
        return []
    for controller in wanted:
        if controller not in enabled:
            with suppress(OSError):
                control.write_text(f"+{controller}")
                enabled.add(controller)
    return [controller for controller in wanted if controller in enabled]


def _write_limit(directory: Path, controller: str, limits: Limits, *, unified: bool) -> None:
    def write(name: str, value: str) -> None:
        (directory / name).write_text(value)

    match controller:
        case "memory" if unified:
            write("memory.max", str(limits.memory))
            with suppress(OSError):  # a kernel without swap accounting
                write("memory.swap.max", "0")
            with suppress(OSError):
                write("memory.oom.group", "1")
        case "memory":
            write("memory.limit_in_bytes", str(limits.memory))
            with suppress(OSError):
                write("memory.memsw.limit_in_bytes", str(limits.memory))
        case "cpu":
            quota = max(1000, int((limits.cpus or 0) * _CPU_PERIOD))
            if unified:
                write("cpu.max", f"{quota} {_CPU_PERIOD}")
            else:
                write("cpu.cfs_period_us", str(_CPU_PERIOD))
                write("cpu.cfs_quota_us", str(quota))
        case "pids":
            write("pids.max", str((limits.pids or 0) + OVERHEAD_PROCESSES))


def _kill(directory: Path) -> None:
    with suppress(OSError):
        (directory / "cgroup.kill").write_text("1")
        return
    with suppress(OSError):
        for pid in (directory / "cgroup.procs").read_text().split():
            with suppress(OSError):
                os.kill(int(pid), signal.SIGKILL)


def _sweep(parent: Path) -> None:
    """Remove the empty groups of launchers that were killed before they could."""
    for directory in parent.glob(f"{_PREFIX}*-*"):
        pid = directory.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path("/proc", pid).exists():
            with suppress(OSError):  # the kernel refuses a group that is in use
                directory.rmdir()

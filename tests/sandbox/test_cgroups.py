"""Where control groups are made. Version 2 is tried on a tree of plain files that looks like it; version 1 or 2,
whichever this machine has, is used for real in ``test_launch.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.sandbox.cgroups import Hierarchy, create, mounted
from envdsl.sandbox.limits import Limits

LIMITS = Limits(memory=64 << 20, cpus=0.5, pids=10)


def unified(tmp_path: Path, groups: dict[str, str], own: str) -> Hierarchy:
    """A version 2 hierarchy: group -> the controllers that it passes on."""
    for name, controllers in groups.items():
        group = tmp_path / name
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.procs").touch()
        (group / "cgroup.subtree_control").write_text(controllers)
    return Hierarchy(tmp_path, tmp_path / own, frozenset({"cpu", "memory", "pids"}), unified=True)


@pytest.mark.parametrize("depth", ["", "app.slice/"])
def test_in_version_2_the_group_stands_beside_our_own(tmp_path: Path, depth: str) -> None:
    """A group with processes cannot have limited children, so ours cannot be the parent."""
    groups = {"": "cpu memory pids", "user": "cpu memory pids", "user/app.slice": "cpu memory pids"}
    hierarchy = unified(tmp_path, groups, f"user/{depth}shell.scope")
    group = create(LIMITS, [hierarchy])
    assert group is not None
    (directory,) = set(group.directories.values())
    assert directory.parent == tmp_path / "user" / depth
    assert (directory / "memory.max").read_text() == str(64 << 20)
    assert (directory / "memory.swap.max").read_text() == "0"
    assert (directory / "cpu.max").read_text() == "50000 100000"
    assert (directory / "pids.max").read_text() == "11"
    group.add(4242)
    assert (directory / "cgroup.procs").read_text() == "4242"


def test_in_version_2_the_nearest_ancestor_that_has_everything_is_taken(tmp_path: Path) -> None:
    hierarchy = unified(
        tmp_path, {"": "cpu memory pids", "user": "cpu memory pids", "user/session": ""}, "user/session/x"
    )
    (tmp_path / "user/session/cgroup.subtree_control").unlink()
    (tmp_path / "user/session/cgroup.subtree_control").mkdir()  # writing to it fails, even for root
    group = create(LIMITS, [hierarchy])
    assert group is not None
    assert {path.parent for path in group.directories.values()} == {tmp_path / "user"}


def test_kills_for_memory_are_seen(tmp_path: Path) -> None:
    group = create(Limits(memory=1 << 30), [unified(tmp_path, {"": "memory"}, "own")])
    assert group is not None
    assert not group.out_of_memory()
    (group.directories["memory"] / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n")
    assert group.out_of_memory()


def test_where_no_group_can_be_made_there_is_none(tmp_path: Path) -> None:
    assert create(LIMITS, []) is None
    assert create(LIMITS, [Hierarchy(tmp_path, tmp_path / "own", frozenset({"pids"}), unified=True)]) is None


def test_mounted_hierarchies_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    (tmp_path / "unified").mkdir()
    (tmp_path / "unified" / "cgroup.controllers").write_text("cpuset io\n")
    (tmp_path / "mountinfo").write_text(
        "24 1 0:22 / /proc rw,relatime - proc proc rw\n"
        f"30 23 0:26 / {tmp_path}/unified rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
        "31 23 0:27 / /cg/cpu,cpuacct rw,nosuid shared:5 master:3 - cgroup cgroup rw,cpu,cpuacct\n"
        "32 23 0:28 /docker/abc /cg/memory rw,nosuid - cgroup cgroup rw,memory\n"
        "33 23 0:29 / /cg/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd\n"
    )
    (tmp_path / "cgroup").write_text(
        "5:memory:/docker/abc/inner\n4:cpu,cpuacct:/a:b\n1:name=systemd:/\n0::/user.slice\n"
    )
    found = {hierarchy.mount: hierarchy for hierarchy in mounted(tmp_path)}
    assert found[Path("/cg/memory")] == Hierarchy(
        Path("/cg/memory"), Path("/cg/memory/inner"), frozenset({"memory"}), False
    )
    assert found[Path("/cg/cpu,cpuacct")].own == Path("/cg/cpu,cpuacct/a:b")
    v2 = found[tmp_path / "unified"]
    assert (v2.own, v2.controllers, v2.unified) == (tmp_path / "unified/user.slice", frozenset({"cpuset", "io"}), True)

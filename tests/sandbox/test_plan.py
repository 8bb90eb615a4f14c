from __future__ import annotations

import pytest

from envdsl.sandbox.plan import Mount, MountKind, SandboxPlan

ROOT = Mount.read_only("/store/sandbox/root-x", "/")


@pytest.mark.parametrize("path", ["relative", "", "/a/../b", "/a/", "//a", "/a//b", "/a\0b", "/./a"])
def test_a_mount_refuses_paths_that_are_not_absolute_and_normalised(path: str) -> None:
    with pytest.raises(ValueError, match="not an absolute, normalised path"):
        Mount.read_only("/store", path)
    with pytest.raises(ValueError, match="not an absolute, normalised path"):
        Mount.writable(path, "/workspace")


def test_the_hosts_root_does_not_go_into_a_sandbox() -> None:
    with pytest.raises(ValueError, match="root of the host"):
        Mount.read_only("/", "/host")


def test_a_mount_refuses_fields_of_another_kind() -> None:
    with pytest.raises(ValueError, match="a bind has a source"):
        Mount(MountKind.READ_ONLY, "/x")
    with pytest.raises(ValueError, match="a bind has a source"):
        Mount(MountKind.TMPFS, "/x", "/y")
    with pytest.raises(ValueError, match="a tmpfs's"):
        Mount(MountKind.PROC, "/proc", size=5)


def test_a_plan_begins_with_its_read_only_root() -> None:
    for base in ((), (Mount.writable("/store/root", "/"),), (Mount.read_only("/usr", "/usr"), ROOT)):
        with pytest.raises(ValueError, match="read-only root"):
            SandboxPlan.of(base)


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
def test_a_plan_refuses_what_is_no_environment_variable(name: str) -> None:
    with pytest.raises(ValueError, match="not an environment variable"):
        SandboxPlan.of([ROOT], environment={name: "x"})


def test_a_plan_is_in_normal_form_whatever_the_order_it_was_given_in() -> None:
    one = SandboxPlan.of([ROOT], environment={"B": "2", "A": "1"}, lock_files=["/b", "/a", "/b"])
    other = SandboxPlan.of([ROOT], environment={"A": "1", "B": "2"}, lock_files=["/a", "/b"])
    assert one == other
    assert one.with_environment({"C": "3", "A": "0"}).environment == (("A", "0"), ("B", "2"), ("C", "3"))
    with pytest.raises(ValueError, match="sorted"):
        SandboxPlan((ROOT,), environment=(("B", "2"), ("A", "1")))


def test_a_plan_describes_itself() -> None:
    """Issue 2.13: a plan can be printed before it is carried out."""
    plan = SandboxPlan.of(
        [ROOT, Mount.tmpfs("/tmp", size=1024)],
        [Mount.writable("/home/me/work", "/workspace")],
        environment={"LANG": "C.UTF-8"},
        lock_files=["/layer.json"],
        command=["python3", "-q"],
    )
    assert str(plan).splitlines() == [
        "read-only / <- /store/sandbox/root-x",
        "tmpfs     /tmp (1024 bytes at most)",
        "writable  /workspace <- /home/me/work",
        "lock      /layer.json",
        "setenv    LANG=C.UTF-8",
        "hostname  sandbox",
        "chdir     /workspace",
        "seccomp   on",
        "command   python3 -q",
    ]

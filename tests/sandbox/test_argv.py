from __future__ import annotations

import pytest

from envdsl.errors import EnvdslError
from envdsl.sandbox.argv import arguments, encode
from envdsl.sandbox.plan import Mount, MountKind, SandboxPlan

ROOT = Mount.read_only("/store/sandbox/root-x", "/")


def test_the_arguments_of_a_plan_are_these() -> None:
    """Issue 2.13: a second look is due where this list changes: it is what keeps a sandbox closed."""
    plan = SandboxPlan.of(
        [
            ROOT,
            Mount.read_only("/usr", "/usr"),
            Mount(MountKind.DEV, "/dev"),
            Mount(MountKind.PROC, "/proc"),
            Mount.tmpfs("/tmp", mode=0o1777, size=4096),
        ],
        [Mount.writable("/w", "/workspace"), Mount.read_only("/store/layers/base-x", "/envdsl/layers/0")],
        environment={"PATH": "/usr/bin", "LANG": "C.UTF-8"},
        lock_files=["/envdsl/layers/0/layer.json"],
    )
    expected = """
        --unshare-all --unshare-user --disable-userns --cap-drop ALL --new-session --die-with-parent --clearenv
        --uid 1000 --gid 1000 --hostname sandbox
        --ro-bind /store/sandbox/root-x / --ro-bind /usr /usr --dev /dev --proc /proc --remount-ro /proc
        --size 4096 --perms 1777 --tmpfs /tmp --bind /w /workspace --ro-bind /store/layers/base-x /envdsl/layers/0
        --lock-file /envdsl/layers/0/layer.json --setenv LANG C.UTF-8 --setenv PATH /usr/bin
        --chdir /workspace --seccomp 8
    """
    assert arguments(plan) == expected.split()


def test_a_plan_without_a_filter_reads_none() -> None:
    assert "--seccomp" not in arguments(SandboxPlan.of([ROOT], seccomp=False))
    assert arguments(SandboxPlan.of([ROOT]), seccomp_fd=17)[-2:] == ["--seccomp", "17"]


def test_arguments_are_encoded_as_bubblewrap_reads_them() -> None:
    assert encode(["--setenv", "A", "two words\n"]) == b"--setenv\0A\0two words\n\0"
    assert encode(["/odd\udcff"]) == b"/odd\xff\0"  # a file name that is no UTF-8 comes back as it was
    assert encode([]) == b""


def test_more_than_bubblewrap_takes_is_refused() -> None:
    plan = SandboxPlan.of([ROOT], environment={f"V{number}": "" for number in range(3000)})
    with pytest.raises(EnvdslError) as caught:
        arguments(plan)
    assert caught.value.code == "sandbox-too-many-arguments"

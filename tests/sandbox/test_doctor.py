"""The machine's checks, for real and against sandboxes that do not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from envdsl.sandbox import bwrap, cgroups, doctor
from envdsl.sandbox.doctor import Status

CLOSED = {
    "capabilities": "0000000000000000", "bounding": "0000000000000000", "no_new_privileges": "1", "seccomp": "2",
    "routes": [], "connected": False, "filtered": "EPERM", "namespace": "EPERM", "host": [], "writable": [],
    "processes": [1, 2],
}  # fmt: skip


def test_this_machine_is_well_where_the_tests_can_run(directory: Path, program: Path) -> None:
    """Issue 2.14: bwrap found and working, user namespaces, AppArmor, cgroups, seccomp."""
    findings = {finding.check: finding for finding in doctor.machine(directory)}
    assert list(findings) == [
        "kernel", "user-namespaces", "apparmor", "bubblewrap", "isolation", "network", "seccomp", "cgroups", "landlock",
    ]  # fmt: skip
    for check in ("kernel", "bubblewrap", "isolation", "network", "seccomp"):
        assert findings[check].status == Status.OK, findings[check]
    assert all(finding.remedy for finding in findings.values() if finding.status != Status.OK)


def test_without_a_working_bubblewrap_what_needs_one_is_left_out(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bwrap, "_candidates", lambda: iter([(Path("/bin/false"), "system")]))
    findings = {finding.check: finding for finding in doctor.machine(directory)}
    assert findings["bubblewrap"].status == Status.FAILED
    assert findings["bubblewrap"].remedy
    assert findings["bubblewrap"].details["candidates"][0]["works"] is False
    assert "isolation" not in findings


@pytest.mark.parametrize(
    ("check", "facts"),
    [
        (doctor.isolation, {"capabilities": "000001ffffffffff"}),
        (doctor.isolation, {"bounding": "0000000000000001"}),
        (doctor.isolation, {"no_new_privileges": "0"}),
        (doctor.isolation, {"host": ["/etc/shadow"]}),
        (doctor.isolation, {"writable": ["/proc/sys/kernel/core_pattern"]}),
        (doctor.isolation, {"namespace": None}),
        (doctor.isolation, {"processes": [1, 2, 3, 400, 500]}),
        (doctor.network, {"connected": True}),
        (doctor.network, {"routes": ["eth0"]}),
        (doctor.system_calls, {"seccomp": "0"}),
        (doctor.system_calls, {"filtered": "EINVAL"}),
        (doctor.system_calls, {"filtered": None}),
    ],
)
def test_a_sandbox_that_does_not_hold_is_a_failure_with_a_remedy(check: Any, facts: dict[str, Any]) -> None:
    assert check(CLOSED).status == Status.OK
    finding = check(CLOSED | facts)
    assert finding.status == Status.FAILED
    assert finding.remedy


def test_without_control_groups_the_limits_that_are_weaker_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "mounted", list)
    finding = doctor.control_groups()
    assert finding.status == Status.WARNING
    assert "memory, processors, processes" in finding.message
    assert finding.remedy


def test_apparmors_restriction_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bwrap, "_SYSCTL", tmp_path)
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/apparmor_restrict_unprivileged_userns").write_text("1\n")
    assert doctor.apparmor().status == Status.WARNING
    assert "apparmor_restrict_unprivileged_userns" in doctor.apparmor().remedy

"""Finding a bubblewrap that works."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.sandbox import bwrap


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def count(tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a line for each start of the system's bubblewrap, which works."""
    log = tmp_path / "starts"
    log.touch()
    executable(tmp_path / "bin" / "bwrap", f'echo >> "{log}"; exec "{program}" "$@"')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return log


def test_the_systems_bubblewrap_is_taken_where_it_works(tmp_path: Path, count: Path) -> None:
    assert bwrap.find(tmp_path / "sandbox") == tmp_path / "bin" / "bwrap"


def test_the_answer_is_remembered_until_the_program_changes(tmp_path: Path, count: Path) -> None:
    for _ in range(3):
        bwrap.find(tmp_path / "sandbox")
    assert len(count.read_text().splitlines()) == 1
    system = tmp_path / "bin" / "bwrap"
    executable(system, system.read_text() + "# changed")
    bwrap.find(tmp_path / "sandbox")
    assert len(count.read_text().splitlines()) == 2


def test_the_answer_is_forgotten_with_the_boot(tmp_path: Path, count: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap.find(tmp_path / "sandbox")
    monkeypatch.setattr(bwrap, "_boot_id", lambda: "another boot")
    bwrap.find(tmp_path / "sandbox")
    assert len(count.read_text().splitlines()) == 2


@pytest.mark.parametrize("broken", ["exit 1", "echo bubblewrap 0.11.0", "kill -9 $$", "exec /no/such/program"])
def test_one_that_does_not_start_sandboxes_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Issue 2.14: found out by running it: what it prints, and that it exits with 0 here, proves nothing."""
    executable(tmp_path / "bin" / "bwrap", broken)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    if bwrap._bundled() is None:
        pytest.skip("there is no second bubblewrap here")
    assert bwrap.find(tmp_path / "sandbox") == bwrap._bundled()


def test_where_none_works_the_error_says_which_were_tried_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 2.14: each finding has a remedy."""
    executable(tmp_path / "bin" / "bwrap", "echo setting up uid map: Permission denied >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(bwrap, "_bundled", lambda: None)
    with pytest.raises(EnvdslError) as caught:
        bwrap.find(tmp_path / "sandbox")
    assert (caught.value.code, caught.value.exit_status) == ("sandbox-no-bwrap", ExitStatus.ENVIRONMENT)
    assert f"{tmp_path}/bin/bwrap cannot start a sandbox: setting up uid map" in str(caught.value)
    assert caught.value.diagnostics[0].hint


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces="),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
    ],
)
def test_the_remedy_goes_by_the_kernels_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, advice: str
) -> None:
    monkeypatch.setattr(bwrap, "_SYSCTL", tmp_path)
    assert "container" in bwrap.remedy()
    (tmp_path / setting).parent.mkdir(parents=True)
    (tmp_path / setting).write_text(f"{value}\n")
    assert advice in bwrap.remedy()


def test_without_any_bubblewrap_the_remedy_is_to_install_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bwrap, "_SYSCTL", tmp_path)
    monkeypatch.setattr(bwrap, "_bundled", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install bubblewrap" in bwrap.remedy()
    with pytest.raises(EnvdslError, match="no bubblewrap"):
        bwrap.find(tmp_path / "sandbox")

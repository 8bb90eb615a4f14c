"""The lock file: what it says, what reads it, and what becomes of a damaged one."""

from __future__ import annotations

import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.lock.pylock import read_lock, render, write_lock
from envdsl.lock.recovery import recover_pins
from envdsl.lock.source import IndexSource
from envdsl.lock.uv import find_uv
from envdsl.model.names import Platform
from tests.lock.conftest import ARM, X86, Project, layer, pins
from tests.wheels import make_wheel

HERE = Platform.parse(f"manylinux_2_28_{platform.machine()}")
THIS_PYTHON = f"3.{sys.version_info.minor}"


def git(directory: Path, *arguments: str, check: bool = True) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *identity, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done.stdout


def test_reading_what_was_written_gives_the_same_lock_and_the_same_bytes(project: Project) -> None:
    project.wheel("alpha", "1.0", "beta", "gamma ; platform_machine == 'aarch64'")
    project.wheel("beta", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    project.wheel("beta", "1.0", tag="cp312-cp312-manylinux_2_17_aarch64")
    project.wheel("gamma", "1.0")
    vendored = make_wheel(project.root / "layers.d" / "wheelhouse", "delta", "1.0")
    path = f"layers.d/wheelhouse/{vendored.name}"
    lock = project.lock(layer("office", ["alpha", "delta"], platforms=[X86, ARM], wheels=[path]))
    read = read_lock(project.path("office"))
    assert read == lock
    assert render(read) == project.path("office").read_text()
    delta = next(package for package in read.packages if package.name == "delta").wheel(X86)
    assert delta is not None
    assert delta.path == f"./wheelhouse/{vendored.name}"


def test_a_lock_is_written_wholly_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "layers.d" / "pylock.a.toml"
    assert write_lock(path, "one\n")
    before = path.stat()
    assert not write_lock(path, "one\n")
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert write_lock(path, "two\n")
    assert path.read_text() == "two\n"
    assert [member.name for member in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda text: "<<<<<<< HEAD\n" + text, "lock-merge-conflict"),
        (lambda text: text + "\n[[[", "lock-damaged"),
        (lambda text: text.replace('lock-version = "1.0"\n', ""), "lock-damaged"),
        (lambda text: text.replace('lock-version = "1.0"', 'lock-version = "7.0"'), "lock-format"),
        (lambda text: text.replace("format = 1\n", "format = 99\n"), "lock-format"),
        (lambda text: text.replace("[tool.envdsl]\nformat = 1\n", "[tool.envdsl]\n"), "lock-foreign"),
        (lambda text: text.replace("sha256 =", "md5 ="), "lock-damaged"),
        (lambda text: text.replace('version = "1.0"\nwheels', 'version = "1.1"\nwheels').replace("a-1.0", "a-1.1"),
         "lock-inconsistent"),
        (lambda text: text.replace('kind = "base"', 'kind = "bse"'), "lock-damaged"),
        (lambda text: text.replace('python = "3.12"\n', ""), "lock-damaged"),
        (lambda text: text.replace("py3-none-any", "py3-none-win32"), "lock-damaged"),
    ],
)  # fmt: skip
def test_a_damaged_lock_is_an_error_of_its_own_kind(project: Project, damage: object, code: str) -> None:
    project.wheel("a", "1.0")
    project.lock(layer("office", ["a"]))
    path = project.path("office")
    damaged = damage(path.read_text())  # type: ignore[operator]
    assert damaged != path.read_text()
    path.write_text(damaged)
    with pytest.raises(EnvdslError) as caught:
        read_lock(path)
    assert caught.value.code == code
    assert str(path) in str(caught.value)
    assert caught.value.diagnostics[0].hint


def test_the_place_of_a_syntax_error_is_given(tmp_path: Path) -> None:
    path = tmp_path / "pylock.a.toml"
    path.write_text('lock-version = "1.0"\ncreated-by = oops\n')
    with pytest.raises(EnvdslError) as caught:
        read_lock(path)
    span = caught.value.diagnostics[0].span
    assert span is not None
    assert span.line == 2


def test_a_merge_with_conflicts_is_repaired_with_the_pins_of_both_sides(project: Project) -> None:
    """Issue 2.5: after a merge `envdsl lock` repairs what the merge broke."""
    directory = project.path("office").parent
    for name in ("alpha", "beta", "gamma"):
        project.wheel(name, "1.0")
    project.lock(layer("office", ["alpha"]))
    git(directory, "init")
    git(directory, "add", ".")
    git(directory, "commit", "-m", "base")
    git(directory, "checkout", "-b", "side")
    project.lock(layer("office", ["alpha", "beta"]))
    git(directory, "commit", "-am", "side")
    git(directory, "checkout", "main")
    project.lock(layer("office", ["alpha", "gamma"]))
    git(directory, "commit", "-am", "main")
    git(directory, "merge", "side", check=False)
    with pytest.raises(EnvdslError, match="conflict of a merge"):
        read_lock(project.path("office"))
    for name in ("alpha", "beta", "gamma"):
        project.wheel(name, "2.0")  # newer versions must not creep in with the repair
    lock = project.lock(layer("office", ["alpha", "beta", "gamma"]))
    assert pins(lock) == {"alpha": "1.0", "beta": "1.0", "gamma": "1.0"}


def test_a_merge_that_git_finds_clean_is_never_taken_for_a_resolution(project: Project) -> None:
    """Issue 2.5: two upgrades on two branches touch different lines but the digest of the pins."""
    directory = project.path("office").parent
    spec = layer("office", ["a", "m", "z"])
    for name in ("a", "m", "z"):
        project.wheel(name, "1.0")
    project.lock(spec)
    git(directory, "init")
    git(directory, "add", ".")
    git(directory, "commit", "-m", "base")
    for name in ("a", "z"):
        project.wheel(name, "2.0")
    git(directory, "checkout", "-b", "side")
    project.lock(spec, upgrade_packages=frozenset({"a"}))
    git(directory, "commit", "-am", "side")
    git(directory, "checkout", "main")
    project.lock(spec, upgrade_packages=frozenset({"z"}))
    git(directory, "commit", "-am", "main")
    git(directory, "merge", "-X", "ours", "side")
    with pytest.raises(EnvdslError, match="not those that were resolved together"):
        read_lock(project.path("office"))
    assert pins(project.lock(spec)) == {"a": "2.0", "m": "1.0", "z": "2.0"}


def test_changes_to_different_packages_touch_different_lines(project: Project) -> None:
    """Issue 2.5: deterministic order, one package a block."""
    for name in ("alpha", "beta", "gamma"):
        project.wheel(name, "1.0")
    spec = layer("office", ["alpha", "beta", "gamma"])
    project.lock(spec)
    before = project.path("office").read_text().splitlines()
    project.wheel("beta", "2.0")
    project.lock(spec, upgrade=True)
    after = project.path("office").read_text().splitlines()
    changed = [line for line in after if line not in before]
    assert len(changed) == 3, changed  # pins-digest, version, wheel


def test_recovery_takes_the_newer_of_two_pins() -> None:
    text = """
[[packages]]
name = "alpha"
<<<<<<< ours
version = "1.9"
=======
version = "1.10"
>>>>>>> theirs
[tool.other]
version = "5"
[[packages]]
name = "beta"
version = "nonsense"
"""
    assert recover_pins(text) == {"alpha": "1.10"}


def test_a_lock_with_urls_is_taken_by_uv_as_it_is(project: Project, tmp_path: Path) -> None:
    """Issue 2.5: urls = true gives a lock that `uv pip sync` takes as it is."""
    project.wheel("alpha", "1.0", "beta")
    project.wheel("beta", "1.0", tag=f"cp3{sys.version_info.minor}-abi3-manylinux_2_17_{platform.machine()}")
    vendored = make_wheel(project.root / "vendor", "gamma", "1.0")
    spec = layer("office", ["alpha", "gamma"], python=THIS_PYTHON, platforms=[HERE], wheels=[f"vendor/{vendored.name}"])
    lock = project.lock(spec, urls=True)
    wheel = lock.packages[0].wheel(HERE)
    assert wheel is not None
    assert wheel.url == f"{project.index.url}/files/{wheel.filename}"
    assert project.try_lock(spec, urls=True).text == project.path("office").read_text()
    python = tmp_path / "venv" / "bin" / "python"
    for command in (
        ["venv", "--no-config", "-p", sys.executable, str(tmp_path / "venv")],
        ["pip", "sync", "--no-config", "--no-index", "-p", str(python), str(project.path("office"))],
    ):
        subprocess.run([str(find_uv()), *command], check=True, capture_output=True, env=project.environment)
    shown = subprocess.run(
        [str(python), "-c", "import alpha, gamma; print(alpha.__version__, gamma.__version__)"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert shown.stdout.split() == ["1.0", "1.0"]

    without = project.lock(spec)
    assert project.index.url not in project.path("office").read_text()
    assert pins(without) == pins(lock)


@pytest.mark.network
def test_a_lock_with_urls_is_taken_by_pip_as_it_is(project: Project, tmp_path: Path) -> None:
    """Issue 2.5: urls = true gives a lock that `pip install -r` takes as it is (pip 26.1 and later)."""
    project.wheel("alpha", "1.0", "beta")
    project.wheel("beta", "1.0")
    project.lock(layer("office", ["alpha"], python=THIS_PYTHON, platforms=[HERE]), urls=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([str(find_uv()), "venv", "-q", "-p", sys.executable, str(tmp_path / "venv")], check=True)
    subprocess.run(
        [str(find_uv()), "pip", "install", "-q", "--system-certs", "-p", str(python), "pip>=26.1"], check=True
    )
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "--no-index", "-r", str(project.path("office"))],
        capture_output=True,
        text=True,
        check=False,
        env=project.environment,
    )
    assert done.returncode == 0, done.stderr
    subprocess.run([str(python), "-c", "import alpha, beta"], check=True)


def test_urls_of_files_on_this_machine_are_file_urls(project: Project, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "flat", "alpha", "1.0")
    project.sources.insert(0, IndexSource.of(str(tmp_path / "flat"), flat=True))
    lock = project.lock(layer("office", ["alpha"]), urls=True)
    locked = lock.packages[0].wheel(X86)
    assert locked is not None
    assert locked.url == wheel.as_uri()


def test_equal_locks_render_equally_whatever_their_digest(project: Project) -> None:
    project.wheel("alpha", "1.0")
    lock = project.lock(layer("office", ["alpha"]))
    assert render(replace(lock, digest="")) == render(lock)

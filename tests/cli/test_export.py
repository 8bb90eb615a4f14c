"""``envdsl export``: each form is taken by an installer of somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.pylock import Pylock

from tests.cli.conftest import Cli
from tests.wheels import make_wheel


def uv(*arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("uv"), *arguments, "--no-config", "--offline"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def venv(place: Path) -> Path:
    done = uv("venv", "-q", "--python", sys.executable, place)
    assert done.returncode == 0, done.stderr
    return place / "bin" / "python"


def versions(python: Path) -> set[str]:
    done = uv("pip", "freeze", "--python", python)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_uv_installs_an_exported_pylock_from_the_wheelhouse_beside_it(built: Cli, tmp_path: Path) -> None:
    """Issue 5.7: `--format pylock`; a peer's installer takes it."""
    done = built("export", "one", "--dir", tmp_path / "out")
    assert done.status == 0, done.err
    lock = tmp_path / "out" / "pylock.one.toml"
    parsed = Pylock.from_dict(tomllib.loads(lock.read_text()))
    assert [str(package.name) for package in parsed.packages] == ["bar", "foo"]
    assert "envdsl]" not in lock.read_text()
    python = venv(tmp_path / "venv")
    assert uv("pip", "sync", "-q", "--preview", "--python", python, lock).returncode == 0
    assert versions(python) == {"bar==1.0", "foo==1"}


def test_pip_installs_exported_requirements_with_their_hashes(built: Cli, tmp_path: Path) -> None:
    """Issue 5.7: `--format requirements`; a peer's installer takes it."""
    assert built("export", "one", "--format", "requirements", "--dir", tmp_path / "out").status == 0
    text = (tmp_path / "out" / "requirements.txt").read_text()
    assert text == built("export", "one", "--format", "requirements").out
    target = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--require-hashes",
        "--no-deps",
        "--target",
        target,
    ]
    command += ["--find-links", tmp_path / "out" / "wheelhouse", "-r", tmp_path / "out" / "requirements.txt"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert sorted(path.name for path in target.glob("*.dist-info")) == ["bar-1.0.dist-info", "foo-1.dist-info"]
    (tmp_path / "out" / "requirements.txt").write_text(text.replace("sha256:", "sha256:0").replace("0 \\", " \\"))
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_constraints_hold_an_installer_to_the_versions(built: Cli, project: Path, tmp_path: Path) -> None:
    """Issue 5.7: `--format constraints`; a peer's installer takes it."""
    done = built("export", "one", "--format", "constraints")
    assert done.out == "bar==1.0\nfoo==1\n"
    (tmp_path / "constraints.txt").write_text(done.out)
    python = venv(tmp_path / "venv")
    options = ["--no-index", "--find-links", project / "wheels", "--constraint", tmp_path / "constraints.txt"]
    assert uv("pip", "install", "-q", "--python", python, "foo", *options).returncode == 0
    assert versions(python) == {"foo==1"}


def test_an_exported_environment_runs_without_envdsl(built: Cli, tmp_path: Path) -> None:
    """Issue 5.7: `--format venv`; a peer reads what it holds."""
    done = built("export", "two", "--format", "venv", "--dir", tmp_path / "venv")
    assert done.status == 0, done.err
    python = tmp_path / "venv" / "bin" / "python"
    code = "import foo, bar; print(foo.__version__)"
    ran = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "2\n"
    assert versions(python) == {"bar==1.0", "foo==2"}
    assert uv("pip", "check", "--python", python).returncode == 0


def test_a_session_is_exported_as_it_is_bound(built: Cli) -> None:
    built("session", "create", "taken", "-l", "core", "-l", "two")
    assert built("export", "taken", "--format", "constraints").out == "bar==1.0\nfoo==2\n"


def test_what_is_there_is_not_overwritten(built: Cli, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    done = built("export", "one", "--dir", tmp_path / "out")
    assert (done.status, done.out) == (2, "")
    assert "error[app-export-directory]" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
    assert built("export", "one", "--format", "venv").status == 2


def test_a_wheel_of_the_project_itself_goes_into_the_wheelhouse(built: Cli, project: Path, tmp_path: Path) -> None:
    make_wheel(project / "vendor", "own", "5")
    layers = project / "layers.d" / "all.layer"
    declared = 'iso alone { wheels = [ ../vendor/own-5-py3-none-any.whl ]; packages = [ "own" ]; python'
    layers.write_text(
        layers.read_text().replace("iso alone { python", declared).replace('packages = [ "foo" ]; }', "}")
    )
    assert built("lock", "alone").status == 0
    done = built("export", "alone", "--dir", tmp_path / "out")
    assert done.status == 0, done.err
    assert (tmp_path / "out" / "wheelhouse" / "own-5-py3-none-any.whl").is_file()
    assert 'path = "wheelhouse/own-5-py3-none-any.whl"' in (tmp_path / "out" / "pylock.alone.toml").read_text()

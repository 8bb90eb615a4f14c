"""The built wheel works outside the checkout: the grammar and the curated layers travel in it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.wheels import make_wheel

ROOT = Path(__file__).parents[1]
PYTHON = f"3.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    _run([find_uv_bin(), "build", "--quiet", "--system-certs", "--wheel", "--out-dir", out, ROOT])
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def envdsl(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in a fresh environment that holds the wheel and what it requires, nothing else."""
    place = tmp_path_factory.mktemp("fresh") / "venv"
    _run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, place])
    python = place / "bin" / "python"
    _run([find_uv_bin(), "pip", "install", "--quiet", "--system-certs", "--python", python, wheel])
    return place / "bin" / "envdsl"


def _run(command: list[object], *, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def _environment(**more: str) -> dict[str, str]:
    """Without what would let the checkout be found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ENVDSL", "VIRTUAL"))}
    return kept | more


def test_the_wheel_holds_the_grammar_the_layers_and_their_locks(wheel: Path) -> None:
    """Issue 2.18: the grammar and the default layers travel as package data."""
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "envdsl/grammar/layer.lark" in names
    for path in (ROOT / "layers.d").iterdir():
        assert f"envdsl/layers.d/{path.name}" in names
    assert {"envdsl/sandbox/filters/x86_64.bpf", "envdsl/sandbox/filters/aarch64.bpf"} <= names


@pytest.mark.network
def test_a_fresh_environment_knows_the_curated_layers(envdsl: Path, tmp_path: Path) -> None:
    """Issue 2.18: outside of any project the curated layers are there."""
    environment = _environment(XDG_DATA_HOME=str(tmp_path / "data"))
    shown = _run([envdsl, "ls"], cwd=tmp_path, env=environment)
    assert "office-py312" in shown
    assert "not built" in shown
    assert _run([envdsl, "lock", "--check", "--json"], cwd=tmp_path, env=environment).count('"current"') >= 10


@pytest.mark.network
def test_a_fresh_environment_builds_a_layer_and_runs_it(envdsl: Path, tmp_path: Path) -> None:
    """Issue 2.18: a test installs the wheel in a fresh venv and builds with it."""
    make_wheel(tmp_path / "wheels", "foo", "1")
    (tmp_path / "layers.d").mkdir()
    (tmp_path / "layers.d" / "a.layer").write_text(
        f'base a {{ python = "{PYTHON}"; packages = [ "foo" ]; probe = [ "foo" ]; }}'
    )
    (tmp_path / "envdsl.toml").write_text(
        '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    environment = _environment()
    for command in (
        ["python", "install", PYTHON, "--offline"],
        ["lock"],
        ["build"],
        ["session", "create", "s", "-l", "a"],
    ):
        _run([envdsl, *command], cwd=tmp_path, env=environment)
    said = _run([envdsl, "run", "s", "--", "python3", "-c", "import foo; print(foo.__version__)"], cwd=tmp_path)
    assert said == "1\n"

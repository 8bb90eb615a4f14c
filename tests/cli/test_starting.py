"""``envdsl init`` and ``envdsl tutorial``: the first five minutes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.wheels import make_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index of two packages that pip is configured with, as on a machine without another one."""
    wheels = tmp_path / "index"
    make_wheel(wheels, "rich", "15.0", files={"rich/__init__.py": ""})
    make_wheel(wheels, "humanize", "4.0", files={"humanize/__init__.py": ""})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    return wheels


@pytest.fixture
def empty(tmp_path: Path, run: Cli, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory outside of any project, where we are."""
    place = tmp_path / "My App"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def test_a_starter_project_locks_and_builds_at_once(run: Cli, empty: Path, index: Path) -> None:
    """Issue 5.10: `envdsl init`: a starter project that locks and builds at once."""
    done = run("init")
    assert (done.status, done.out) == (0, "created\tenvdsl.toml\ncreated\tlayers.d/my-app.layer\n")
    assert run("check").status == 0
    assert run("fmt", "--check").status == 0
    built = run("ensure")
    assert built.status == 0, built.err
    assert re.fullmatch(r"my-app\tbase-\w{32}\t\S+\n", built.out)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("requirements.txt", "# mine\nrich>=13\n", "packages = readLines ../requirements.txt;"),
        (
            "pyproject.toml",
            '[project]\nname = "x"\ndependencies = ["rich"]\n',
            "packages = (readToml ../pyproject.toml).project.dependencies;",
        ),
    ],
)
def test_a_file_of_requirements_stays_where_packages_are_named(
    run: Cli, empty: Path, index: Path, name: str, text: str, line: str
) -> None:
    """Issue 5.10: `init --from requirements.txt|pyproject.toml`."""
    (empty / name).write_text(text)
    (empty / "src").mkdir()
    assert run("init", "--from", name, "--name", "app").status == 0
    layer = (empty / "layers.d" / "app.layer").read_text()
    assert line in layer
    assert ("sources = [ ../src ];" in layer) is (name == "pyproject.toml")
    built = run("ensure")
    assert built.status == 0, built.err
    (empty / name).write_text(text.replace("rich", "humanize").replace(">=13", ""))
    assert "gained humanize" in run("lock", "--check").out


def test_the_active_environment_is_taken_over_with_its_versions(
    run: Cli, empty: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5.10: `init --from environment`."""
    make_wheel(index, "humanize", "3.0", files={"humanize/__init__.py": ""})
    place = empty / ".venv"
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, place], check=True, env=_with_uv())
    command = ["uv", "pip", "install", "-q", "--python", place, "--no-index", "--find-links", index, "humanize==3.0"]
    subprocess.run(command, check=True, env=_with_uv())
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    done = run("init", "--from", "environment", "--name", "app", "--json")
    assert done.status == 0, done.err
    assert done.json["files"] == ["layers.d/app.layer", "layers.d/pylock.app.toml"]
    assert 'version = "3.0"' in (empty / "layers.d" / "pylock.app.toml").read_text()
    assert run("build").status == 0


def _with_uv() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("line", ["-e .", "rich --hash=sha256:00"])
def test_a_file_that_cannot_be_taken_as_it_is_is_refused_before_anything_is_written(
    run: Cli, empty: Path, line: str
) -> None:
    (empty / "requirements.txt").write_text(f"{line}\n")
    done = run("init", "--from", "requirements.txt")
    assert (done.status, done.out) == (1, "")
    assert "error[eval-requirements-option]" in done.err
    assert sorted(path.name for path in empty.iterdir()) == ["requirements.txt"]


def test_what_is_there_is_never_overwritten(run: Cli, empty: Path) -> None:
    (empty / "layers.d").mkdir()
    (empty / "layers.d" / "app.layer").write_text("# mine\n")
    done = run("init", "--name", "app")
    assert (done.status, done.out) == (2, "")
    assert "error[app-init-exists]: layers.d/app.layer exists already" in done.err
    assert not (empty / "envdsl.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--from", "nowhere.txt"], "app-init-source"),
        (["--from", "../requirements.txt"], "app-init-source"),
        (["--from", "broken/pyproject.toml"], "app-init-source"),
        (["--from", "environment"], "app-init-source"),
        (["--name", "no.dots"], "app-init-name"),
    ],
)
def test_bad_input_is_refused_before_anything_is_written(
    run: Cli, empty: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: str
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    (empty.parent / "requirements.txt").write_text("rich\n")
    (empty / "broken").mkdir()
    (empty / "broken" / "pyproject.toml").write_text("[project\n")
    done = run("init", *arguments)
    assert (done.status, done.out) == (2, "")
    assert f"error[{code}]" in done.err
    assert not (empty / "envdsl.toml").exists()


def test_the_tour_runs_to_its_end_and_leaves_nothing(index: Path, tmp_path: Path, run: Cli) -> None:
    """Issue 5.10: the five-minute tour in a scratch directory with each command explained as it runs."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    command = [sys.executable, "-m", "envdsl", "tutorial", "--yes"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.findall(r"^(\d+)\. .+\n\$ (envdsl .+)$", done.stdout, re.MULTILINE)
    assert [int(number) for number, _ in said] == list(range(1, len(said) + 1))
    assert {command.split()[1] for _, command in said} >= {
        "init",
        "check",
        "lock",
        "build",
        "session",
        "run",
        "diff",
        "gc",
    }
    assert "humanize/__init__.py" in done.stdout
    assert "+ humanize 4.0" in done.stdout
    assert [path for path in scratch.iterdir() if path.name.startswith("envdsl-tour")] == []


def test_the_tour_begins_in_an_empty_directory_only(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    done = run("tutorial", "--yes", "--keep", tmp_path / "full")
    assert done.status == 2
    assert (tmp_path / "full" / "mine").exists()

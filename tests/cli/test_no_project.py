"""Outside of any project the layers that travel with envdsl may be used, and are nobody's to change."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import PYTHON, Cli


@pytest.fixture
def installation(run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What envdsl is installed as, for which this directory stands, and a working directory that is in no project."""
    package = tmp_path / "installed" / "envdsl"
    (package / "layers.d").mkdir(parents=True)
    (package / "layers.d" / "office.layer").write_text(f'base office {{ python = "{PYTHON}"; packages = [ ]; }}\n')
    monkeypatch.setattr("envdsl.app.curated.resources", SimpleNamespace(files=lambda _: package))
    monkeypatch.setenv("ENVDSL_STORE", str(tmp_path / "store"))  # the shared one has layers of projects
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    monkeypatch.chdir(nowhere)
    return package


@pytest.mark.parametrize("command", [["lock"], ["update"], ["requests", "promote", "req-1"], ["fmt"]], ids=" ".join)
def test_a_command_that_writes_into_a_project_needs_one(run: Cli, installation: Path, command: list[str]) -> None:
    before = sorted(installation.rglob("*"))
    done = run(*command)
    assert (done.status, done.out) == (2, "")
    assert "error[app-no-project]" in done.err
    assert "envdsl init" in done.err
    assert sorted(installation.rglob("*")) == before


def test_whether_the_curated_locks_are_current_may_be_asked(run: Cli, installation: Path) -> None:
    assert run("lock", "--check").rows == [["missing", "office", "layers.d/pylock.office.toml"]]

"""An agent cannot bring its own catalog: whose layers are in the store decides, wherever a command is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli, clone


@pytest.fixture
def asked(built: Cli, project: Path, interpreter_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A session over a store of one's own, whose project lists nothing, and a workspace that allows everything."""
    monkeypatch.setenv("ENVDSL_STORE", str(clone(interpreter_store, tmp_path / "store")))
    for other in (tmp_path / "store" / "gcroots").glob("project-*"):
        other.unlink()  # of other tests
    assert built("build").status == 0
    assert built("build", "core", "one").status == 0
    (project / "layers.d" / "catalog.toml").write_text('[allow]\nunlisted = "ask"\n')
    assert built("session", "create", "governed", "-l", "core").status == 0
    workspace = tmp_path / "workspace"
    (workspace / "layers.d").mkdir(parents=True)
    (workspace / "layers.d" / "catalog.toml").write_text('[allow]\nunlisted = "allow"\n')
    monkeypatch.chdir(workspace)
    return built


def test_a_catalog_in_the_workspace_decides_nothing(asked: Cli, project: Path) -> None:
    """Issue 4.9: an agent can neither approve, nor bring what approves."""
    done = asked("env", "request", "governed", "foo==1", "--wait", "60")
    assert "A person has to decide" in done.out, done.out + done.err
    done = asked("env", "request", "governed", "foo==1", "--wait", "0", "--verbose")
    assert f"the catalog and the settings are those of {project}" in done.err


def test_of_several_projects_the_one_that_is_meant_has_to_be_named(asked: Cli, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "store" / "gcroots" / "project-other"
    other.write_text(f'# project "{tmp_path}"\n')
    done = asked("env", "status", "governed")
    assert (done.status, done.out) == (2, "")
    assert "error[app-other-project]" in done.err
    assert f"--project {project}" in done.err
    assert asked("env", "status", "governed", "--project", project).status == 0


def test_a_project_that_moved_away_is_said(asked: Cli, project: Path) -> None:
    project.rename(project.with_name("moved"))
    done = asked("env", "status", "governed")
    assert (done.status, done.out) == (4, "")
    assert "is not there" in done.err

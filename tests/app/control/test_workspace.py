"""Wheels that an agent names in its workspace are read from there, and from nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envdsl.app.control.workspace import open_wheel
from envdsl.errors import EnvdslError
from envdsl.session.manifest import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / "dist").mkdir(parents=True)
    (place / "dist" / "mine-1.0-py3-none-any.whl").write_bytes(b"wheel")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.whl").write_bytes(b"secret")
    return place


def manifest(place: Path | None) -> Any:
    return SimpleNamespace(session="s", workspace=Workspace(str(place), "/workspace") if place else None)


@pytest.mark.parametrize("path", ["dist/mine-1.0-py3-none-any.whl", "/workspace/dist/mine-1.0-py3-none-any.whl"])
def test_a_wheel_is_named_as_the_sandbox_sees_it(workspace: Path, path: str) -> None:
    with open_wheel(manifest(workspace), path) as (name, file):
        assert (name, file.read()) == ("mine-1.0-py3-none-any.whl", b"wheel")


@pytest.mark.parametrize(
    "path", ["../secret/key.whl", "/etc/passwd", "dist/../../secret/key.whl", "", ".", "dist", "nowhere.whl", "a\0b"]
)
def test_no_path_leads_out_of_the_workspace(workspace: Path, path: str) -> None:
    """Issue 4.9: what an agent names cannot make the host read something else."""
    with pytest.raises(EnvdslError) as caught, open_wheel(manifest(workspace), path):
        pass
    assert caught.value.code == "app-workspace-path"


def test_links_are_not_followed_anywhere_on_the_way(workspace: Path) -> None:
    """Issue 4.9: the workspace is the agent's; a link there may point at anything on the host."""
    (workspace / "link.whl").symlink_to("../secret/key.whl")
    (workspace / "inner").symlink_to("../secret")
    (workspace / "hop").symlink_to("dist")
    for path in ("link.whl", "inner/key.whl", "hop/mine-1.0-py3-none-any.whl"):
        with pytest.raises(EnvdslError) as caught, open_wheel(manifest(workspace), path):
            pass
        assert caught.value.code == "app-workspace-path"


def test_a_pipe_does_not_hold_the_host_up(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe.whl")
    with pytest.raises(EnvdslError, match="is not a file"), open_wheel(manifest(workspace), "pipe.whl"):
        pass


def test_a_session_without_a_workspace_has_no_such_wheels() -> None:
    with pytest.raises(EnvdslError) as caught, open_wheel(manifest(None), "dist/x.whl"):
        pass
    assert caught.value.code == "app-no-workspace"

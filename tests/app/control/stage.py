"""A project with an index on loopback, a base that is built, and sessions on it: what proposals are made from."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from envdsl.app import building, locking, sessions
from envdsl.app.control.plane import ControlPlane
from envdsl.app.control.proposing import propose
from envdsl.app.project import Project
from envdsl.policy.proposal import Proposal, Upload
from envdsl.reporter import Reporter
from envdsl.session.manifest import Manifest
from tests.cli.conftest import clone
from tests.lock.index import Index, serve
from tests.wheels import make_wheel, sha256

PYTHON = f"3.{sys.version_info.minor}"
NOW = datetime(2026, 6, 1, tzinfo=UTC)

LAYERS = f"""\
base core {{
  python   = "{PYTHON}";
  packages = [ "numpy" "learn" ];
  env      = {{ FLAVOUR = "core"; }};
}}
x one on core {{ packages = [ "foo==1" ]; }}
iso alone {{ python = "{PYTHON}"; packages = [ "foo" ]; }}
"""


@dataclass
class Stage:
    """``numpy`` 2 and ``learn`` (which wants ``numpy``) are the base, ``foo`` 1 the x layer ``one``."""

    root: Path
    index: Index
    project: Project
    plane: ControlPlane

    def wheel(self, name: str, version: str, *requires: str, **more: str) -> Path:
        """Publish a wheel on the index."""
        return make_wheel(self.index.directory, name, version, requires=requires, **more)  # type: ignore[arg-type]

    def session(self, name: str, *layers: str) -> Manifest:
        return sessions.create(self.project, name, layers or ("core",), None).manifest

    def upload(self, name: str, version: str, *requires: str, **more: str) -> Upload:
        """A wheel as it is kept when it was received."""
        wheel = make_wheel(self.root / "built", name, version, requires=requires, **more)  # type: ignore[arg-type]
        upload = Upload(wheel.name, sha256(wheel), wheel.stat().st_size)
        place = self.project.config.store / "uploads" / upload.sha256 / wheel.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(wheel.read_bytes())
        return upload

    def catalog(self, text: str) -> None:
        self.project.config.catalog.write_text(text)

    def propose(self, session: Manifest, *requirements: str, uploads: tuple[Upload, ...] = ()) -> Proposal:
        return propose(self.plane, session, requirements, uploads)


@pytest.fixture(scope="session")
def prepared(pristine_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the project, its index and its store, all layers built: each test takes a copy."""
    place = tmp_path_factory.mktemp("prepared")
    (place / "project" / "layers.d").mkdir(parents=True)
    (place / "project" / "layers.d" / "all.layer").write_text(LAYERS)
    for name, version, requires in (("numpy", "2.1", ()), ("learn", "1.0", ("numpy",)), ("foo", "1", ())):
        make_wheel(place / "index", name, version, requires=requires)
    with serve(place / "index") as index, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", str(place / "uv-cache"))
        project = _project(place, clone(pristine_store, place / "store"), index)
        locking.lock(project, [])
        building.build(project)
        project.close()
    return place


@pytest.fixture
def stage(tmp_path: Path, prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name in ("ENVDSL_STORE", "ENVDSL_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    shutil.copytree(prepared / "project", tmp_path / "project")
    shutil.copytree(prepared / "index", tmp_path / "index")
    store = clone(prepared / "store", tmp_path / "store")
    with serve(tmp_path / "index") as index:
        project = _project(tmp_path, store, index)
        with ControlPlane.open(project, clock=lambda: NOW) as plane:
            yield Stage(project.config.root, index, project, plane)
        project.close()


def _project(place: Path, store: Path, index: Index) -> Project:
    (place / "project" / "envdsl.toml").write_text(
        f'platforms = ["manylinux_2_28_{os.uname().machine}"]\n'
        f'[[index]]\nname = "local"\nurl = "{index.simple}"\ndefault = true\n'
    )
    return Project.find(place / "project", store=store, reporter=Reporter())

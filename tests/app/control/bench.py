"""Requests from end to end: a project with a flat index, a store in which its layers stand, sessions, workers.

``foo`` 1 and 2 are nowhere but in the index, ``bar`` 1 is the base's, ``tool`` needs ``foo``; ``fresh`` wants a newer
``bar`` than the base has. The catalog allows ``foo`` and ``tool``, and denies ``evil``.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from envdsl.app import building, locking, sessions
from envdsl.app.control import asking
from envdsl.app.control.plane import ControlPlane
from envdsl.app.control.python_env import PythonEnv
from envdsl.app.control.worker import Worker
from envdsl.app.project import Project
from envdsl.policy.access import Principal, Role
from envdsl.reporter import Reporter
from envdsl.session.manifest import Manifest
from envdsl.state.records import AuditEvent, RequestRecord
from tests.cli.conftest import clone
from tests.wheels import make_wheel

PYTHON = f"3.{sys.version_info.minor}"
LAYERS = f"""\
base core {{ python = "{PYTHON}"; packages = [ "bar==1" ]; }}
base next {{ python = "{PYTHON}"; packages = [ "bar==2" ]; }}
x extra on core {{ packages = [ "spare" ]; }}
"""
CATALOG = """\
[allow]
packages = ["foo", "tool"]

[deny]
evil = "it phones home"
"""
ADMIN = Principal(Role.ADMINISTRATOR, "root-of-tests")


class Clock:
    """The time of the machine, and what a test adds to it."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def forward(self, **by: float) -> None:
        self.ahead += timedelta(**by)


@dataclass
class Bench:
    """A control plane and what a test does with it."""

    project: Project
    plane: ControlPlane
    clock: Clock
    workers: list[Worker] = field(default_factory=list)

    @property
    def root(self) -> Path:
        return self.project.config.root

    @property
    def worker(self) -> Worker:
        if not self.workers:
            self.workers.append(Worker(self.plane, name="bench", jobs=1))
        return self.workers[0]

    def session(self, name: str, *layers: str, workspace: Path | None = None) -> Manifest:
        return sessions.create(self.project, name, layers or ("core",), workspace).manifest

    def manifest(self, name: str) -> Manifest:
        return sessions.show(self.project, name).manifest

    def env(self, session: str) -> PythonEnv:
        return PythonEnv(self.plane, agent(session))

    def ask(self, session: str, *requirements: str, **more: object) -> RequestRecord:
        return asking.request(self.plane, agent(session), session, requirements, **more)  # type: ignore[arg-type]

    def settle(self) -> None:
        """Work until there is nothing to do."""
        while self.worker.step():
            pass

    def settled(self, session: str, *requirements: str, **more: object) -> RequestRecord:
        record = self.ask(session, *requirements, **more)
        self.settle()
        return self.get(record.id)

    def get(self, request: str) -> RequestRecord:
        with self.plane.state.reading() as tx:
            return tx.requests.get(request)

    def events(self, subject: str | None = None) -> list[AuditEvent]:
        with self.plane.state.reading() as tx:
            return [event for event in tx.audit.range() if subject is None or event.subject == subject]

    def actions(self, request: str) -> list[str]:
        return [event.action for event in self.events(request)]

    def catalog(self, text: str) -> None:
        self.project.config.catalog.write_text(text)

    def run(self, session: str, code: str) -> tuple[int, str]:
        """Exit status and output of Python in the session's real sandbox."""
        import subprocess

        script = self.project.store.layout.sessions / session / "run"
        done = subprocess.run([script, "python3", "-c", code], env={}, cwd="/", capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def layers(self, kind: str) -> list[str]:
        """The ids of the layers of a kind that stand in the store."""
        return sorted(path.name for path in self.project.store.layout.layers.glob(f"{kind}-*"))


def agent(session: str) -> Principal:
    return Principal(Role.AGENT, f"agent:{session}", session)


def owner(name: str) -> Principal:
    return Principal(Role.OWNER, name)


def reopened(bench: Bench) -> Project:
    """The project as another process sees it: read anew."""
    return Project.find(bench.root, store=bench.project.config.store, reporter=Reporter())


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, pristine_store: Path) -> Path:
    """The project and its store, built once."""
    root = tmp_path_factory.mktemp("bench") / "project"
    (root / "layers.d").mkdir(parents=True)
    wheels = root / "wheels"
    for version in ("1", "2"):
        make_wheel(wheels, "foo", version)
        make_wheel(wheels, "bar", version, files={"bar/__init__.py": f"VERSION = {version}\n"})
    for name in ("evil", "spare", "unlisted"):
        make_wheel(wheels, name, "1")
    make_wheel(wheels, "tool", "1", requires=["foo>=1"])
    make_wheel(wheels, "fresh", "1", requires=["bar>=2"])
    make_wheel(wheels, "careful", "1", requires=["foo==1"])
    (root / "envdsl.toml").write_text(
        f'default-base = "core"\nplatforms = ["manylinux_2_28_{os.uname().machine}"]\n'
        '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    (root / "layers.d" / "all.layer").write_text(LAYERS)
    (root / "layers.d" / "catalog.toml").write_text(CATALOG)
    store = clone(pristine_store, root.parent / "store")
    project = Project.find(root, store=store, reporter=Reporter())
    locking.lock(project, [])
    building.build(project)
    project.close()
    return root.parent


@pytest.fixture
def bench(tmp_path: Path, template: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """On SQLite and on PostgreSQL."""
    for name in ("ENVDSL_STORE", "ENVDSL_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    root = tmp_path / "project"
    shutil.copytree(template / "project", root)
    project = Project.find(root, store=clone(template / "store", tmp_path / "store"), reporter=Reporter())
    clock = Clock()
    with ControlPlane.open(project, url=database_url, clock=clock) as plane:
        yield Bench(project, plane, clock)
    project.close()


@pytest.fixture
def light_bench(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The same on SQLite alone, for what does not depend on the database."""
    for name in ("ENVDSL_STORE", "ENVDSL_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    root = tmp_path / "project"
    shutil.copytree(template / "project", root)
    project = Project.find(root, store=clone(template / "store", tmp_path / "store"), reporter=Reporter())
    clock = Clock()
    with ControlPlane.open(project, clock=clock) as plane:
        yield Bench(project, plane, clock)
    project.close()

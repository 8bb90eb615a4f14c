"""A project with an index, a catalog, layers and sessions: what people find on the admin page."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from envdsl.app import building, locking, sessions
from envdsl.app.control import asking, tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.app.project import Project
from envdsl.policy.access import Principal, Role
from envdsl.reporter import Reporter
from envdsl.state.records import RequestRecord, Status
from tests.cli.conftest import clone
from tests.lock.index import Index
from tests.web.conftest import SETTINGS, Service, running, wait_until
from tests.wheels import make_wheel

PYTHON = f"3.{sys.version_info.minor}"
ALICE = Principal(Role.OWNER, "alice")
ADMINISTRATOR = Principal(Role.ADMINISTRATOR, "root")

LAYERS = f"""\
base office {{ python = "{PYTHON}"; packages = [ "documents" "tables" ]; env = {{ FLAVOUR = "office"; }}; }}
base bureau {{ python = "{PYTHON}"; packages = [ "documents" "tables" "letters" ]; }}
x plots on office {{ packages = [ "charts" ]; }}
"""

CATALOG = """\
[allow]
packages = ["documents", "letters", "colours>=2,<3"]
unlisted = "ask"

[deny]
telnet = "sends passwords in the clear; use the ssh client of the base"

[groups]
statistics = ["models", "samples>=1"]

[limits]
max-wheel-size = "10 MB"
max-closure-size = "100 MB"

[licences]
allowed = ["MIT", "BSD-3-Clause", "Apache-2.0"]
unlisted = "ask"

[[session]]
pattern = "lab-*"
allow.groups = ["statistics"]
"""

_WHEELS: tuple[tuple[str, str, tuple[str, ...], str, str], ...] = (
    ("documents", "1.2", (), "MIT", "Write and read documents"),
    ("arrays", "2.1", (), "BSD-3-Clause", "Arrays of numbers"),
    ("arrays", "1.9", (), "BSD-3-Clause", "Arrays of numbers"),
    ("tables", "2.0", ("arrays>=2",), "BSD-3-Clause", "Tables and frames"),
    ("letters", "0.9", (), "Apache-2.0", "Letters from templates"),
    ("charts", "3.0.1", ("colours",), "MIT", "Charts as SVG"),
    ("colours", "2.4", (), "MIT", "Names of colours"),
    ("graphs", "1.4", ("layouts", "arrays"), "MIT", "Draws graphs of nodes and edges"),
    ("layouts", "0.3", (), "GPL-3.0-only", "Lays out nodes"),
    ("telnet", "1.0", (), "MIT", "A client"),
)


@dataclass
class Master:
    """What all scenes are copied from: a project that is locked, and a store in which its layers are built."""

    root: Path
    store: Path


def build(directory: Path, pristine: Path, index: Index) -> Master:
    root = directory / "project"
    (root / "layers.d").mkdir(parents=True)
    for name, version, requires, licence, summary in _WHEELS:
        metadata = f"License-Expression: {licence}\nSummary: {summary}\n"
        make_wheel(index.directory, name, version, requires=requires, extra_metadata=metadata)
    (root / "envdsl.toml").write_text(
        f'default-base = "office"\nplatforms = ["manylinux_2_28_{os.uname().machine}"]\n'
        f'[[index]]\nname = "local"\nurl = "{index.simple}"\ndefault = true\n'
    )
    (root / "layers.d" / "all.layer").write_text(LAYERS)
    (root / "layers.d" / "catalog.toml").write_text(CATALOG)
    store = clone(pristine, directory / "store")
    project = Project.find(root, store=store, reporter=Reporter())
    locking.lock(project, [])
    building.build(project)
    project.close()
    return Master(root, store)


@dataclass
class Scene:
    """One test's own copy, with sessions: ``report-7`` and ``lab-2`` are Alice's, ``audit-1`` is Bob's. A service with
    one worker serves it."""

    project: Project
    plane: ControlPlane
    service: Service

    @property
    def url(self) -> str:
        return self.service.url

    def token(self, role: Role, name: str, session: str | None = None) -> str:
        return tokens.create(self.plane, ADMINISTRATOR, role=role, name=name, session=session)[0]

    def ask(self, session: str, *requirements: str, reason: str = "") -> RequestRecord:
        """An agent asks; what the service's worker makes of it is waited for."""
        agent = Principal(Role.AGENT, f"agent:{session}", session)
        record = asking.request(self.plane, agent, session, requirements, reason=reason)

        def settled() -> bool:
            found = asking.find(self.plane, agent, record.id)
            return found.status.ended or (found.status is Status.PENDING and found.classification is not None)

        wait_until(settled, 60)
        return asking.find(self.plane, agent, record.id)

    def installed(self, session: str) -> dict[str, str]:
        manifest = sessions.show(self.project, session).manifest
        return {package.name: package.version for layer in manifest.layers for package in layer.packages}


@contextmanager
def opened(master: Master, directory: Path) -> Iterator[Scene]:
    root = directory / "project"
    shutil.copytree(master.root, root)
    store = clone(master.store, directory / "store")
    project = Project.find(root, store=store, reporter=Reporter())
    with ControlPlane.open(project) as plane:
        for name, layers, owner in (
            ("report-7", ["office", "plots"], "alice"),
            ("lab-2", ["office"], "alice"),
            ("audit-1", ["office"], "bob"),
        ):
            sessions.create(project, name, layers, None)
            with plane.state.transaction() as tx:
                tx.sessions.give(plane.store_id, name, owner, actor="root")
        with running(plane, directory, replace(SETTINGS, workers=1)) as service:
            yield Scene(project, plane, service)
    project.close()

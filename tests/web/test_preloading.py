"""A service that listens has loaded what the first requests need."""

from __future__ import annotations

import subprocess
import sys

from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Role
from tests.web.conftest import House, Token

# In a process of its own: in this one, other tests have loaded everything long ago.
SCRIPT = """
import gc, sys
from pathlib import Path
from starlette.testclient import TestClient
from envdsl.app.control.plane import ControlPlane
from envdsl.app.project import Project
from envdsl.reporter import Reporter
from envdsl.web.preloading import preload
from envdsl.web.server import application
from envdsl.web.settings import Settings

root, store, url, token = sys.argv[1:]
project = Project.find(Path(root), store=Path(store), reporter=Reporter())
with ControlPlane.open(project, url=url) as plane:
    preload(plane)
    assert gc.get_freeze_count() > 10_000
    with TestClient(application(plane, settings=Settings(workers=0)), base_url="http://localhost") as client:
        client.headers["Authorization"] = f"Bearer {token}"
        client.get("/healthz")
        before = set(sys.modules)
        assert client.get("/api/v1/sessions/hers/status").status_code == 200
        answer = client.post("/api/v1/sessions/hers/requests", json={"requirements": ["baz>=3"]})
        assert answer.status_code == 202, answer.text
        print(*sorted(set(sys.modules) - before))
"""


def test_neither_the_first_status_nor_the_first_request_imports_anything(
    house: House, plane: ControlPlane, token: Token
) -> None:
    url = plane.state.url.render_as_string(hide_password=False)
    arguments = [str(house.root), str(house.store), url, token(Role.AGENT, "bot", "hers")]
    ran = subprocess.run([sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []

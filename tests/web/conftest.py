"""A real service over a real store: uvicorn on a loopback port and on a Unix socket, asked with httpx."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from envdsl.app.control import tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.app.project import Project
from envdsl.cli import group
from envdsl.policy.access import Principal, Role
from envdsl.reporter import Reporter
from envdsl.web import listening
from envdsl.web.api.endpoint import PREFIX, Endpoint
from envdsl.web.api.schemas import validator
from envdsl.web.api.table import ENDPOINTS
from envdsl.web.server import application
from envdsl.web.serving import Server, configuration
from envdsl.web.settings import Rate, Settings
from tests.cli.conftest import PYTHON, clone, pristine_store
from tests.wheels import make_wheel

__all__ = ["pristine_store"]

ADMINISTRATOR = Principal(Role.ADMINISTRATOR, "root")
CATALOG = """\
[allow]
packages = ["foo", "bar"]
[licences]
unknown = "allow"
[limits]
unknown-age = "allow"
"""
LAYERS = f"""\
base core {{ python = "{PYTHON}"; packages = [ "bar" ]; description = "A base"; }}
x one on core {{ packages = [ "foo==1" ]; }}
"""
# Nobody is slowed down but where a test says so.
UNLIMITED = Rate(per_second=1e6, burst=10**6)
SETTINGS = Settings(workers=0, requests=UNLIMITED, failures=UNLIMITED, grace=5)


@dataclass(frozen=True)
class House:
    """A project with a store in which the layers are built, and sessions: ``hers`` is Alice's, ``his`` is Bob's."""

    root: Path
    store: Path

    def project(self) -> Project:
        return Project.find(self.root, store=self.store, reporter=Reporter())

    def envdsl(self, *arguments: str) -> None:
        options = ["--project", str(self.root), "--store", str(self.store), "-q"]
        assert group.run([*arguments, *options]) == 0


@pytest.fixture(scope="session")
def house(pristine_store: Path, tmp_path_factory: pytest.TempPathFactory) -> House:
    root = tmp_path_factory.mktemp("house") / "project"
    (root / "layers.d").mkdir(parents=True)
    for name, version in (("foo", "1"), ("foo", "2"), ("bar", "1.0"), ("baz", "3")):
        make_wheel(root / "wheels", name, version)
    (root / "envdsl.toml").write_text(
        'default-base = "core"\n[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    (root / "layers.d" / "all.layer").write_text(LAYERS)
    (root / "layers.d" / "catalog.toml").write_text(CATALOG)
    made = House(root, clone(pristine_store, root.parent / "store"))
    made.envdsl("lock")
    made.envdsl("build")
    for session in ("hers", "his"):
        made.envdsl("session", "create", session, "--layer", "core")
    return made


@pytest.fixture
def plane(house: House, tmp_path: Path) -> Iterator[ControlPlane]:
    """The control plane of the house, with a database that is this test's alone."""
    project = house.project()
    with ControlPlane.open(project, url=f"sqlite:///{tmp_path}/state.db") as opened:
        with opened.state.transaction() as tx:
            for session, owner in (("hers", "alice"), ("his", "bob")):
                tx.sessions.give(opened.store_id, session, owner, actor="root")
        yield opened
    project.close()


Token = Callable[..., str]


@pytest.fixture
def token(plane: ControlPlane) -> Token:
    """Make a token and give its text."""

    def make(role: Role, name: str = "somebody", session: str | None = None, **lifetime: float) -> str:
        expires = timedelta(**lifetime) if lifetime else None
        return tokens.create(plane, ADMINISTRATOR, role=role, name=name, session=session, expires=expires)[0]

    return make


@dataclass
class Service:
    """A service that runs. ``port`` is TCP's, ``socket`` the path of the Unix socket."""

    app: Any
    server: Server
    port: int
    socket: Path
    thread: threading.Thread
    clients: ExitStack = field(default_factory=ExitStack)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, token: str | None = None, **more: Any) -> httpx.Client:
        """A client over TCP, with ``token`` if there is one."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        hooks = {"response": [holds_to_document]}
        return self.clients.enter_context(
            httpx.Client(base_url=self.url, headers=headers, timeout=60, event_hooks=hooks, **more)
        )

    def local(self) -> httpx.Client:
        """A client at the Unix socket."""
        transport = httpx.HTTPTransport(uds=str(self.socket))
        hooks = {"response": [holds_to_document]}
        return self.clients.enter_context(
            httpx.Client(base_url="http://envdsl", transport=transport, timeout=60, event_hooks=hooks)
        )

    def stop(self) -> None:
        self.server.handle_exit(15, None)
        self.thread.join(20)
        assert not self.thread.is_alive(), "the service does not stop"


Serve = Callable[..., Service]

_PATTERNS = [
    (re.compile(PREFIX + re.sub(r"{\w+}", "[^/]+", endpoint.path)), endpoint)
    for endpoint in sorted(ENDPOINTS, key=lambda endpoint: endpoint.path.count("{"))
]


def endpoint_of(method: str, path: str) -> Endpoint | None:
    """The row of the table that answers, by means of its own."""
    found = (row for pattern, row in _PATTERNS if row.method == method and pattern.fullmatch(path))
    return next(found, None)


def holds_to_document(response: httpx.Response) -> None:
    """Every answer that a test gets is what the OpenAPI document says."""
    path = response.request.url.path
    if not path.startswith(f"{PREFIX}/"):
        return
    response.read()
    endpoint = endpoint_of(response.request.method, path)
    if response.status_code >= 400:
        assert response.headers["content-type"] == "application/problem+json", response.text
        validator("Problem").validate(response.json())
        assert response.json()["status"] == response.status_code
        return
    assert endpoint is not None, path
    assert response.status_code == endpoint.status
    if response.headers["content-type"] == "application/json":
        validator(endpoint.answer).validate(response.json())
    else:
        assert response.headers["content-type"].partition(";")[0] in endpoint.media


@contextmanager
def running(
    plane: ControlPlane, directory: Path, settings: Settings, proxies: tuple[str, ...] = ()
) -> Iterator[Service]:
    app = application(plane, settings=settings)
    server = Server(configuration(app, settings, proxies), app)
    path = directory / "s"
    sockets = [listening.listen_unix(path), listening.listen_tcp(listening.Address("127.0.0.1", 0), behind_proxy=False)]
    thread = threading.Thread(target=server.run, args=(sockets,))
    thread.start()
    service = Service(app, server, sockets[1].getsockname()[1], path, thread)
    try:
        wait_until(lambda: server.started)
        yield service
    finally:
        service.clients.close()
        service.stop()


@pytest.fixture
def serve(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start a service over ``plane``; keywords change its settings."""
    with ExitStack() as stack:

        def start(*, proxies: tuple[str, ...] = (), **changes: Any) -> Service:
            directory = tmp_path_factory.mktemp("s")
            return stack.enter_context(running(plane, directory, replace(SETTINGS, **changes), proxies))

        yield start


@pytest.fixture
def service(serve: Serve) -> Service:
    return serve()


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.01)

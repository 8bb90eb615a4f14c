"""Every route, with every role: what the access table says is what happens, and no route is forgotten.

Expectations are derived from :func:`envdsl.policy.access.may` by rules of this test's own, not by the code that
serves: anonymous callers are turned away; what a caller may not see is not there; what it may see but not do is
forbidden. The literal checks below do not trust the table either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from starlette.routing import Mount, Route

from envdsl.app.control import asking, tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Action, Principal, Role, may
from envdsl.web.api.endpoint import PREFIX, Concerns
from envdsl.web.api.table import ENDPOINTS
from envdsl.web.pages.routes import PAGES
from tests.web.conftest import ADMINISTRATOR, SETTINGS, House, Service, running

# Routes that stand in neither table, each with what an anonymous caller gets.
OTHERS = {
    ("GET", "/healthz"): 200,
    ("GET", "/metrics"): 401,
    ("GET", "/login"): 200,
    ("POST", "/login"): 303,
    ("POST", "/logout"): 303,
    ("POST", "/preferences"): 303,
    ("POST", "/mcp"): 401,
}
CALLERS: Mapping[str, Principal | None] = {
    "anonymous": None,
    "expired": None,
    "revoked": None,
    "agent of hers": Principal(Role.AGENT, "agent:hers", "hers"),
    "agent of his": Principal(Role.AGENT, "agent:his", "his"),
    "alice": Principal(Role.OWNER, "alice"),
    "bob": Principal(Role.OWNER, "bob"),
    "reader": Principal(Role.READER, "reader"),
    "administrator": Principal(Role.ADMINISTRATOR, "root"),
}
BODIES: Mapping[str, Any] = {
    "Ask": {"requirements": ["foo"]},
    "Decide": {"choice": "deny"},
    "Promote": {},
    "Rebase": {"dry-run": True},
    "Undo": {},
    "Collect": {"older-than": 86400},
    "NewToken": {"role": "reader", "name": "new"},
}


@dataclass(frozen=True)
class Row:
    """What both tables say of a route."""

    method: str
    path: str
    action: Action | None
    concerns: Concerns
    body: str | None
    is_page: bool


ROWS = [
    *(Row(e.method, PREFIX + e.path, e.action, e.concerns, e.body, False) for e in ENDPOINTS),
    *(Row(p.method, p.path, p.action, p.concerns, None, True) for p in PAGES),
]


@pytest.fixture(scope="module")
def place(house: House, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ControlPlane, Service]]:
    """One service for all of these; no worker, so that a request stays what it is."""
    directory = tmp_path_factory.mktemp("routes")
    project = house.project()
    with ControlPlane.open(project, url=f"sqlite:///{directory}/state.db") as plane:
        with plane.state.transaction() as tx:
            for session, owner in (("hers", "alice"), ("his", "bob")):
                tx.sessions.give(plane.store_id, session, owner, actor="root")
        with running(plane, directory, SETTINGS) as service:
            yield plane, service
    project.close()


@pytest.fixture(scope="module")
def clients(place: tuple[ControlPlane, Service]) -> Mapping[str, httpx.Client]:
    plane, service = place
    texts = {}
    for name, principal in CALLERS.items():
        role = principal.role if principal is not None else Role.ADMINISTRATOR
        session = principal.session if principal is not None else None
        texts[name], record = tokens.create(plane, ADMINISTRATOR, role=role, name=name, session=session)
        if principal is not None and principal.role is not Role.AGENT:
            texts[name], record = tokens.create(plane, ADMINISTRATOR, role=role, name=principal.name)
        if name == "revoked":
            tokens.revoke(plane, ADMINISTRATOR, record.id)
    from datetime import timedelta

    soon = timedelta(microseconds=1)
    texts["expired"] = tokens.create(plane, ADMINISTRATOR, role=Role.ADMINISTRATOR, name="x", expires=soon)[0]
    return {name: service.client(None if name == "anonymous" else text) for name, text in texts.items()}


@pytest.fixture
def names(place: tuple[ControlPlane, Service]) -> Mapping[str, str]:
    """What stands for the parameters of paths: a request that is open in ``hers``, a token that may be revoked."""
    plane, _ = place
    asker = Principal(Role.AGENT, "agent:hers", "hers")
    open_ones = asking.listing(plane, asker, session="hers", limit=1)
    record = open_ones[0] if open_ones and not open_ones[0].status.ended else None
    record = record or asking.request(plane, asker, "hers", ["baz"])
    doomed = tokens.create(plane, ADMINISTRATOR, role=Role.READER, name="doomed")[1]
    layer = plane.project.store.paths("layer")[0].path.rpartition("/")[2]
    return {"session": "hers", "request": record.id, "token": doomed.id, "layer": layer, "package": "foo"}


def expected(row: Row, caller: str) -> set[int]:
    """The statuses that ``caller`` may get; an empty set is "anything but a refusal"."""
    principal = CALLERS[caller]
    if caller in ("expired", "revoked"):
        return {401}
    if row.concerns is Concerns.NOTHING:
        return set()
    if principal is None:
        return {401}
    if row.concerns is Concerns.CALLER or row.action is None:
        return set()
    if row.concerns is Concerns.STORE:
        if row.path == "/upload/request" and may(principal, row.action):
            return {404}  # its form names a session and a wheel: there are none of these names
        return set() if may(principal, row.action) else {403}
    if not may(principal, Action.SEE_SESSION, session="hers", owner="alice"):
        return {404}
    return set() if may(principal, row.action, session="hers", owner="alice") else {403}


def ask(client: httpx.Client, row: Row, names: Mapping[str, str]) -> httpx.Response:
    path = re.sub(r"{(\w+)}", lambda match: names[match[1]], row.path)
    arguments: dict[str, Any] = {}
    if row.body is not None:
        arguments["json"] = BODIES[row.body]
    elif row.path.endswith("/uploads"):
        arguments = {"content": b"no wheel", "params": {"filename": "x-1-py3-none-any.whl"}}
    elif row.is_page and row.method == "POST":
        arguments["data"] = {"what": "nothing"}
    return client.request(row.method, path, **arguments)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.method} {row.path}" for row in ROWS])
def test_every_route_gives_every_role_what_the_access_table_says(
    row: Row, clients: Mapping[str, httpx.Client], names: Mapping[str, str]
) -> None:
    """Issue 4.9: a test walks every route with every role."""
    for caller in CALLERS:
        status = ask(clients[caller], row, names).status_code
        wanted = expected(row, caller)
        if row.is_page and wanted == {401} and row.method == "GET":
            wanted = {303}  # to the sign-in form
        if wanted:
            assert status in wanted, f"{caller}: {status}"
        else:
            assert status not in (401, 403, 404, 405, 500), f"{caller}: {status}"


def test_no_route_is_forgotten(place: tuple[ControlPlane, Service]) -> None:
    known = {(row.method, row.path) for row in ROWS} | OTHERS.keys()
    for route in place[1].app.routes:
        if isinstance(route, Mount):
            assert route.path == "/static"
            continue
        assert isinstance(route, Route)
        methods = (route.methods or {"POST"}) - {"HEAD"}
        assert {(method, route.path) for method in methods} <= known, route.path


@pytest.mark.parametrize(("route", "status"), OTHERS.items())
def test_the_other_routes_give_strangers_what_is_written_here(
    route: tuple[str, str], status: int, clients: Mapping[str, httpx.Client]
) -> None:
    method, path = route
    assert clients["anonymous"].request(method, path, data={} if method == "POST" else None).status_code == status


def test_metrics_are_for_those_who_see_the_store(clients: Mapping[str, httpx.Client]) -> None:
    got = {caller: client.get("/metrics").status_code for caller, client in clients.items()}
    refused = {"anonymous": 401, "expired": 401, "revoked": 401, "agent of hers": 403, "agent of his": 403}
    assert got == refused | {"alice": 200, "bob": 200, "reader": 200, "administrator": 200}


# Literal: what these say holds whatever the tables say.


def test_an_agent_neither_approves_nor_sees_another_session(
    clients: Mapping[str, httpx.Client], names: Mapping[str, str]
) -> None:
    """Issue 4.9: an agent's token can neither approve nor see another session."""
    request = names["request"]
    decide = {"choice": "approve", "digest": "0" * 64}
    own, other = clients["agent of hers"], clients["agent of his"]
    assert own.post(f"{PREFIX}/requests/{request}/decision", json=decide).status_code == 403
    assert own.post(f"/requests/{request}/decision", data={"choice": "approve"}).status_code == 403
    for path in ("rebase", "undo", "seal"):
        assert own.post(f"{PREFIX}/sessions/hers/{path}", json={}).status_code == 403
    for method, path in (
        ("GET", "/sessions/hers"),
        ("GET", "/sessions/hers/status"),
        ("GET", "/sessions/hers/history"),
        ("GET", f"/sessions/hers/requests/{request}"),
        ("GET", f"/sessions/his/requests/{request}"),
        ("GET", f"/requests/{request}"),
        ("GET", f"/requests/{request}/card"),
        ("GET", "/requests?session=hers"),
    ):
        assert other.request(method, PREFIX + path).status_code == 404, path
    for path in ("/layers", "/audit", "/tokens", "/gc", "/catalog", "/health"):
        assert own.get(PREFIX + path).status_code == 403, path
    assert other.get(f"{PREFIX}/requests").json() == {"requests": []}
    assert [item["name"] for item in other.get(f"{PREFIX}/sessions").json()["sessions"]] == ["his"]


@pytest.mark.parametrize(
    "path", ["/sessions/{}", "/sessions/{}/status", "/sessions/{}/history", "/requests?session={}"]
)
def test_for_an_agent_a_foreign_session_is_like_one_that_does_not_exist(
    path: str, clients: Mapping[str, httpx.Client]
) -> None:
    def told(session: str) -> tuple[int, str, list[str]]:
        answer = clients["agent of his"].get(PREFIX + path.format(session))
        body = {key: value for key, value in answer.json().items() if key != "instance"}
        headers = [key for key in answer.headers if key not in ("date", "x-request-id")]
        return answer.status_code, str(body).replace(session, "?"), headers

    assert told("hers") == told("nope")
    assert told("hers")[0] == 404


def test_a_foreign_request_is_like_one_that_does_not_exist(
    clients: Mapping[str, httpx.Client], names: Mapping[str, str]
) -> None:
    def told(identifier: str) -> tuple[int, str]:
        answer = clients["bob"].get(f"{PREFIX}/requests/{identifier}")
        body = {key: value for key, value in answer.json().items() if key != "instance"}
        return answer.status_code, str(body).replace(identifier, "?")

    assert told(names["request"]) == told("req-nothing")


def test_a_reader_changes_nothing(clients: Mapping[str, httpx.Client], names: Mapping[str, str]) -> None:
    for row in ROWS:
        if row.method != "GET" and row.path not in ("/health", "/audit/verify"):
            assert ask(clients["reader"], row, names).status_code == 403, row.path


def test_an_owner_does_nothing_to_what_is_somebody_elses(
    clients: Mapping[str, httpx.Client], names: Mapping[str, str]
) -> None:
    for row in ROWS:
        if row.concerns in (Concerns.SESSION, Concerns.REQUEST):
            assert ask(clients["bob"], row, names).status_code == 404, row.path

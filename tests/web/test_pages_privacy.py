"""Issue 4.9: an owner or an agent learns nothing of sessions that are none of theirs, on any page."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from envdsl.app import sessions
from envdsl.app.control import asking
from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Principal, Role
from envdsl.web.pages.routes import PAGES
from tests.web.conftest import Service, Token

HIDDEN = "zebra-9"
BOB = Principal(Role.OWNER, "bob")


@pytest.fixture
def hidden(plane: ControlPlane) -> Iterator[str]:
    """Bob's session, and a request in it."""
    sessions.create(plane.project, HIDDEN, ["core"], None)
    try:
        with plane.state.transaction() as tx:
            tx.sessions.give(plane.store_id, HIDDEN, "bob", actor="root")
        yield asking.request(plane, BOB, HIDDEN, ["baz"]).id
    finally:
        sessions.remove(plane.project, HIDDEN)


@pytest.fixture(params=["alice", "agent"])
def stranger(request: pytest.FixtureRequest, service: Service, token: Token) -> httpx.Client:
    if request.param == "agent":
        return service.client(token(Role.AGENT, session="hers"))
    return service.client(token(Role.OWNER, "alice"))


def test_no_page_names_it(plane: ControlPlane, stranger: httpx.Client, hidden: str) -> None:
    own = asking.request(plane, Principal(Role.OWNER, "alice"), "hers", ["baz"]).id
    layer = str(sessions.show(plane.project, HIDDEN).manifest.foundation.id)
    filled = {"request": own, "session": "hers", "layer": layer, "token": "none"}
    count = 0
    for page in PAGES:
        if page.method == "GET" or page.path == "/health":
            answer = stranger.request(page.method, page.path.format_map(filled))
            assert HIDDEN not in answer.text, page.path
            assert hidden not in answer.text, page.path
            count += answer.status_code == 200
    assert count >= 5


def test_it_is_as_if_it_were_not_there(stranger: httpx.Client, hidden: str) -> None:
    def seen(session: str, request: str) -> list[tuple[int, str]]:
        wheel = {"filename": "baz-3-py3-none-any.whl", "sha256": "0" * 64, "size": "1", "session": session}
        answers = [
            stranger.get(f"/sessions/{session}"),
            stranger.get(f"/requests?session={session}"),
            stranger.get(f"/requests/{request}"),
            stranger.post(f"/sessions/{session}/requests", data={"requirements": "baz"}),
            stranger.post(f"/requests/{request}/decision", data={"choice": "deny"}),
            stranger.post("/upload/request", data=wheel),
        ]
        return [(answer.status_code, answer.text.replace(session, "S").replace(request, "R")) for answer in answers]

    assert seen(HIDDEN, hidden) == seen("nothing-9", f"{hidden[:-4]}0000")

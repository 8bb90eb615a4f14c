"""What every request passes, and what every answer gets."""

from __future__ import annotations

import io
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPResponse
from typing import Any

import pytest
from starlette.requests import Request
from starlette.routing import Route

from envdsl.app.control import asking
from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Principal, Role
from envdsl.web import logs, peer
from tests.web.conftest import ADMINISTRATOR, Serve, Service, Token


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the service logs."""
    before = {name: logging.getLogger(name).handlers for name in (None, "envdsl", "uvicorn")}
    stream = io.StringIO()
    logs.configure(verbose=True, stream=stream)
    yield stream
    logging.captureWarnings(False)
    for name, handlers in before.items():
        logging.getLogger(name).handlers = handlers
        logging.getLogger(name).propagate = True


def lines(log: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.getvalue().splitlines()]


@pytest.mark.parametrize("path", ["/healthz", "/api/v1/me", "/api/v1/nowhere", "/api/v1/openapi.json"])
def test_every_answer_has_the_headers_that_protect_a_browser(service: Service, path: str) -> None:
    """Issue 4.9: strict CSP."""
    headers = service.client().get(path).headers
    policy = headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers
    assert len(headers["x-request-id"]) == 32


def test_what_is_not_there_is_a_problem_and_no_page(service: Service, token: Token) -> None:
    answer = service.client(token(Role.READER)).get("/api/v1/nowhere")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json()["code"] == "web-not-found"
    answer = service.client(token(Role.READER)).put("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (405, "web-method-not-allowed")
    assert "GET" in answer.headers["allow"]


def test_a_body_that_is_too_large_is_refused_before_it_is_read(service: Service, token: Token) -> None:
    client = service.client(token(Role.ADMINISTRATOR))
    answer = client.post("/api/v1/tokens", content=b"x" * (2 << 20))
    assert (answer.status_code, answer.json()["code"]) == (413, "web-body-too-large")


def test_a_body_without_a_length_is_counted(service: Service, token: Token) -> None:
    client = service.client(token(Role.ADMINISTRATOR))
    chunks = (b" " * 65536 for _ in range(40))
    answer = client.post("/api/v1/tokens", content=chunks, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "web-body-too-large")


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{}", "text/plain", 415, "web-media-type"),
        (b"", "text/plain", 422, "web-invalid-body"),
        (b"{", "application/json", 422, "web-invalid-body"),
        (b"\xff", "application/json", 422, "web-invalid-body"),
        (b"[" * 100_000, "application/json", 422, "web-invalid-body"),
        (b"{}", "application/json", 422, "web-invalid-body"),
        (b'{"role": "king", "name": 7, "more": 1}', "application/json; charset=utf-8", 422, "web-invalid-body"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_with_all_that_is_wrong(
    service: Service, token: Token, content: bytes, kind: str, status: int, code: str
) -> None:
    client = service.client(token(Role.ADMINISTRATOR))
    answer = client.post("/api/v1/tokens", content=content, headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    if b"king" in content:
        said = " ".join(error["detail"] for error in answer.json()["errors"])
        for wrong in ("'king'", "7", "more"):
            assert wrong in said


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "61"])
def test_a_wait_has_an_end(service: Service, plane: ControlPlane, token: Token, wait: str) -> None:
    """Issue 4.9: an agent cannot keep the service busy for ever."""
    agent = Principal(Role.AGENT, "agent:hers", "hers")
    record = asking.request(plane, agent, "hers", ["baz"])
    client = service.client(token(Role.AGENT, session="hers"))
    answer = client.get(f"/api/v1/sessions/hers/requests/{record.id}?wait={wait}", timeout=5)
    assert (answer.status_code, answer.json()["code"]) == (400, "web-invalid-query")


def test_a_number_that_no_database_holds_is_refused(service: Service, token: Token) -> None:
    answer = service.client(token(Role.READER)).get(f"/api/v1/audit?before={10**30}")
    assert (answer.status_code, answer.json()["code"]) == (400, "web-invalid-query")


def test_an_agent_has_so_many_requests_under_way_and_keeps_nobody_else_out(
    serve: Serve, plane: ControlPlane, token: Token
) -> None:
    """Issue 4.9: waiting costs no thread, yet a connection, of which there are so many for all."""
    service = serve(agents_requests=2)
    agent = Principal(Role.AGENT, "agent:hers", "hers")
    record = asking.request(plane, agent, "hers", ["baz"])
    client = service.client(token(Role.AGENT, session="hers"))
    waiting = [
        threading.Thread(target=client.get, args=(f"/api/v1/sessions/hers/requests/{record.id}?wait=3",))
        for _ in range(2)
    ]
    for thread in waiting:
        thread.start()
    time.sleep(1)
    answer = client.get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (429, "web-too-many-requests")
    assert answer.headers["retry-after"]
    assert service.client(token(Role.AGENT, session="his")).get("/api/v1/me").status_code == 200
    for thread in waiting:
        thread.join()
    assert client.get("/api/v1/me").status_code == 200


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=1&limit=2", "what=1", "status=lost", "limit=1e3"])
def test_a_query_that_does_not_fit_is_refused(service: Service, token: Token, query: str) -> None:
    answer = service.client(token(Role.READER)).get(f"/api/v1/requests?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "web-invalid-query")


def test_a_defect_is_told_to_the_log_and_not_to_the_client(serve: Serve, log: io.StringIO, token: Token) -> None:
    """Issue 4.8: never a traceback."""
    service = serve()

    def broken(_request: Request) -> None:
        raise RuntimeError("the password is hunter2")

    service.app.router.routes.insert(0, Route("/api/v1/broken", broken))
    answer = service.client(token(Role.READER)).get("/api/v1/broken")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal-defect")
    assert "hunter2" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["content-security-policy"]
    entry = next(line for line in lines(log) if line["message"] == "defect")
    assert "RuntimeError" in entry["traceback"]
    assert answer.json()["instance"].endswith(entry["request-id"]), "the log has it under the id that the client got"


def test_the_log_has_a_line_a_request_with_the_route_and_never_a_token(
    serve: Serve, log: io.StringIO, token: Token
) -> None:
    """Issue 4.9: no token or credential in logs. Issue 4.10: structured logs."""
    text = token(Role.AGENT, session="hers")
    service = serve()
    client = service.client(text)
    answer = client.get("/api/v1/sessions/hers")
    client.get(f"/api/v1/sessions/{text}?secret={text}", headers={"Authorization": f"Bearer {text}x"})
    client.post("/login", data={"token": text})
    logging.getLogger("envdsl.web").error("somebody wrote %s, Authorization: Bearer abcdef", text)
    found = lines(log)
    line = next(item for item in found if item.get("request-id") == answer.headers["x-request-id"])
    assert {key: line[key] for key in ("level", "method", "route", "status", "principal", "role")} == {
        "level": "info",
        "method": "GET",
        "route": "/api/v1/sessions/{session}",
        "status": 200,
        "principal": "agent:hers",
        "role": "agent",
    }
    assert line["ms"] > 0
    assert text not in log.getvalue()
    assert "abcdef" not in log.getvalue()
    assert "somebody wrote envdsl_a_****" in log.getvalue()


def test_forwarded_addresses_count_behind_a_proxy_alone(serve: Serve, token: Token) -> None:
    """Without one, whoever guesses tokens could have a new address for each."""
    from envdsl.web.settings import Rate

    for proxies, last in (((), 429), (("127.0.0.1",), 401)):
        service = serve(proxies=proxies, failures=Rate(per_second=0.01, burst=2))
        wrong = service.client("envdsl_d_" + "1" * 64)
        for number in range(3):
            status = wrong.get("/api/v1/me", headers={"X-Forwarded-For": f"192.0.2.{number}"}).status_code
        assert status == last


@pytest.mark.parametrize("head", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
@pytest.mark.parametrize("kept", [False, True])
def test_who_does_not_come_to_the_end_of_a_head_is_hung_up_on(
    service: Service, monkeypatch: pytest.MonkeyPatch, head: bytes, kept: bool
) -> None:
    """Issue 4.9: connections that say nothing would take all places of a service."""
    monkeypatch.setattr(peer, "HEAD", 0.2)
    monkeypatch.setattr(service.server.config, "timeout_keep_alive", 0.2)
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        if kept:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = HTTPResponse(connection)
            answer.begin()
            assert (answer.status, bool(answer.read())) == (200, True)
        connection.sendall(head)
        assert connection.recv(1) == b"", "the service hangs up"


def test_who_waits_for_an_answer_is_not_hung_up_on(
    service: Service, plane: ControlPlane, token: Token, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer, "HEAD", 0.1)
    record = asking.request(plane, ADMINISTRATOR, "hers", ["foo"])
    client = service.client(token(Role.AGENT, session="hers"))
    for _ in range(2):  # on one connection
        answer = client.get(f"/api/v1/sessions/hers/requests/{record.id}", params={"wait": 0.5})
        assert answer.status_code == 200

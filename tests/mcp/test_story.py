"""An agent lacks a package, asks for it, and imports it: from a real MCP client to the session's real sandbox."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from envdsl.app.control import tokens
from envdsl.app.control.deciding import decide
from envdsl.policy.access import Role
from envdsl.policy.proposal import Choice
from tests.app.control.bench import ADMIN, Bench
from tests.mcp.asking import call, converse
from tests.web.conftest import SETTINGS, running


def over_stdio(bench: Bench, session: str, database: str) -> Any:
    """The transport to ``envdsl mcp`` as a client's configuration starts it."""
    store = str(bench.project.config.store)
    arguments = ["-m", "envdsl", "mcp", session, "--project", str(bench.root), "--store", store]
    environment = {"ENVDSL_DATABASE": database, "UV_CACHE_DIR": os.environ["UV_CACHE_DIR"], "PATH": os.environ["PATH"]}
    return stdio_client(StdioServerParameters(command=sys.executable, args=arguments, env=environment))


def test_over_stdio_without_any_service_the_next_command_sees_the_package(bench: Bench, database_url: str) -> None:
    """Issue 4, done when: from an MCP client's request to an import in that session's sandbox (approved by itself)."""
    bench.session("s")
    assert bench.run("s", "import foo")[0] == 1

    async def story(client: Client) -> Any:
        before = await call(client, action="status")
        answer = await call(client, action="request", packages=["foo==1"], reason="for the report", timeout=60)
        return before, answer, await call(client, action="status")

    before, answer, after = converse(over_stdio(bench, "s", database_url), story)
    assert [item["name"] for item in before["installed"]] == ["bar"]
    assert (answer["status"], answer["packages"], answer["imports"]) == ("ready", ["foo 1"], ["foo"])
    assert [item["name"] for item in after["installed"]] == ["bar", "foo"]
    assert bench.run("s", "import foo; print(foo.__version__)") == (0, "1\n")


@contextmanager
def serving(bench: Bench) -> Iterator[str]:
    """The URL of the MCP endpoint of a real service over the bench's control plane."""
    with (
        tempfile.TemporaryDirectory() as place,
        running(bench.plane, Path(place), replace(SETTINGS, workers=1)) as service,
    ):
        yield f"{service.url}/mcp"


def over_http(url: str, token: str) -> Any:
    client = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(url, http_client=client)


def token_of(bench: Bench, session: str) -> str:
    return tokens.create(bench.plane, ADMIN, role=Role.AGENT, name="the agent", session=session, expires=None)[0]


@pytest.mark.parametrize("outcome", ["approved", "approved by a person", "isolated", "denied", "refused"])
def test_over_http_through_each_outcome(bench: Bench, outcome: str) -> None:
    """Issue 4, done when: through each of the outcomes, on SQLite and on PostgreSQL."""
    package = {"approved": "foo", "isolated": "fresh", "refused": "evil"}.get(outcome, "unlisted")
    bench.session("s")
    bench.session("untouched")
    before = bench.manifest("untouched")

    async def story(client: Client) -> Any:
        answer = await call(client, action="request", packages=[package], reason="I need it", timeout=60)
        if answer["status"] == "pending":
            assert "person" in answer["next"]
            shown = bench.get(answer["id"])
            choice = {"isolated": Choice.ISOLATE, "denied": Choice.DENY}.get(outcome, Choice.APPROVE)
            decide(bench.plane, ADMIN, shown.id, choice, digest=shown.digest, comment="after a look")
            answer = await call(client, action="wait", request=answer["id"], timeout=60)
        return answer

    with serving(bench) as url:
        answer = converse(over_http(url, token_of(bench, "s")), story)
    status, output = bench.run("s", f"import {package}; print('imported')")
    if outcome in ("denied", "refused"):
        assert answer["status"] == outcome
        assert answer["reasons"]
        assert (status, "hint: " in output) == (1, True)
    else:
        assert answer["status"] == "ready"
        assert package in answer["imports"]
        assert (status, output) == (0, "imported\n")
    decided_by = {"approved": "rule", "refused": None}.get(outcome, ADMIN.name)
    assert answer.get("decided-by") == decided_by
    assert bench.manifest("untouched") == before


def test_over_http_nobody_gets_in_without_a_token(light_bench: Bench) -> None:
    """Issue 4.9: the MCP endpoint asks who is there, as every route does."""
    light_bench.session("s")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with serving(light_bench) as url:
        answers = [
            httpx2.post(url, json=message, headers={"Accept": "application/json, text/event-stream", **headers})
            for headers in ({}, {"Authorization": "Bearer envdsl_a_nonsense"})
        ]
    assert [answer.status_code for answer in answers] == [401, 401]

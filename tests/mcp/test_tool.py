"""The tool ``python_env``, as a model meets it."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest
from mcp.client import Client

from envdsl.mcp.server import server
from envdsl.policy.access import Principal, Role
from tests.app.control.bench import ADMIN, Bench, agent, owner
from tests.mcp.asking import call, converse, failure, text_of
from tests.wheels import make_wheel


def of(bench: Bench, principal: Principal) -> Any:
    return server(bench.plane, lambda context: principal)


def test_one_tool_is_offered_and_says_how_it_is_used(light_bench: Bench) -> None:
    """Issue 4.6: one tool with the actions status, request and wait."""

    async def ask(client: Client) -> Any:
        assert client.instructions is not None
        assert "pip cannot install" in client.instructions
        return (await client.list_tools()).tools

    (tool,) = converse(of(light_bench, agent("s")), ask)
    assert tool.name == "python_env"
    assert tool.input_schema["properties"]["action"]["enum"] == ["status", "request", "wait"]
    assert tool.input_schema["required"] == ["action"]
    assert {"packages", "wheels", "reason", "request", "timeout", "session"} < set(tool.input_schema["properties"])


def test_status_is_short_and_says_how_to_import(light_bench: Bench) -> None:
    """Issue 4.6: what is installed, and how to import it."""
    light_bench.session("s")

    async def ask(client: Client) -> Any:
        return await call(client, action="status"), text_of(await client.call_tool("python_env", {"action": "status"}))

    answer, text = converse(of(light_bench, agent("s")), ask)
    assert answer["session"] == "s"
    assert answer["installed"] == [{"name": "bar", "version": "1", "imports": ["bar"], "layer": "core"}]
    assert "Installed (1): bar 1." in text
    assert len(text) < 400


def test_a_wheel_of_the_workspace_is_taken_from_there(light_bench: Bench) -> None:
    """Issue 4.2: uploaded wheels, named by an agent that built one."""
    workspace = light_bench.root.parent / "work"
    wheel = make_wheel(workspace / "dist", "mine", "3")
    (workspace / "link.whl").symlink_to("/etc/passwd")
    light_bench.session("s", workspace=workspace)

    async def ask(client: Client) -> Any:
        asked = await call(client, action="request", wheels=[f"dist/{wheel.name}"], reason="I wrote it", timeout=0)
        refused = await failure(client, action="request", wheels=["link.whl"])
        outside = await failure(client, action="request", wheels=["../project/envdsl.toml"])
        return asked, refused + outside

    asked, refused = converse(of(light_bench, agent("s")), ask)
    assert asked["status"] == "pending"
    light_bench.settle()
    record = light_bench.get(asked["id"])
    assert [item["filename"] for item in record.uploads] == [wheel.name]
    assert (record.reason, record.status, record.requester) == ("I wrote it", "pending", "agent:s")
    assert [item["code"] for item in refused] == ["app-workspace-path", "app-workspace-path"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"action": "request"}, "app-packages-needed"),
        ({"action": "wait"}, "app-request-needed"),
        ({"action": "wait", "request": "req-nowhere"}, "state-unknown-request"),
        ({"action": "status", "session": "other"}, "app-forbidden"),
        ({"action": "request", "session": "other", "packages": ["foo"]}, "app-forbidden"),
    ],
)
def test_what_is_asked_wrongly_is_answered_with_what_to_do(
    light_bench: Bench, arguments: dict[str, Any], code: str
) -> None:
    """Issue 4.9: an agent can neither see nor change another session."""
    light_bench.session("s")
    light_bench.session("other")
    (error,) = converse(of(light_bench, agent("s")), lambda client: failure(client, **arguments))
    assert error["code"] == code
    assert error["instead"]


@pytest.mark.parametrize(
    ("arguments", "message", "instead"),
    [
        ({}, "`action` is missing", '{"action": "status"}'),
        ({"action": "install"}, "`action` has to be status, request or wait", '{"action": "status"}'),
        ({"action": "request", "packages": "rich"}, "`packages` has to be a list of requirements", '["rich>=13"]'),
        ({"action": "request", "packages": [["x"], 7]}, "`packages` has to be a list of requirements", '["rich>=13"]'),
        ({"action": "wait", "timeout": 3600}, "`timeout` has to be a number of seconds from 0 to 60", "20"),
    ],
)
def test_arguments_that_do_not_fit_are_errors_of_ours(
    light_bench: Bench, arguments: dict[str, Any], message: str, instead: str
) -> None:
    """What is wrong, and how it is written: no text of the library that validates."""
    light_bench.session("s")
    (error,) = converse(of(light_bench, agent("s")), lambda client: failure(client, **arguments))
    assert (error["code"], error["message"]) == ("mcp-argument", message)
    assert instead in error["instead"]


def test_a_hint_is_what_the_agent_can_do(light_bench: Bench) -> None:
    """An agent has no command line of envdsl."""
    light_bench.session("s")
    (error,) = converse(of(light_bench, agent("s")), lambda client: failure(client, action="wait", request="req-no"))
    assert error["instead"] == 'call {"action": "status"}: it lists the requests of the session'


def test_who_sees_several_sessions_has_to_say_which(light_bench: Bench) -> None:
    light_bench.session("s")

    async def ask(client: Client) -> Any:
        return await failure(client, action="status"), await call(client, action="status", session="s")

    (error,), answer = converse(of(light_bench, ADMIN), ask)
    assert error["code"] == "app-session-needed"
    assert answer["session"] == "s"


def test_wait_ends_with_its_timeout_and_the_request_stays(light_bench: Bench) -> None:
    """Issue 4.6: wait with a short timeout."""
    light_bench.session("s")

    async def ask(client: Client) -> Any:
        asked = await call(client, action="request", packages=["unlisted"], timeout=0)
        return asked, await call(client, action="wait", request=asked["id"], timeout=0.2)

    asked, waited = converse(of(light_bench, agent("s")), ask)
    assert (asked["id"], asked["status"]) == (waited["id"], waited["status"]) == (asked["id"], "pending")


def test_who_waits_often_keeps_nobody_waiting(light_bench: Bench) -> None:
    """Issue 4.9: an agent cannot take the threads of all others."""
    light_bench.session("s")

    async def ask(client: Client) -> float:
        asked = await call(client, action="request", packages=["unlisted"], timeout=0)
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(partial(call, client, action="wait", request=asked["id"], timeout=30))
            await anyio.sleep(1)
            began = anyio.current_time()
            await call(client, action="status")
            took = anyio.current_time() - began
            group.cancel_scope.cancel()
        return took

    assert converse(of(light_bench, agent("s")), ask) < 10


def test_who_may_only_look_has_no_wheel_taken_in(light_bench: Bench) -> None:
    """Issue 4.9: a reader changes nothing, uploads included."""
    workspace = light_bench.root.parent / "work"
    wheel = make_wheel(workspace, "mine", "3")
    light_bench.session("s", workspace=workspace)
    reader = Principal(Role.READER, "monitor")
    (error,) = converse(
        of(light_bench, reader), lambda client: failure(client, action="request", session="s", wheels=[wheel.name])
    )
    assert error["code"] == "app-forbidden"
    assert not list((light_bench.project.store.layout.root / "uploads").glob("*/*"))


def test_an_owner_learns_of_no_session_that_is_called_alike(light_bench: Bench) -> None:
    """Issue 4.9: another session is not seen."""
    light_bench.session("secret-plans")
    (error,) = converse(
        of(light_bench, owner("alice")), lambda client: failure(client, action="status", session="secret-plan")
    )
    assert error["code"] == "session-unknown"
    assert "plans" not in str(error)

"""A model's side: calls of the tool, and what came back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from mcp.client import Client
from mcp_types import CallToolResult, TextContent

from tests import loops

Conversation = Callable[[Client], Awaitable[Any]]


def converse(server: Any, conversation: Conversation, **more: Any) -> Any:
    """What ``conversation`` returns, held with ``server``: a server of this process, a transport, or a URL."""

    async def held() -> Any:
        with anyio.fail_after(240):
            async with Client(server, **more) as client:
                return await conversation(client)

    return loops.run(held)


async def call(client: Client, **arguments: Any) -> dict[str, Any]:
    """The structured answer of ``python_env``, which must not be an error."""
    result = await client.call_tool("python_env", arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    return result.structured_content


async def failure(client: Client, **arguments: Any) -> list[dict[str, Any]]:
    """The errors of a call that must be one."""
    result = await client.call_tool("python_env", arguments)
    assert isinstance(result, CallToolResult)
    assert result.is_error
    assert result.structured_content is not None
    errors: list[dict[str, Any]] = result.structured_content["errors"]
    assert all(item["message"] in text_of(result) for item in errors)
    return errors


def text_of(result: CallToolResult) -> str:
    return "".join(item.text for item in result.content if isinstance(item, TextContent))

"""Hints for callers who have no command line: agents over MCP, programs over HTTP.

Errors are raised for all faces alike, and many of their hints name a command. A face without one says what its callers
can do instead, by the error's code; what only a command does is named as what the host's side can do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from envdsl.app.control.answers import Refusal, RequestAnswer, StatusAnswer

Ways = Mapping[str, str]  # by an error's code: what the callers of a face can do

_COMMAND = re.compile(r"(?<![\w.@/-])envdsl [a-z]|(?<![\w-])--[a-z]")


def elsewhere(code: str, hint: str | None, ways: Ways) -> str | None:
    """``hint`` of the error ``code`` for somebody who has ``ways`` and no command line."""
    if code in ways:
        return ways[code]
    if hint is None or not _COMMAND.search(hint):
        return hint
    return f"this takes somebody on the host: {hint}"


def in_request(answer: RequestAnswer, ways: Ways) -> RequestAnswer:
    """``answer`` with the hints of its reasons so; the same one where nothing changes."""
    reasons = tuple(_refusal(reason, ways) for reason in answer.reasons)
    return answer if reasons == answer.reasons else replace(answer, reasons=reasons)


def in_status(answer: StatusAnswer, ways: Ways) -> StatusAnswer:
    """The same for all requests of a status."""
    return replace(answer, requests=tuple(in_request(request, ways) for request in answer.requests))


def _refusal(reason: Refusal, ways: Ways) -> Refusal:
    return replace(reason, instead=elsewhere(reason.code, reason.instead, ways))

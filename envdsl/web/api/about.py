"""The service itself: its document, its caller, its health."""

from __future__ import annotations

from typing import Any

from envdsl.policy.encoding import to_json
from envdsl.web.api.endpoint import Call


def openapi(_call: Call) -> dict[str, Any]:
    from envdsl.web.openapi import document

    return document()


def me(call: Call) -> dict[str, Any]:
    value: dict[str, Any] = to_json(call.principal)
    return value


def health(call: Call) -> dict[str, Any]:
    from envdsl.web.health import health as look

    return look(call.plane)

"""Tokens: made, listed, revoked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from envdsl.policy.access import Role
from envdsl.web.api import represent
from envdsl.web.api.endpoint import Call


def listing(call: Call) -> dict[str, Any]:
    from envdsl.app.control import tokens

    return {"tokens": [represent.token(record) for record in tokens.listing(call.plane, call.principal)]}


def create(call: Call) -> dict[str, Any]:
    from envdsl.app.control import tokens

    lifetime = call.body.get("lifetime")
    text, record = tokens.create(
        call.plane,
        call.principal,
        role=Role(call.body["role"]),
        name=call.body["name"],
        session=call.body.get("session"),
        expires=None if lifetime is None else timedelta(seconds=lifetime),
    )
    return {"token": text, "record": represent.token(record)}


def revoke(call: Call) -> dict[str, Any]:
    from envdsl.app.control import tokens

    return represent.token(tokens.revoke(call.plane, call.principal, call.path["token"]))

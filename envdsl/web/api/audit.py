"""The audit log, for readers."""

from __future__ import annotations

from typing import Any

from envdsl.state.chain import to_json  # as it is hashed, so that whoever reads can verify
from envdsl.web.api.endpoint import Call


def listing(call: Call) -> dict[str, Any]:
    from envdsl.app.control import auditing

    query = call.query
    limit, session, before = query.get("limit", 100), query.get("session"), query.get("before")
    events = auditing.newest(call.plane, call.principal, limit=limit, session=session, before=before)
    return {"events": [to_json(event) for event in events]}


def verify(call: Call) -> dict[str, Any]:
    from envdsl.app.control import auditing

    first, last = call.query.get("first", 1), call.query.get("last")
    return auditing.verify(call.plane, call.principal, first=first, last=last).to_json()

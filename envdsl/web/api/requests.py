"""Requests for those who decide on them."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action
from envdsl.policy.proposal import Choice
from envdsl.state.records import Status
from envdsl.web.api import represent
from envdsl.web.api.endpoint import Call
from envdsl.web.authorisation import require_session


def listing(call: Call) -> dict[str, Any]:
    from envdsl.app.control import asking

    session = call.query.get("session")
    if session is not None:
        require_session(call.plane, call.principal, Action.SEE_SESSION, session)
    statuses = [Status(call.query["status"])] if "status" in call.query else None
    limit = call.query.get("limit", 100)
    found = asking.listing(
        call.plane,
        call.principal,
        session=session,
        statuses=statuses,
        before=call.query.get("before-request"),
        limit=limit,
    )
    return {"requests": [represent.request(record) for record in found]}


def show(call: Call) -> dict[str, Any]:
    return represent.request(call.request)


def card(call: Call) -> Any:
    """As JSON, or as Markdown for who asks for ``text/markdown``."""
    from envdsl.app.control.card import card as make

    made = make(call.plane, call.request)
    kind = preferred(call.accept, ("application/json", "text/markdown"))
    return made.to_json() if kind == "application/json" else Response(made.to_markdown(), media_type=kind)


def decide(call: Call) -> dict[str, Any]:
    from envdsl.app.control import deciding

    record = deciding.decide(
        call.plane,
        call.principal,
        call.request.id,
        Choice(call.body["choice"]),
        digest=call.body.get("digest"),
        comment=call.body.get("comment", ""),
    )
    return represent.request(record)


def promote(call: Call) -> dict[str, Any]:
    from envdsl.app.control import promoting

    written = promoting.promote(call.plane, call.principal, call.request.id, name=call.body.get("name"))
    root = call.plane.project.config.root
    return {"paths": [path.relative_to(root).as_posix() for path in written]}


def preferred(accept: str, offered: tuple[str, ...]) -> str:
    """Which of ``offered`` an Accept header likes best, the first one where it does not care (RFC 9110, 12.5.1).

    Raises :class:`EnvdslError` ``web-not-acceptable``.
    """
    ranges = [_range(item) for item in accept.split(",")]

    def quality(kind: str) -> float:
        main = kind.partition("/")[0]
        for pattern in (kind, f"{main}/*", "*/*"):
            found = [value for name, value in ranges if name == pattern]
            if found:
                return max(found)
        return 0.0

    best = max(offered, key=quality)
    if quality(best) <= 0:
        raise EnvdslError.of(
            "web-not-acceptable", f"this can be had as {' or '.join(offered)}", exit_status=ExitStatus.USAGE
        )
    return best


def _range(text: str) -> tuple[str, float]:
    name, *parameters = [part.strip() for part in text.split(";")]
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name.lower(), float(parameter[2:])
            except ValueError:
                return name.lower(), 0.0
    return name.lower(), 1.0

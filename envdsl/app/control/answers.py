"""What ``python_env`` answers: short, structured, made for a model to read.

One implementation stands behind the Python API, the command line, HTTP and MCP; all of them give these records,
as JSON with the same names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

OPEN = ("pending", "approved", "isolated", "building")  # statuses of requests that have not ended


@dataclass(frozen=True, slots=True)
class Installed:
    """A distribution that the session's next command can import. ``imports`` are its import names."""

    name: str
    version: str
    imports: tuple[str, ...]
    layer: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was refused, and what to do instead."""

    code: str
    message: str
    package: str | None = None
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """How a request stands.

    ``status`` is one of :class:`envdsl.state.records.Status`, or ``present`` where there was nothing to do. ``next`` is
    one sentence: what the asker should do now. ``imports`` are the names that can be imported once it is ready.
    """

    id: str | None
    session: str
    status: str
    requirements: tuple[str, ...]
    packages: tuple[str, ...]  # "name version" of what the layer brings
    imports: tuple[str, ...]
    reasons: tuple[Refusal, ...]
    decided_by: str | None
    next: str


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    """What a session has: ``layers`` are bound names with ids, ``requests`` those that have not ended and the latest
    that have."""

    session: str
    python: str
    layers: tuple[str, ...]
    installed: tuple[Installed, ...]
    requests: tuple[RequestAnswer, ...]
    next: str


def to_json(answer: StatusAnswer | RequestAnswer) -> dict[str, Any]:
    """The answer as JSON: kebab-case keys, and nothing that is empty, since each word costs a model's attention."""
    return _object(answer)


def to_text(answer: StatusAnswer | RequestAnswer) -> str:
    """The answer as a few lines, for a model or a person."""
    return "\n".join(_status_lines(answer) if isinstance(answer, StatusAnswer) else _request_lines(answer))


def _object(record: Any) -> dict[str, Any]:
    # Not `dataclasses.asdict`, which copies every text: a status is asked for often, and holds hundreds of them.
    values = ((name, getattr(record, name)) for name in _names(record.__class__))
    return {name.replace("_", "-"): _value(value) for name, value in values if value not in (None, "", ())}


def _value(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return value if isinstance(value[0], str) else tuple(map(_object, value))


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _status_lines(answer: StatusAnswer) -> Iterator[str]:
    yield f"Session {answer.session}: Python {answer.python}, layers {', '.join(answer.layers)}."
    yield f"Installed ({len(answer.installed)}): {', '.join(map(_installed, answer.installed)) or 'nothing'}."
    for request in answer.requests:
        yield from _request_lines(request) if request.status in OPEN else [_request_line(request)]
    yield answer.next


def _installed(item: Installed) -> str:
    same = len(item.imports) == 1 and item.imports[0] == item.name
    return f"{item.name} {item.version}" + ("" if same or not item.imports else f" (import {', '.join(item.imports)})")


def _request_line(answer: RequestAnswer) -> str:
    decided = f", decided by {answer.decided_by}" if answer.decided_by else ""
    return f"{answer.id or 'No request'}: {' '.join(answer.requirements)}: {answer.status}{decided}."


def _request_lines(answer: RequestAnswer) -> Iterator[str]:
    yield _request_line(answer)
    if answer.packages:
        yield f"  brings {', '.join(answer.packages)}"
    if answer.imports:
        yield f"  import {', '.join(answer.imports)}"
    for reason in answer.reasons:
        stop = "" if reason.message.endswith((".", "!", "?")) else "."
        yield f"  {reason.message}{stop}" + (f" Instead: {reason.instead}" if reason.instead else "")
    yield f"  {answer.next}"

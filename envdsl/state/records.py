"""Rows as frozen records: what the room ``state`` takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """The states of a request. ``docs/policy.md`` draws the machine; :mod:`envdsl.state.machine` is its table."""

    PENDING = "pending"  # being resolved (no classification yet), or waiting for a person
    APPROVED = "approved"  # by rule or by a person; a worker will build it
    ISOLATED = "isolated"  # a person chose the iso layer; a worker will build it
    BUILDING = "building"
    READY = "ready"
    FAILED = "failed"
    DENIED = "denied"  # by a person
    REFUSED = "refused"  # by rule
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def ended(self) -> bool:
        return self in _ENDED


_ENDED = frozenset({Status.READY, Status.FAILED, Status.DENIED, Status.REFUSED, Status.CANCELLED, Status.EXPIRED})


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decided, what, when, over which digest. ``by`` is ``rule`` for the catalog."""

    by: str
    choice: str  # approve, isolate, deny
    digest: str | None
    at: datetime
    comment: str = ""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A row of ``exec_env_requests``.

    ``store`` identifies the store that the session lives in. ``fingerprint`` (blake3 of the session's binding and the
    normalised need) makes asking twice one request: at most one row that has not ended has it. ``classification`` and
    ``proposal`` are JSON of :mod:`envdsl.policy.proposal`, None until a worker has resolved it. ``digest`` and ``lock``
    are the plan to be built. ``worker`` holds the row until ``lease``; a row whose lease is over is picked up again.
    """

    id: str
    store: str
    session: str
    requester: str
    reason: str
    requirements: tuple[str, ...]
    uploads: tuple[Mapping[str, Any], ...]
    fingerprint: str
    status: Status
    classification: Mapping[str, Any] | None
    proposal: Mapping[str, Any] | None
    digest: str | None
    decision: Decision | None
    layer: str | None
    problem: Mapping[str, Any] | None  # why it failed: code, message, hint
    attempts: int
    worker: str | None
    lease: datetime | None
    created: datetime
    updated: datetime
    expires: datetime | None
    key: str | None = None  # the asker's own idempotency key


@dataclass(frozen=True, slots=True)
class BindingRecord:
    """A row of ``exec_env_bindings``: what a session had from ``at`` until its next row.

    ``number`` counts a session's bindings from 1. ``cause`` is ``create``, ``request``, ``rebase`` or ``undo``;
    ``request`` the one that led to it. ``layers`` are name, id, key, tree hash and lock digest of each, in order;
    ``manifest`` is the blake3 of manifest.json.
    """

    store: str
    session: str
    number: int
    cause: str
    request: str | None
    actor: str
    layers: tuple[Mapping[str, Any], ...]
    manifest: str
    at: datetime


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """A row of ``audit_events``. ``hash`` is the blake3 of the canonical form of all other fields, ``previous`` (the
    hash of the row before; 64 zeros for the first) included."""

    number: int
    at: datetime
    actor: str
    action: str  # request.created, request.approved, binding.replaced, token.created …
    session: str | None
    subject: str | None  # the id of a request, token …
    data: Mapping[str, Any]
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A row of ``access_tokens``; the token itself is nowhere, ``digest`` is its sha256."""

    id: str
    role: str
    name: str
    session: str | None
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    used: datetime | None  # to the minute
    store: str = ""  # it opens nothing in another store


@dataclass(frozen=True, slots=True)
class WebhookRecord:
    """A row of ``webhook_events``, the outbox: what is to be told, and how that went.

    ``due`` is when to try next, None once it is ``delivered`` or given up; ``problem`` says why the last try failed.
    """

    id: str
    store: str
    event: str
    payload: Mapping[str, Any]
    created: datetime
    due: datetime | None
    attempts: int
    delivered: datetime | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A row of ``exec_env_workers``: a worker that lives says so every few seconds."""

    name: str
    store: str
    started: datetime
    seen: datetime

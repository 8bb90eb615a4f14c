"""A database of each kind, and what most tests ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from envdsl.state.database import Database
from envdsl.state.records import RequestRecord, Status
from envdsl.state.transaction import Transaction

STORE = "0" * 32


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(database_url: str, clock: Clock) -> Iterator[Database]:
    with Database.open(database_url, clock=clock) as opened:
        yield opened


Ask = Callable[..., RequestRecord]


def ask(tx: Transaction, need: str = "foo", *, session: str = "s", **more: Any) -> RequestRecord:
    """A request for ``need``, new or the same as before."""
    fields = {
        "store": STORE,
        "session": session,
        "requester": f"agent:{session}",
        "reason": "to plot",
        "requirements": [need],
        "uploads": [],
        "fingerprint": need,
    }
    return tx.requests.ask(**(fields | more))[0]


def approved(tx: Transaction, need: str = "foo", *, session: str = "s") -> RequestRecord:
    """A request that waits for a worker to build it."""
    request = ask(tx, need, session=session)
    return tx.requests.transition(
        request.id, {Status.PENDING}, Status.APPROVED, actor="rule", classification={"verdict": "approved"}, digest="d"
    )


def actions(tx: Transaction) -> list[str]:
    """What the audit log says was done, in order."""
    return [event.action for event in tx.audit.range()]

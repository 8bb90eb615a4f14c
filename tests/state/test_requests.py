"""Asking, claiming, leases, transitions: what one transaction promises."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from envdsl.errors import EnvdslError
from envdsl.state.audit import Audit
from envdsl.state.database import Database
from envdsl.state.ids import new_id
from envdsl.state.records import Decision, Status
from envdsl.state.requests import Requests
from envdsl.state.tables import requests
from tests.state.conftest import STORE, Clock, actions, approved, ask


def test_the_same_need_is_one_request_until_it_has_ended(database: Database) -> None:
    """Issue 4.3: same request twice, one build."""
    with database.transaction() as tx:
        first, again, other = ask(tx), ask(tx), ask(tx, "bar")
        assert first == again
        assert first.id != other.id
        elsewhere = ask(tx, session="t")
        assert elsewhere.id != first.id
        tx.requests.transition(first.id, {Status.PENDING}, Status.CANCELLED, actor="me")
        assert ask(tx).id not in (first.id, other.id)
        assert actions(tx).count("request.created") == 4


def test_a_key_that_comes_while_the_same_need_is_open_is_kept_with_it(database: Database) -> None:
    """A retry after an answer that was lost asks for nothing twice, whoever asked first."""
    with database.transaction() as tx:
        first = ask(tx)
        assert ask(tx, key="k1").id == first.id
        assert tx.requests.get(first.id).updated == first.updated  # it says nothing new
        tx.requests.transition(first.id, [Status.PENDING], Status.CANCELLED, actor="alice")
        assert ask(tx, key="k1").id == first.id
        assert ask(tx).id != first.id


def test_a_key_of_the_asker_is_the_same_request_for_ever(database: Database) -> None:
    """A retry whose answer was lost asks for nothing twice, even when the request has ended meanwhile."""
    with database.transaction() as tx:
        first = ask(tx, key="k1")
        tx.requests.transition(first.id, {Status.PENDING}, Status.REFUSED, actor="rule")
        again = ask(tx, key="k1", fingerprint="the session is bound to something else now")
        assert again.id == first.id
        assert again.status is Status.REFUSED
        assert ask(tx, session="t", key="k1").id != first.id
        assert ask(tx, key="k2").id != first.id
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        ask(tx, "bar", key="k1")
    assert raised.value.code == "state-key-reused"


def test_the_database_itself_has_one_open_request_for_a_need(database: Database) -> None:
    """Also against a writer that looks at nothing."""
    with database.transaction() as tx:
        values = ask(tx)
    row = {
        "id": "req-2",
        "store": values.store,
        "session": values.session,
        "requester": "a",
        "reason": "",
        "requirements": [],
        "uploads": [],
        "fingerprint": values.fingerprint,
        "status": "approved",
        "attempts": 0,
        "created": values.created,
        "updated": values.created,
    }
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        tx.write(insert(requests).values(row))
    assert raised.value.code == "state-database"
    assert isinstance(raised.value.__context__, IntegrityError)
    with pytest.raises(EnvdslError), database.transaction() as tx:
        tx.write(insert(requests).values(row | {"fingerprint": "other", "status": "nonsense"}))
    with database.transaction() as tx:
        tx.write(insert(requests).values(row | {"status": "ready"}))  # ended: no matter


def test_ids_sort_by_time_and_are_never_the_same(clock: Clock) -> None:
    ids = []
    for _ in range(50):
        ids.append(new_id("req", clock.now))
        clock.forward(milliseconds=1)
    assert ids == sorted(ids)
    assert len({new_id("req", clock.now) for _ in range(1000)}) == 1000
    assert all(len(item) == 30 and item.startswith("req-01") for item in ids)


def test_a_worker_resolves_and_what_needs_a_person_waits(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        request = ask(tx)
        claimed = tx.requests.claim("w1", 60, STORE)
        assert claimed is not None
        assert (claimed.id, claimed.status, claimed.worker, claimed.attempts) == (request.id, Status.PENDING, "w1", 1)
        assert claimed.lease == clock.now + timedelta(seconds=60)
        assert tx.requests.claim("w2", 60, STORE) is None
        waiting = tx.requests.transition(
            request.id,
            {Status.PENDING},
            Status.PENDING,
            actor="w1",
            holder="w1",
            classification={"verdict": "needs-person"},
            proposal={"plan": 1},
            digest="d1",
        )
        assert (waiting.worker, waiting.lease, waiting.attempts, waiting.digest) == (None, None, 0, "d1")
        assert tx.requests.claim("w2", 60, STORE) is None
        decision = Decision("alice", "approve", "d1", clock.now, "fine")
        decided = tx.requests.transition(
            request.id, {Status.PENDING}, Status.APPROVED, actor="alice", decision=decision
        )
        assert decided.decision == decision
        building = tx.requests.claim("w2", 60, STORE)
        assert building is not None
        assert (building.status, building.attempts, building.proposal) == (Status.BUILDING, 1, {"plan": 1})
        ready = tx.requests.transition(
            request.id, {Status.BUILDING}, Status.READY, actor="w2", holder="w2", layer="x-abc"
        )
        assert (ready.status, ready.layer, ready.worker) == (Status.READY, "x-abc", None)
        assert actions(tx) == [
            "request.created",
            "request.waiting",
            "request.approved",
            "request.building",
            "request.ready",
        ]
        approval = list(tx.audit.range())[2]
    assert (approval.actor, approval.subject, approval.session) == ("alice", request.id, "s")
    assert approval.data["decision"] == {"by": "alice", "choice": "approve", "digest": "d1", "comment": "fine"}


def test_the_oldest_comes_first_and_only_from_the_workers_own_store(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        foreign = ask(tx, "foo", store="1" * 32)
    clock.forward(seconds=1)
    with database.transaction() as tx:
        first = approved(tx, "first")
    clock.forward(seconds=1)
    with database.transaction() as tx:
        second = ask(tx, "second")
        taken = [tx.requests.claim("w", 60, STORE) for _ in range(3)]
        assert [item.id if item else None for item in taken] == [first.id, second.id, None]
        other = tx.requests.claim("w", 60, "1" * 32)
        assert other is not None
        assert other.id == foreign.id


def test_a_worker_that_died_is_followed_by_another_when_its_lease_is_over(database: Database, clock: Clock) -> None:
    """Issue 4.3: a crashed builder's request is picked up again."""
    with database.transaction() as tx:
        request = approved(tx)
        assert tx.requests.claim("w1", 60, STORE) is not None
    clock.forward(seconds=59)
    with database.transaction() as tx:
        assert tx.requests.claim("w2", 60, STORE) is None
        tx.requests.renew(request.id, "w1", 60)
    clock.forward(seconds=59)
    with database.transaction() as tx:
        assert tx.requests.claim("w2", 60, STORE) is None
    clock.forward(seconds=1)
    with database.transaction() as tx:
        again = tx.requests.claim("w2", 60, STORE)
        assert again is not None
        assert (again.id, again.status, again.worker, again.attempts) == (request.id, Status.BUILDING, "w2", 2)
        taken_over = tx.audit.newest(limit=1)[0]
        assert (taken_over.action, taken_over.data["from-worker"]) == ("request.taken-over", "w1")
    # Whoever was only slow finds out before it changes anything.
    acts: list[Callable[[Requests], object]] = [
        lambda requests: requests.renew(request.id, "w1", 60),
        lambda requests: requests.release(request.id, "w1"),
        lambda requests: requests.transition(request.id, {Status.BUILDING}, Status.READY, actor="w1", holder="w1"),
    ]
    for act in acts:
        with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
            act(tx.requests)
        assert raised.value.code == "state-lease-lost"
    with database.transaction() as tx:
        tx.requests.transition(request.id, {Status.BUILDING}, Status.READY, actor="w2", holder="w2")


def test_a_slow_worker_whose_lease_is_over_may_finish_where_nobody_else_took_over(
    database: Database, clock: Clock
) -> None:
    with database.transaction() as tx:
        request = approved(tx)
        tx.requests.claim("w1", 60, STORE)
    clock.forward(seconds=600)
    with database.transaction() as tx:
        done = tx.requests.transition(request.id, {Status.BUILDING}, Status.READY, actor="w1", holder="w1")
    assert done.status is Status.READY


def test_a_request_that_was_handed_back_comes_again_after_its_delay(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        request = approved(tx)
        tx.requests.claim("w1", 60, STORE)
        tx.requests.release(request.id, "w1", delay_seconds=15)
        assert tx.requests.claim("w1", 60, STORE) is None
    clock.forward(seconds=15)
    with database.transaction() as tx:
        again = tx.requests.claim("w2", 60, STORE)
        assert again is not None
        assert (again.attempts, again.status) == (2, Status.BUILDING)
        tx.requests.release(request.id, "w2")
        assert tx.requests.claim("w3", 60, STORE) is not None


def test_one_decision_wins(database: Database) -> None:
    """Issue 4.7."""
    with database.transaction() as tx:
        request = ask(tx)
        tx.requests.transition(request.id, {Status.PENDING}, Status.DENIED, actor="alice")
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        tx.requests.transition(request.id, {Status.PENDING}, Status.APPROVED, actor="bob")
    assert raised.value.code == "state-conflict"
    assert raised.value.diagnostics[0].details["status"] == "denied"


def test_what_was_decided_does_not_outlive_another_plan(database: Database, clock: Clock) -> None:
    """A request that resolves to something else goes back, without its decision and without its digest."""
    with database.transaction() as tx:
        request = ask(tx)
        decision = Decision("alice", "approve", "d1", clock.now)
        tx.requests.transition(request.id, {Status.PENDING}, Status.APPROVED, actor="alice", decision=decision)
        tx.requests.claim("w", 60, STORE)
        back = tx.requests.transition(
            request.id,
            {Status.BUILDING},
            Status.PENDING,
            actor="w",
            holder="w",
            classification=None,
            proposal=None,
            digest=None,
            decision=None,
        )
        assert (back.decision, back.digest, back.classification) == (None, None, None)
        resolving = tx.requests.claim("w", 60, STORE)
        assert resolving is not None
        assert resolving.status is Status.PENDING


def test_what_nobody_decides_expires_and_what_is_being_built_does_not(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        soon = clock.now + timedelta(hours=1)
        waiting = ask(tx, "waiting", expires=soon)
        tx.requests.transition(
            waiting.id, {Status.PENDING}, Status.PENDING, actor="w", classification={"verdict": "needs-person"}
        )
        building = ask(tx, "building", expires=soon)
        tx.requests.transition(building.id, {Status.PENDING}, Status.APPROVED, actor="rule")
        tx.requests.claim("w", 7200, STORE)
        resolving = ask(tx, "resolving", expires=soon)
        tx.requests.claim("w", 7200, STORE)
        for_ever = ask(tx, "for ever")
        assert tx.requests.expire(STORE) == []
    clock.forward(hours=1)
    with database.transaction() as tx:
        assert [item.id for item in tx.requests.expire(STORE)] == [waiting.id]
        assert tx.requests.expire(STORE) == []
        assert tx.requests.get(building.id).status is Status.BUILDING
        assert tx.requests.get(resolving.id).status is Status.PENDING
        assert tx.requests.get(for_ever.id).status is Status.PENDING
        assert tx.audit.newest(limit=1)[0].action == "request.expired"


def test_an_expired_request_is_not_claimed_before_it_is_swept(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        ask(tx, expires=clock.now + timedelta(seconds=1))
    clock.forward(seconds=1)
    with database.transaction() as tx:
        assert tx.requests.claim("w", 60, STORE) is None


def test_whether_there_is_work_is_known_without_writing(database: Database, clock: Clock) -> None:
    """As :meth:`claim` and :meth:`expire` would find it."""

    def due() -> bool:
        with database.reading() as tx:
            return tx.requests.any_due(STORE)

    assert not due()
    with database.transaction() as tx:
        request = ask(tx, expires=clock.now + timedelta(hours=1))
    assert due()
    with database.reading() as tx:
        assert not tx.requests.any_due("1" * 32)
    with database.transaction() as tx:
        assert tx.requests.claim("w", 60, STORE) is not None
    assert not due()
    clock.forward(seconds=60)
    assert due()
    with database.transaction() as tx:
        tx.requests.transition(
            request.id, {Status.PENDING}, Status.PENDING, actor="w", classification={"verdict": "needs-person"}
        )
    assert not due()
    clock.forward(hours=1)
    assert due(), "nobody decided in time"
    with database.transaction() as tx:
        tx.requests.expire(STORE)
    assert not due()


@pytest.mark.parametrize("fails", ["audit", "after"])
def test_a_transition_and_its_audit_row_are_there_together_or_not_at_all(
    database: Database, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Issue 4.3: each transition is one transaction with its audit row."""
    with database.transaction() as tx:
        request = approved(tx)
    with database.reading() as tx:
        before = (tx.requests.get(request.id), tx.audit.head())

    def broken(*_: Any, **__: Any) -> None:
        raise OSError("the machine goes down here")

    def try_it(act: str) -> None:
        with database.transaction() as tx:
            if act == "claim":
                tx.requests.claim("w", 60, STORE)
            elif act == "transition":
                tx.requests.transition(request.id, {Status.APPROVED}, Status.CANCELLED, actor="me")
            else:
                ask(tx, "another")
            if fails == "after":
                broken()

    for act in ("claim", "transition", "ask"):
        with monkeypatch.context() as patch:
            if fails == "audit":
                patch.setattr(Audit, "append", broken)
            with pytest.raises(OSError, match="goes down"):
                try_it(act)
        with database.reading() as tx:
            assert (tx.requests.get(request.id), tx.audit.head()) == before
            assert len(tx.requests.list(STORE)) == 1


def test_listing_is_newest_first_by_session_and_state_and_page_by_page(database: Database, clock: Clock) -> None:
    ids = []
    for number in range(6):
        with database.transaction() as tx:
            ids.append(ask(tx, f"n{number}", session="st"[number % 2]).id)
        clock.forward(seconds=1)
    with database.transaction() as tx:
        tx.requests.transition(ids[5], {Status.PENDING}, Status.DENIED, actor="me")
    with database.reading() as tx:
        newest = list(reversed(ids))
        assert [item.id for item in tx.requests.list(STORE)] == newest
        assert [item.id for item in tx.requests.list(STORE, limit=2)] == newest[:2]
        assert [item.id for item in tx.requests.list(STORE, limit=2, before=newest[1])] == newest[2:4]
        assert [item.id for item in tx.requests.list(STORE, sessions=["s"])] == [ids[4], ids[2], ids[0]]
        assert [item.id for item in tx.requests.list(STORE, statuses=[Status.DENIED])] == [ids[5]]
        assert tx.requests.list(STORE, sessions=[]) == []
        assert tx.requests.list("1" * 32) == []
        counts = tx.requests.counts(STORE)
        assert (counts[Status.PENDING], counts[Status.DENIED], counts[Status.READY]) == (5, 1, 0)


def test_a_request_that_is_not_there_is_said(database: Database) -> None:
    with database.reading() as tx:
        assert tx.requests.find("req-none") is None
        with pytest.raises(EnvdslError) as raised:
            tx.requests.get("req-none")
    assert raised.value.code == "state-unknown-request"

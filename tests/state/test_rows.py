"""Bindings, owners, tokens, the outbox and workers."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import text

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.state.database import Database
from envdsl.state.records import BindingRecord
from envdsl.state.transaction import Transaction
from envdsl.state.webhooks import Undelivered
from tests.state.conftest import STORE, Clock, actions, ask

LAYERS = [{"name": "office", "id": "base-1", "tree-hash": "a"}, {"name": "x", "id": "x-1", "tree-hash": "b"}]


def bind(
    tx: Transaction, manifest: str, *, cause: str = "rebase", session: str = "s", request: str | None = None
) -> BindingRecord:
    return tx.bindings.append(
        store=STORE, session=session, cause=cause, actor="w", layers=LAYERS, manifest=manifest, request=request
    )


def test_bindings_keep_what_a_session_had_when(database: Database, clock: Clock) -> None:
    """Issue 4.4: bindings keep history."""
    with database.transaction() as tx:
        request = ask(tx)
        assert tx.bindings.latest(STORE, "s") is None
        first = bind(tx, "m1", cause="create")
    clock.forward(minutes=1)
    with database.transaction() as tx:
        second = bind(tx, "m2", cause="request", request=request.id)
        bind(tx, "m9", session="other")
        assert tx.bindings.history(STORE, "s") == [second, first]
        assert tx.bindings.latest(STORE, "s") == second
        assert tx.bindings.get(STORE, "s", 1) == first
        assert tx.bindings.get(STORE, "s", 3) is None
        assert tx.bindings.history("1" * 32, "s") == []
        event = tx.audit.newest(limit=1, session="s")[0]
    assert (first.number, second.number, second.at - first.at) == (1, 2, timedelta(minutes=1))
    assert second.layers == tuple(LAYERS)
    assert (event.action, event.subject, event.data["layers"]) == ("binding.request", request.id, ["base-1", "x-1"])


def test_a_binding_that_is_written_twice_is_one(database: Database) -> None:
    """A worker that died after it may repeat it."""
    with database.transaction() as tx:
        request = ask(tx)
        first = bind(tx, "m1", cause="request", request=request.id)
    with database.transaction() as tx:
        assert bind(tx, "m1", cause="request", request=request.id) == first
        assert actions(tx).count("binding.request") == 1
        assert bind(tx, "m1", cause="undo").number == 2


def test_a_binding_names_a_request_that_there_is(database: Database) -> None:
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        bind(tx, "m1", cause="request", request="req-none")
    assert raised.value.code == "state-database"


def test_a_session_is_given_to_an_owner_and_forgotten(database: Database) -> None:
    with database.transaction() as tx:
        assert tx.sessions.owner(STORE, "s") is None
        tx.sessions.give(STORE, "s", "alice", actor="root")
        tx.sessions.give(STORE, "s", "alice", actor="root")
        tx.sessions.give(STORE, "t", "alice", actor="root")
        assert tx.sessions.owned_by(STORE, "alice") == ["s", "t"]
        tx.sessions.give(STORE, "s", "bob", actor="alice")
        assert tx.sessions.owners(STORE) == {"s": "bob", "t": "alice"}
        tx.sessions.remove(STORE, "s", actor="bob")
        tx.sessions.remove(STORE, "s", actor="bob")
        assert tx.sessions.owner(STORE, "s") is None
        assert actions(tx) == ["session.owned", "session.owned", "session.owned", "session.removed"]
        assert list(tx.audit.range())[2].data == {"store": STORE, "owner": "bob", "before": "alice"}


@pytest.mark.parametrize(("role", "letter"), [("agent", "a"), ("owner", "o"), ("administrator", "d"), ("reader", "r")])
def test_a_token_opens_what_it_is_for_and_stands_nowhere(
    database: Database, clock: Clock, role: str, letter: str
) -> None:
    """Issue 4.9: tokens hashed at rest."""
    session = "s" if role == "agent" else None
    with database.transaction() as tx:
        token, record = tx.tokens.create(store=STORE, role=role, name="n", session=session, actor="root")
        assert re.fullmatch(rf"envdsl_{letter}_[0-9a-f]{{64}}", token)
        assert tx.tokens.find(token, store=STORE) == record
        assert (record.role, record.session, record.created) == (role, session, clock.now)
        for table in ("access_tokens", "audit_events"):
            rows = tx.read(text(f"SELECT * FROM {table}")).all()
            assert rows
            assert token not in str(rows)
            assert token.rpartition("_")[2] not in str(rows)


def test_what_is_no_token_of_this_store_opens_nothing(database: Database) -> None:
    with database.transaction() as tx:
        token, _ = tx.tokens.create(store=STORE, role="reader", name="n", actor="root")
        assert tx.tokens.find(token, store="1" * 32) is None
        for wrong in (token[:-1], f"{token}0", token.upper(), token.replace("_r_", "_d_"), "", "\0", "envdsl_r_", "é"):
            assert tx.tokens.find(wrong, store=STORE) is None
            assert tx.tokens.find(f"{token}\n", store=STORE) is None


def test_a_token_ends_by_time_and_by_revocation(database: Database, clock: Clock) -> None:
    """Issue 4.9: expiring, revocable."""
    with database.transaction() as tx:
        short, record = tx.tokens.create(
            store=STORE, role="reader", name="short", actor="root", expires=clock.now + timedelta(days=7)
        )
        long, other = tx.tokens.create(store=STORE, role="reader", name="long", actor="root")
        assert tx.tokens.valid(record.id, store=STORE) == record
    clock.forward(days=7)
    with database.transaction() as tx:
        assert tx.tokens.find(short, store=STORE) is None
        assert tx.tokens.valid(record.id, store=STORE) is None
        assert tx.tokens.find(long, store=STORE) is not None
        revoked = tx.tokens.revoke(other.id, store=STORE, actor="root")
        assert revoked.revoked == clock.now
        assert tx.tokens.find(long, store=STORE) is None
        assert tx.tokens.valid(other.id, store=STORE) is None
        assert tx.tokens.revoke(other.id, store=STORE, actor="root") == revoked
        assert actions(tx) == ["token.created", "token.created", "token.revoked"]
        assert [item.name for item in tx.tokens.list(STORE)].count("long") == 1
        assert tx.tokens.list("1" * 32) == []
    with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
        tx.tokens.revoke("tok-none", store=STORE, actor="root")
    assert (raised.value.code, raised.value.exit_status) == ("state-unknown-token", ExitStatus.USAGE)


def test_a_use_is_written_down_once_a_minute(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        token, record = tx.tokens.create(store=STORE, role="reader", name="n", actor="root")
        assert tx.tokens.is_use_due(record)
        tx.tokens.touch(record.id)
        used = tx.tokens.find(token, store=STORE)
        assert used is not None
        assert used.used == clock.now
        assert not tx.tokens.is_use_due(used)
    clock.forward(seconds=60)
    with database.reading() as tx:
        assert tx.tokens.is_use_due(used)


def test_uses_of_many_tokens_are_written_together(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envdsl.state.tokens._AT_ONCE", 2)
    with database.transaction() as tx:
        made = [tx.tokens.create(store=STORE, role="reader", name=f"n{n}", actor="root")[1].id for n in range(6)]
        tx.tokens.touch(*made[:5])
        used = {record.id for record in tx.tokens.list(STORE) if record.used is not None}
    assert used == set(made[:5])


def test_the_database_itself_refuses_a_token_whose_scope_does_not_fit_its_role(database: Database) -> None:
    for role, session in (("agent", None), ("reader", "s")):
        with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
            tx.tokens.create(store=STORE, role=role, name="n", session=session, actor="root")
        assert raised.value.code == "state-database"


def test_an_announcement_is_delivered_once_it_is_due_and_by_one(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        first = tx.webhooks.put(STORE, "request.waiting", {"request": "req-1"})
        tx.webhooks.put("1" * 32, "request.waiting", {})
        assert tx.webhooks.waiting(STORE) == 1
    with database.transaction() as tx:
        [mine] = tx.webhooks.due(STORE, lease_seconds=30)
        assert (mine.id, mine.payload, mine.attempts) == (first.id, {"request": "req-1"}, 1)
        assert tx.webhooks.due(STORE, lease_seconds=30) == []
        tx.webhooks.retry(mine.id, clock.now + timedelta(minutes=1), "the receiver said 503")
    clock.forward(minutes=1)
    with database.transaction() as tx:
        [again] = tx.webhooks.due(STORE, lease_seconds=30)
        assert (again.attempts, again.problem) == (2, "the receiver said 503")
    clock.forward(seconds=30)  # whoever had it died
    with database.transaction() as tx:
        [again] = tx.webhooks.due(STORE, lease_seconds=30)
        assert again.attempts == 3
        tx.webhooks.delivered(again.id)
        assert tx.webhooks.waiting(STORE) == 0
        second = tx.webhooks.put(STORE, "request.waiting", {})
        tx.webhooks.give_up(second.id, "tried for a day")
    clock.forward(days=1)
    with database.transaction() as tx:
        assert tx.webhooks.due(STORE, lease_seconds=30) == []


def test_announcements_of_a_session_are_counted_from_a_time_on(database: Database, clock: Clock) -> None:
    began = clock.now
    for _ in range(2):
        clock.forward(minutes=1)
        with database.transaction() as tx:
            tx.webhooks.put(STORE, "request.waiting", {"session": "s"})
            tx.webhooks.put(STORE, "request.waiting", {"session": "t"})
            tx.webhooks.put("1" * 32, "request.waiting", {"session": "s"})
    with database.reading() as tx:
        assert tx.webhooks.count_since(STORE, "s", began) == 2
        assert tx.webhooks.count_since(STORE, "s", began + timedelta(minutes=1)) == 1
        assert tx.webhooks.count_since(STORE, "s", clock.now) == 0


def test_what_is_undelivered_is_counted_with_its_age_and_what_was_given_up_is_not(
    database: Database, clock: Clock
) -> None:
    with database.transaction() as tx:
        assert tx.webhooks.undelivered(STORE) == Undelivered(0, 0, None)
        first = tx.webhooks.put(STORE, "request.waiting", {})
        tx.webhooks.put("1" * 32, "request.waiting", {})
        tx.webhooks.retry(first.id, clock.now, "it answered 503")
    clock.forward(minutes=1)
    with database.transaction() as tx:
        second = tx.webhooks.put(STORE, "request.waiting", {})
        assert tx.webhooks.undelivered(STORE) == Undelivered(2, 1, first.created)
        tx.webhooks.delivered(first.id)
        assert tx.webhooks.undelivered(STORE) == Undelivered(1, 0, second.created)
        tx.webhooks.give_up(second.id, "it answered 410")
        assert tx.webhooks.undelivered(STORE).count == 0


def test_an_announcement_is_there_only_where_what_it_announces_is(database: Database) -> None:
    def fails() -> None:
        with database.transaction() as tx:
            ask(tx)
            tx.webhooks.put(STORE, "request.waiting", {})
            raise OSError("the machine goes down here")

    with pytest.raises(OSError, match="goes down"):
        fails()
    with database.reading() as tx:
        assert tx.webhooks.waiting(STORE) == 0


def test_a_worker_is_alive_while_it_says_so(database: Database, clock: Clock) -> None:
    with database.transaction() as tx:
        tx.workers.seen("w1", STORE)
        tx.workers.seen("w2", STORE)
        tx.workers.seen("w3", "1" * 32)
        assert [worker.name for worker in tx.workers.alive(STORE, 30)] == ["w1", "w2"]
        tx.workers.gone("w2")
    clock.forward(seconds=31)
    with database.transaction() as tx:
        assert tx.workers.alive(STORE, 30) == []
        tx.workers.seen("w1", STORE)
        [worker] = tx.workers.alive(STORE, 30)
        assert worker.seen - worker.started == timedelta(seconds=31)
    clock.forward(days=2)
    with database.transaction() as tx:
        tx.workers.seen("w4", STORE)
        assert [item.name for item in tx.workers.alive(STORE, 10**6)] == ["w4"]

"""The audit log: chained, verified, and what a verification finds."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from envdsl.state import chain
from envdsl.state.chain import GENESIS, Anchor, Break
from envdsl.state.database import Database
from envdsl.state.records import AuditEvent
from tests.state.conftest import Clock


def fill(database: Database, count: int) -> None:
    for number in range(1, count + 1):
        with database.transaction() as tx:
            tx.audit.append(
                actor=f"actor {number}", action="test.done", session="s", data={"n": number, "ä": ["é", None]}
            )


def test_each_event_names_the_hash_of_the_one_before(database: Database) -> None:
    """Issue 4.4: hash-chained."""
    fill(database, 3)
    with database.reading() as tx:
        events = list(tx.audit.range())
        assert tx.audit.verify() is None
        assert tx.audit.head() == Anchor(3, events[2].hash)
    assert [event.number for event in events] == [1, 2, 3]
    assert [event.previous for event in events] == [GENESIS, events[0].hash, events[1].hash]


def test_a_hash_is_what_the_documentation_says_in_five_lines(database: Database) -> None:
    fill(database, 1)
    with database.reading() as tx:
        [event] = tx.audit.range()
    exported = json.loads(json.dumps(chain.to_json(event)))
    digest = exported.pop("hash")
    canonical = json.dumps(exported, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert blake3(canonical.encode()).hexdigest() == digest


def test_the_hash_of_a_known_event_is_known(clock: Clock) -> None:
    """What was written by an older envdsl has to verify for ever."""
    event = chain.link(
        Anchor(0, GENESIS),
        at=clock.now,
        actor="alice",
        action="request.approved",
        session="report-7",
        subject="req-01",
        data={"digest": "d", "attempts": 2, "wer": "Zoë"},
    )
    assert event.hash == "8efa651f97048440f5742fb542508b7f017d13840d80e6287405de13cd923943"


def test_an_export_comes_back_as_it_was(database: Database) -> None:
    fill(database, 3)
    with database.reading() as tx:
        events = list(tx.audit.range())
    assert [chain.from_json(json.loads(json.dumps(chain.to_json(event)))) for event in events] == events


Forge = Callable[[str], None]


@pytest.fixture
def forge(database: Database, database_url: str) -> Forge:
    """Change rows as somebody who owns the database can: after switching the triggers off."""

    def run(statement: str) -> None:
        engine = create_engine(database_url)
        with engine.begin() as connection:
            if engine.dialect.name == "sqlite":
                for trigger in ("update", "delete", "insert"):
                    connection.execute(text(f"DROP TRIGGER IF EXISTS audit_events_{trigger}"))
            else:
                connection.execute(text("ALTER TABLE audit_events DISABLE TRIGGER USER"))
            connection.execute(text(statement))
        engine.dispose()

    return run


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        ("UPDATE audit_events SET actor = 'mallory' WHERE number = 3", 3),
        ("UPDATE audit_events SET data = '{\"n\": 4}' WHERE number = 3", 3),
        ("UPDATE audit_events SET data = '{\"n\": 3.5}' WHERE number = 3", 3),
        ("UPDATE audit_events SET at = '2020-01-01 00:00:00.000000' WHERE number = 1", 1),
        (f"UPDATE audit_events SET hash = '{'f' * 64}' WHERE number = 5", 5),
        (f"UPDATE audit_events SET previous = '{'f' * 64}' WHERE number = 2", 2),
        ("UPDATE audit_events SET session = NULL WHERE number = 4", 4),
        ("DELETE FROM audit_events WHERE number = 3", 3),
        ("DELETE FROM audit_events WHERE number <= 2", 1),
        ("UPDATE audit_events SET number = 9 WHERE number = 5", 5),
    ],
)
def test_verify_names_the_first_event_that_does_not_hold(
    database: Database, forge: Forge, statement: str, broken: int
) -> None:
    """Issue 4.4: `audit-log verify`."""
    fill(database, 5)
    forge(statement)
    with database.reading() as tx:
        found = tx.audit.verify()
    assert found is not None
    assert found.number == broken
    assert str(broken) in found.problem


def test_a_row_that_was_replaced_with_its_hash_breaks_the_chain_at_the_next(database: Database, forge: Forge) -> None:
    """Whoever recomputes one hash has to recompute all that follow."""
    fill(database, 4)
    with database.reading() as tx:
        second = list(tx.audit.range())[1]
    forged = chain.link(
        Anchor(1, second.previous),
        at=second.at,
        actor="mallory",
        action="test.done",
        session="s",
        subject=None,
        data={},
    )
    forge(f"UPDATE audit_events SET actor = 'mallory', data = '{{}}', hash = '{forged.hash}' WHERE number = 2")
    with database.reading() as tx:
        assert tx.audit.verify() == Break(3, "event 3 does not follow event 2 as it is now")
        assert tx.audit.verify(last=2) is None


def test_a_tail_that_was_cut_off_is_found_by_an_anchor_and_by_nothing_else(database: Database, forge: Forge) -> None:
    fill(database, 5)
    with database.reading() as tx:
        anchor = tx.audit.head()
    forge("DELETE FROM audit_events WHERE number > 3")
    with database.reading() as tx:
        assert tx.audit.verify() is None
        found = tx.audit.verify(anchor=anchor)
        assert found is not None
        assert found.number == 4
        assert tx.audit.verify(last=5) is not None
    fill(database, 2)  # grown again, as long as before
    with database.reading() as tx:
        assert tx.audit.verify(anchor=anchor) == Break(5, "event 5 is not the one that was written down")


def test_a_part_of_the_log_is_verified_against_the_event_before_it(database: Database, forge: Forge) -> None:
    fill(database, 6)
    forge("UPDATE audit_events SET actor = 'mallory' WHERE number = 2")
    with database.reading() as tx:
        assert tx.audit.verify(3, 6) is None
        assert tx.audit.verify(4) is None
        assert tx.audit.verify(2, 3) == Break(2, "event 2 was changed: its hash is another")
        assert tx.audit.verify(9) == Break(8, "event 8 is missing")


def test_threads_append_to_one_chain(database: Database) -> None:
    def work(name: str) -> None:
        for _ in range(10):
            with database.transaction() as tx:
                tx.audit.append(actor=name, action="test.done")

    crew = [threading.Thread(target=work, args=(str(number),)) for number in range(6)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    with database.reading() as tx:
        assert tx.audit.verify() is None
        assert tx.audit.head().number == 60


def test_databases_that_are_open_twice_append_to_one_chain(database: Database, database_url: str) -> None:
    """Each has its own queue of threads: the order is the database's."""
    with Database.open(database_url) as other:

        def work(mine: Database) -> None:
            for _ in range(15):
                with mine.transaction() as tx:
                    tx.audit.append(actor="a", action="test.done")

        crew = [threading.Thread(target=work, args=(mine,)) for mine in (database, other, database, other)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
        with other.reading() as tx:
            assert tx.audit.verify() is None
            assert tx.audit.head().number == 60


def test_the_newest_events_come_first_and_page_by_page(database: Database) -> None:
    fill(database, 7)
    with database.transaction() as tx:
        tx.audit.append(actor="a", action="token.created", subject="tok-1")
    with database.reading() as tx:
        assert [event.number for event in tx.audit.newest(limit=3)] == [8, 7, 6]
        assert [event.number for event in tx.audit.newest(limit=3, before=6)] == [5, 4, 3]
        assert [event.number for event in tx.audit.newest(limit=9, session="s", before=3)] == [2, 1]
        assert [event.number for event in tx.audit.newest(limit=9, subject="tok-1")] == [8]
        assert tx.audit.newest(limit=9, session="other") == []


def test_stores_that_share_a_database_have_one_chain_and_see_their_own_events(database: Database) -> None:
    with database.transaction() as tx:
        for store in ("one", "two", "one"):
            tx.audit.append(actor="a", action="test.done", session="s", data={"store": store})
    with database.reading() as tx:
        assert [event.number for event in tx.audit.newest(limit=9, store="one", session="s")] == [3, 1]
        assert [event.number for event in tx.audit.newest(limit=9, store="two")] == [2]
        assert len(tx.audit.newest(limit=9)) == 3
        assert tx.audit.verify() is None


def test_data_with_a_float_is_refused_when_it_is_written(database: Database) -> None:
    with pytest.raises(TypeError), database.transaction() as tx:
        tx.audit.append(actor="a", action="test.done", data={"ratio": 0.5})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(data=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values, max_size=4))
def test_whatever_data_was_written_verifies_after_the_database_had_it(
    data: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    with _shared(tmp_path_factory).transaction() as tx:
        event = tx.audit.append(actor="a", action="test.done", data=data)
    with _shared(tmp_path_factory).reading() as tx:
        assert tx.audit.verify(event.number) is None
        [found] = tx.audit.range(event.number)
    assert found == event
    assert chain.from_json(json.loads(json.dumps(chain.to_json(event)))) == event


_opened: dict[Path, Database] = {}


def _shared(factory: pytest.TempPathFactory) -> Database:
    """One database for all examples: what is in it already is no hindrance."""
    place = factory.getbasetemp() / "audit-examples.db"
    if place not in _opened:
        _opened[place] = Database.open(f"sqlite:///{place}")
    return _opened[place]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_no_event_of_a_chain_can_be_changed_dropped_or_moved_unseen(kinds: list[int], data: st.DataObject) -> None:
    events: list[AuditEvent] = []
    before = Anchor(0, GENESIS)
    for kind in kinds:
        events.append(
            chain.link(
                before,
                at=Clock().now,
                actor=f"a{kind}",
                action="test.done",
                session=None,
                subject=None,
                data={"k": kind},
            )
        )
        before = Anchor(events[-1].number, events[-1].hash)
    start = Anchor(0, GENESIS)
    assert chain.check(events, start) is None
    index = data.draw(st.integers(0, len(events) - 1))
    dropped = [*events[:index], *events[index + 1 :]]
    if index < len(events) - 1:
        found = chain.check(dropped, start)
        assert found is not None
        assert found.number == index + 1
    other = data.draw(
        st.integers(0, len(events) - 1).filter(lambda number: number != index) if len(events) > 1 else st.none()
    )
    if other is not None:
        events[index], events[other] = events[other], events[index]
        found = chain.check(events, start)
        assert found is not None
        assert found.number == min(index, other) + 1

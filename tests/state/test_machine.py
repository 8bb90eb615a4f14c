"""The machine of a request: its table, and the database held against it step by step."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from envdsl.errors import EnvdslError
from envdsl.state.database import Database
from envdsl.state.machine import ENDED, EXPIRABLE, OPEN, TRANSITIONS, allowed
from envdsl.state.records import RequestRecord, Status
from envdsl.state.requests import Requests
from tests.state.conftest import STORE, Clock, ask

# Written out once more, as issue 4 and docs/policy.md have it: a row a state, what it may become.
TABLE = """
pending    pending approved isolated denied refused ready cancelled expired failed
approved   building pending cancelled expired failed
isolated   building pending cancelled expired failed
building   ready failed approved isolated pending
ready
failed
denied
refused
cancelled
expired
"""


def test_the_machine_has_exactly_the_transitions_of_the_table() -> None:
    """Issue 4.3: the state machine."""
    rows = {row.split()[0]: set(row.split()[1:]) for row in TABLE.strip().splitlines()}
    assert {status.value: {after.value for after in afters} for status, afters in TRANSITIONS.items()} == rows
    for before in Status:
        for after in Status:
            assert allowed(before, after) == (after.value in rows[before.value])


def test_nothing_leaves_a_state_that_has_ended_and_every_other_leads_to_one() -> None:
    assert set(Status) == OPEN | ENDED
    assert not OPEN & ENDED
    assert {status for status in Status if allowed(status, Status.EXPIRED)} == EXPIRABLE
    assert all(not TRANSITIONS[status] for status in ENDED)
    reachable = {Status.PENDING}
    while more := {after for status in reachable for after in TRANSITIONS[status]} - reachable:
        reachable |= more
    assert reachable == set(Status)


@pytest.mark.parametrize("before", list(Status))
def test_every_transition_of_the_table_and_no_other_is_possible_in_the_database(
    database: Database, before: Status
) -> None:
    """Each as one transaction with its audit row; a refused one leaves neither."""
    for number, after in enumerate(Status):
        with database.transaction() as tx:
            request = _reach(tx.requests, ask(tx, f"need-{before}-{number}"), before)
        with database.reading() as tx:
            head = tx.audit.head().number
        if allowed(before, after):
            with database.transaction() as tx:
                done = tx.requests.transition(request.id, {before}, after, actor="me")
            assert done.status is after
        else:
            with pytest.raises(EnvdslError) as raised, database.transaction() as tx:
                tx.requests.transition(request.id, {before}, after, actor="me")
            assert raised.value.code == "state-transition"
        with database.reading() as tx:
            assert tx.requests.get(request.id).status is (after if allowed(before, after) else before)
            assert tx.audit.head().number == head + allowed(before, after)


_WAYS: dict[Status, list[Status]] = {
    Status.BUILDING: [Status.APPROVED, Status.BUILDING],
    Status.PENDING: [],
}


def _reach(requests: Any, request: RequestRecord, status: Status) -> RequestRecord:
    for step in _WAYS.get(status, [status]):
        request = requests.transition(request.id, {request.status}, step, actor="test")
    return request


class Machine(RuleBasedStateMachine):
    """Askers, workers, people and time do what they may and what they may not, in any order; a model in memory says
    what has to come of it."""

    requests: Bundle[str] = Bundle("requests")

    @initialize()
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="envdsl-machine-"))
        self.clock = Clock()
        self.database = Database.open(f"sqlite:///{self.directory}/state.db", clock=self.clock)
        self.status: dict[str, Status] = {}
        self.needs: dict[str, str] = {}
        self.holder: dict[str, str] = {}
        self.lease: dict[str, Any] = {}
        self.classified: set[str] = set()
        self.audited = 0

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            shutil.rmtree(self.directory)

    def _open_with(self, need: str) -> str | None:
        return next((key for key, known in self.needs.items() if known == need and not self.status[key].ended), None)

    def _do(self, act: Callable[[Requests], object], code: str) -> bool:
        """Whether ``act`` was done; it must fail with ``code``, or not at all where that is empty."""
        if not code:
            with self.database.transaction() as tx:
                act(tx.requests)
            return True
        with pytest.raises(EnvdslError) as raised, self.database.transaction() as tx:
            act(tx.requests)
        assert raised.value.code == code
        return False

    @rule(target=requests, need=st.sampled_from("abc"))
    def ask(self, need: str) -> str:
        expected = self._open_with(need)
        with self.database.transaction() as tx:
            request = ask(tx, need, expires=tx.now + timedelta(minutes=10))
        assert (expected is None) == (request.id not in self.status)
        if expected is not None:
            assert request.id == expected
        else:
            self.status[request.id] = Status.PENDING
            self.needs[request.id] = need
            self.audited += 1
        return request.id

    @rule(worker=st.sampled_from(["w1", "w2"]))
    def claim(self, worker: str) -> None:
        now = self.clock.now
        due = [
            key
            for key, status in self.status.items()
            if (status in (Status.APPROVED, Status.ISOLATED, Status.BUILDING) or self._to_resolve(key))
            and (key not in self.lease or self.lease[key] <= now)
        ]
        with self.database.transaction() as tx:
            request = tx.requests.claim(worker, 60, STORE)
        if request is None:
            assert not [key for key in due if self.status[key] is Status.BUILDING or not self._is_over(key)]
            return
        assert request.id in due
        before = self.status[request.id]
        if before in (Status.APPROVED, Status.ISOLATED):
            self.status[request.id] = Status.BUILDING
            self.audited += 1
        elif request.id in self.holder:
            self.audited += 1  # taken over
        self.holder[request.id] = worker
        self.lease[request.id] = now + timedelta(seconds=60)
        assert request.worker == worker
        assert request.status is self.status[request.id]

    def _to_resolve(self, key: str) -> bool:
        return self.status[key] is Status.PENDING and key not in self.classified

    def _is_over(self, key: str) -> bool:
        with self.database.reading() as tx:
            expires = tx.requests.get(key).expires
        return expires is not None and expires <= self.clock.now

    @rule(
        request=requests,
        from_=st.sets(st.sampled_from(Status), min_size=1),
        to=st.sampled_from(Status),
        holder=st.sampled_from([None, None, "w1", "w2"]),
        classify=st.booleans(),
    )
    def transition(self, request: str, from_: set[Status], to: Status, holder: str | None, classify: bool) -> None:
        before = self.status[request]
        if holder is not None and self.holder.get(request) != holder:
            code = "state-lease-lost"
        elif before not in from_:
            code = "state-conflict"
        elif not allowed(before, to):
            code = "state-transition"
        else:
            code = ""
        changes: Any = {"classification": {"verdict": "needs-person"} if classify else None}
        done = self._do(
            lambda requests: requests.transition(request, from_, to, actor="a", holder=holder, **changes), code
        )
        if done:
            self.status[request] = to
            self.holder.pop(request, None)
            self.lease.pop(request, None)
            self.classified.discard(request)
            if classify:
                self.classified.add(request)
            self.audited += 1

    @rule(request=requests, worker=st.sampled_from(["w1", "w2"]), delay=st.sampled_from([0, 30]))
    def release(self, request: str, worker: str, delay: int) -> None:
        mine = self.holder.get(request) == worker
        code = "" if mine else "state-lease-lost"
        if self._do(lambda requests: requests.release(request, worker, delay_seconds=delay), code):
            del self.holder[request]
            self.lease.pop(request)
            if delay:
                self.lease[request] = self.clock.now + timedelta(seconds=delay)

    @rule(request=requests, worker=st.sampled_from(["w1", "w2"]))
    def renew(self, request: str, worker: str) -> None:
        mine = self.holder.get(request) == worker
        code = "" if mine else "state-lease-lost"
        if self._do(lambda requests: requests.renew(request, worker, 60), code):
            self.lease[request] = self.clock.now + timedelta(seconds=60)

    @rule(seconds=st.sampled_from([1, 31, 61, 700]))
    def wait(self, seconds: int) -> None:
        self.clock.forward(seconds=seconds)

    @rule()
    def expire(self) -> None:
        with self.database.transaction() as tx:
            ended = {request.id for request in tx.requests.expire(STORE)}
        for key, status in self.status.items():
            held = key in self.holder and self.lease[key] > self.clock.now
            assert (key in ended) == (status in EXPIRABLE and self._is_over(key) and not held), (key, status)
        for key in ended:
            self.status[key] = Status.EXPIRED
            self.holder.pop(key, None)
            self.lease.pop(key, None)
            self.audited += 1

    @rule(request=consumes(requests), worker=st.sampled_from(["w1", "w2"]))
    def fail_in_the_middle(self, request: str, worker: str) -> None:
        """A transaction that dies after all of its statements leaves nothing of them."""
        try:
            with self.database.transaction() as tx:
                tx.requests.claim(worker, 60, STORE)
                present = tx.requests.get(request)
                for after in sorted(TRANSITIONS[present.status]):
                    tx.requests.transition(request, {present.status}, after, actor="a")
                    break
                raise ConnectionResetError
        except ConnectionResetError:
            pass

    @invariant()
    def the_database_is_as_the_model(self) -> None:
        if not hasattr(self, "database"):
            return
        with self.database.reading() as tx:
            found = tx.requests.list(STORE, limit=None)
            assert {item.id: item.status for item in found} == self.status
            assert {item.id: item.worker for item in found if item.worker is not None} == self.holder
            assert tx.audit.head().number == self.audited
            assert tx.audit.verify() is None
        open_needs = [item.fingerprint for item in found if not item.status.ended]
        assert len(open_needs) == len(set(open_needs))


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)

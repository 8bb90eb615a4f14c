"""Many threads and processes at one database: nothing is lost, nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

from envdsl.errors import EnvdslError
from envdsl.state.database import Database
from envdsl.state.records import Status
from tests.state.conftest import STORE, actions, approved, ask

# A worker as a process: takes what there is, in its own time, and says what it took.
_WORKER = f"""
import json, sys, time
from envdsl.state.database import Database
from envdsl.state.records import Status
name, lease, pause = sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
taken = []
with Database.open(sys.argv[1]) as database:
    print("open", flush=True)
    sys.stdin.readline()
    while True:
        with database.transaction() as tx:
            request = tx.requests.claim(name, lease, {STORE!r})
        if request is None:
            break
        taken.append(request.id)
        if pause:
            print(request.id, flush=True)
            time.sleep(pause)
        with database.transaction() as tx:
            tx.requests.transition(request.id, {{Status.BUILDING}}, Status.READY, actor=name, holder=name)
print(json.dumps(taken))
"""


def worker(url: str, name: str, *, lease: float = 60, pause: float = 0) -> subprocess.Popen[str]:
    """Started, and waiting for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKER, url, name, str(lease), str(pause)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def at_once(*work: Callable[[], object]) -> list[object]:
    """Run all of it in threads that begin together; what each returned or raised."""
    barrier = threading.Barrier(len(work))
    results: list[object] = [None] * len(work)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = work[index]()
        except Exception as error:
            results[index] = error

    crew = [threading.Thread(target=run, args=(index,)) for index in range(len(work))]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return results


def test_threads_claim_each_request_once(database: Database) -> None:
    """Issue 4.3: several workers at once."""
    with database.transaction() as tx:
        ids = [approved(tx, f"need {number}").id for number in range(40)]

    def work(name: str) -> list[str]:
        taken = []
        while True:
            with database.transaction() as tx:
                request = tx.requests.claim(name, 60, STORE)
            if request is None:
                return taken
            taken.append(request.id)
            with database.transaction() as tx:
                tx.requests.transition(request.id, {Status.BUILDING}, Status.READY, actor=name, holder=name)

    results = at_once(*(lambda name=f"w{number}": work(name) for number in range(8)))
    assert Counter(item for taken in results for item in taken) == Counter(ids)  # type: ignore[attr-defined]
    with database.reading() as tx:
        assert tx.requests.counts(STORE)[Status.READY] == 40
        assert tx.audit.verify() is None


def test_processes_claim_each_request_once(database_url: str) -> None:
    """Issue 4.3: several workers at once."""
    with Database.open(database_url) as database:
        with database.transaction() as tx:
            ids = [approved(tx, f"need {number}").id for number in range(30)]
        crew = [worker(database_url, f"w{number}") for number in range(3)]
        for process in crew:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        taken = [item for process in crew for item in json.loads(process.communicate(timeout=120)[0])]
        assert Counter(taken) == Counter(ids)
        with database.reading() as tx:
            assert tx.requests.counts(STORE)[Status.READY] == 30
            assert Counter(actions(tx)) == Counter(
                {"request.created": 30, "request.approved": 30, "request.building": 30, "request.ready": 30}
            )
            assert tx.audit.verify() is None


def test_a_worker_that_is_killed_is_followed_by_another(database_url: str) -> None:
    """Issue 4.3: a crashed builder's request is picked up again."""
    with Database.open(database_url) as database:
        with database.transaction() as tx:
            request = approved(tx)
        doomed = worker(database_url, "doomed", lease=1.5, pause=600)
        assert doomed.stdin is not None
        assert doomed.stdout is not None
        doomed.stdin.write("go\n")
        doomed.stdin.flush()
        assert doomed.stdout.readline().strip() == request.id
        os.kill(doomed.pid, signal.SIGKILL)
        doomed.wait()
        with database.transaction() as tx:
            early = tx.requests.claim("heir", 60, STORE)
        deadline = time.monotonic() + 30
        found = early
        while found is None and time.monotonic() < deadline:
            time.sleep(0.1)
            with database.transaction() as tx:
                found = tx.requests.claim("heir", 60, STORE)
        assert found is not None
        assert (found.id, found.status, found.worker, found.attempts) == (request.id, Status.BUILDING, "heir", 2)
        with database.transaction() as tx:
            tx.requests.transition(found.id, {Status.BUILDING}, Status.READY, actor="heir", holder="heir")


def test_askers_at_once_get_one_request(database: Database, database_url: str) -> None:
    """Issue 4.3: same request twice, one build; also from two processes' worth of connections."""
    with Database.open(database_url) as other:

        def one(mine: Database, key: str | None) -> str:
            with mine.transaction() as tx:
                return ask(tx, key=key).id

        same = at_once(*(lambda mine=mine: one(mine, None) for mine in [database, other] * 8))
        assert len(set(same)) == 1
        with database.transaction() as tx:
            tx.requests.transition(str(same[0]), {Status.PENDING}, Status.DENIED, actor="alice")
        keyed = at_once(*(lambda mine=mine: one(mine, "k") for mine in [database, other] * 8))
        assert len(set(keyed)) == 1
        with database.reading() as tx:
            assert len(tx.requests.list(STORE)) == 2
            assert actions(tx).count("request.created") == 2


def test_of_people_who_decide_at_once_one_wins(database: Database, database_url: str) -> None:
    """Issue 4.7: one decision wins."""
    choices = (Status.APPROVED, Status.DENIED, Status.ISOLATED, Status.CANCELLED)
    with database.transaction() as tx:
        request = ask(tx)
    with Database.open(database_url) as other:

        def decide(mine: Database, to: Status) -> Status:
            with mine.transaction() as tx:
                return tx.requests.transition(request.id, {Status.PENDING}, to, actor=f"who wants {to}").status

        results = at_once(*(lambda mine=mine, to=to: decide(mine, to) for mine in (database, other) for to in choices))
    won = [result for result in results if isinstance(result, Status)]
    lost = [result.code for result in results if isinstance(result, EnvdslError)]
    assert len(won) == 1
    assert lost == ["state-conflict"] * 7
    with database.reading() as tx:
        assert tx.requests.get(request.id).status is won[0]
        assert len(actions(tx)) == 2


def test_events_are_delivered_by_one_of_many(database: Database) -> None:
    with database.transaction() as tx:
        ids = [tx.webhooks.put(STORE, "request.waiting", {}).id for _ in range(30)]

    def deliver() -> list[str]:
        with database.transaction() as tx:
            return [event.id for event in tx.webhooks.due(STORE, lease_seconds=60, limit=7)]

    results = at_once(*(deliver for _ in range(6)))
    assert Counter(item for taken in results for item in taken) == Counter(ids)  # type: ignore[attr-defined]


def test_bindings_of_a_session_are_numbered_without_a_gap(database: Database) -> None:
    def bind(name: str) -> int:
        with database.transaction() as tx:
            return tx.bindings.append(
                store=STORE, session="s", cause="rebase", actor=name, layers=[], manifest=name
            ).number

    numbers = at_once(*(lambda name=f"m{number}": bind(name) for number in range(12)))
    assert sorted(numbers) == list(range(1, 13))  # type: ignore[type-var]


def test_an_opening_while_others_write_does_not_fail(database_url: str) -> None:
    with Database.open(database_url) as database:
        stop = threading.Event()

        def write() -> int:
            count = 0
            while not stop.is_set():
                with database.transaction() as tx:
                    tx.audit.append(actor="a", action="test.done")
                count += 1
            return count

        def open_often() -> None:
            try:
                for _ in range(15):
                    with Database.open(database_url) as mine, mine.transaction() as tx:
                        tx.audit.append(actor="b", action="test.opened")
            finally:
                stop.set()

        written, problem = at_once(write, open_often)
        assert problem is None
        with database.reading() as tx:
            assert tx.audit.head().number == int(str(written)) + 15
            assert tx.audit.verify() is None

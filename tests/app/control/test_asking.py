"""Asking, cancelling, deciding: who may, what is the same request, and that one decision wins."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.app.control import asking
from envdsl.app.control.deciding import decide
from envdsl.app.control.uploads import place, receive
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Principal, Role
from envdsl.policy.proposal import Choice, Upload
from envdsl.state.records import Status
from tests.app.control.bench import ADMIN, Bench, agent, owner
from tests.wheels import make_wheel

READER = Principal(Role.READER, "monitor")


def refused(call: Callable[[], object]) -> EnvdslError:
    with pytest.raises(EnvdslError) as caught:
        call()
    return caught.value


def test_the_same_need_is_one_request_until_it_has_ended(bench: Bench) -> None:
    """Issue 4.3: the same request twice is one."""
    bench.session("s")
    first = bench.ask("s", "foo", "tool")
    assert bench.ask("s", "Tool", "foo", "foo").id == first.id
    assert bench.ask("s", "foo").id != first.id
    bench.session("t")
    assert bench.ask("t", "foo", "tool").id != first.id
    bench.settle()
    assert bench.ask("s", "foo", "tool").id != first.id


def test_a_key_makes_a_retry_the_same_request_for_ever(bench: Bench) -> None:
    """Issue 4.3: idempotent under retries."""
    bench.session("s")
    first = bench.ask("s", "foo", key="k1")
    bench.settle()
    assert bench.ask("s", "foo", key="k1").id == first.id
    assert refused(lambda: bench.ask("s", "tool", key="k1")).code == "state-key-reused"


def test_many_who_ask_for_the_same_at_once_get_one_request(bench: Bench) -> None:
    bench.session("s")
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(bench.ask("s", "foo").id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("requirements", "code"),
    [
        (["not a requirement!"], "app-requirement-invalid"),
        (["foo", "x" * 600], "app-requirement-invalid"),
        (['foo; os_name != "\x1b[2J"'], "app-requirement-invalid"),
        (['foo; os_name != "\u202e"'], "app-requirement-invalid"),
        ([], "app-nothing-asked"),
        ([f"p{number}" for number in range(101)], "app-request-size"),
    ],
)
def test_what_is_no_request_is_refused_at_once(light_bench: Bench, requirements: list[str], code: str) -> None:
    light_bench.session("s")
    error = refused(lambda: light_bench.ask("s", *requirements))
    assert (error.code, error.exit_status) == (code, ExitStatus.USAGE)


def test_an_upload_is_named_by_what_was_uploaded_and_leads_nowhere_else(light_bench: Bench, tmp_path: Path) -> None:
    """Issue 4.9: whoever asks learns nothing of the host's files, and cannot say of a wheel what it is not."""
    light_bench.session("s")
    wheel = make_wheel(tmp_path, "mine", "1.0")
    with wheel.open("rb") as file:
        kept, _ = receive(light_bench.plane, wheel.name, file)
    up = os.path.relpath("/etc/passwd", place(light_bench.project.store.layout, kept).parent)
    for wrong in (replace(kept, filename=up), replace(kept, size=1), replace(kept, sha256=f"../uploads/{kept.sha256}")):
        error = refused(lambda wrong=wrong: light_bench.ask("s", uploads=[wrong]))  # type: ignore[misc]
        assert error.code == "app-upload-unknown"
    assert light_bench.ask("s", uploads=[kept]).status is Status.PENDING


@pytest.mark.parametrize("marker", ['os_name ~= "a"', '"x" in extras', '"a" == "b"'])
def test_a_marker_that_means_nothing_is_the_requests_fault_not_the_workers(bench: Bench, marker: str) -> None:
    bench.session("s")
    record = bench.ask("s", f"foo; {marker}")
    bench.settle()
    assert bench.get(record.id).status is Status.REFUSED


def test_one_session_cannot_fill_the_queue_of_all(light_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 4.9: limits. What is there already, or was asked before, counts once."""
    monkeypatch.setattr(asking, "MOST_OPEN", 2)
    light_bench.session("s")
    light_bench.session("t")
    first = light_bench.ask("s", "foo")
    light_bench.ask("s", "tool")
    assert refused(lambda: light_bench.ask("s", "spare")).code == "app-too-many-open"
    assert light_bench.ask("s", "foo").id == first.id
    assert light_bench.ask("t", "spare").status is Status.PENDING
    asking.cancel(light_bench.plane, agent("s"), first.id)
    assert light_bench.ask("s", "spare").status is Status.PENDING


def test_every_requirement_that_is_none_is_named(light_bench: Bench) -> None:
    light_bench.session("s")
    error = refused(lambda: light_bench.ask("s", "a b", "foo", "!"))
    assert len(error.diagnostics) == 2


def test_a_wheel_has_to_be_uploaded_before_it_is_asked_for(light_bench: Bench) -> None:
    light_bench.session("s")
    unknown = Upload("mine-1-py3-none-any.whl", "0" * 64, 7)
    assert refused(lambda: light_bench.ask("s", uploads=[unknown])).code == "app-upload-unknown"


def test_a_reason_cannot_write_to_the_terminal_of_whoever_reads_it(light_bench: Bench) -> None:
    light_bench.session("s")
    record = light_bench.ask("s", "foo", reason="for\x1b[2J plots\n\u202eevil")
    assert record.reason == "for [2J plots  evil"


def test_nobody_sees_or_touches_what_is_not_theirs(light_bench: Bench) -> None:
    """Issue 4.9: an agent can neither approve nor see another session."""
    bench = light_bench
    for name in ("mine", "other"):
        bench.session(name)
    with bench.plane.state.transaction() as tx:
        tx.sessions.give(bench.plane.store_id, "mine", "alice", actor="test")
        tx.sessions.give(bench.plane.store_id, "other", "bob", actor="test")
    mine, other = bench.settled("mine", "unlisted"), bench.settled("other", "unlisted")
    for caller in (agent("mine"), owner("alice")):
        assert [record.id for record in asking.listing(bench.plane, caller)] == [mine.id]
        assert refused(lambda caller=caller: asking.find(bench.plane, caller, other.id)).code == "state-unknown-request"
        assert refused(lambda caller=caller: asking.cancel(bench.plane, caller, other.id)).code == (
            "state-unknown-request"
        )
        assert refused(lambda caller=caller: asking.listing(bench.plane, caller, session="other")).code == (
            "app-forbidden"
        )
        assert refused(lambda caller=caller: asking.request(bench.plane, caller, "other", ["foo"])).exit_status == (
            ExitStatus.REFUSED
        )
    assert refused(lambda: decide(bench.plane, agent("mine"), mine.id, Choice.DENY)).code == "app-forbidden"
    assert refused(lambda: decide(bench.plane, owner("bob"), mine.id, Choice.DENY)).code == "state-unknown-request"
    assert refused(lambda: decide(bench.plane, READER, mine.id, Choice.DENY)).code == "app-forbidden"
    assert len(asking.listing(bench.plane, READER)) == len(asking.listing(bench.plane, ADMIN)) == 2
    assert decide(bench.plane, owner("alice"), mine.id, Choice.DENY, comment="no").status is Status.DENIED


def test_what_is_unknown_and_what_is_somebody_elses_look_the_same(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("mine")
    bench.session("other")
    other = bench.ask("other", "foo")
    theirs = refused(lambda: asking.find(bench.plane, agent("mine"), other.id))
    nobodys = refused(lambda: asking.find(bench.plane, agent("mine"), "req-nothing"))
    assert str(theirs).replace(other.id, "X") == str(nobodys).replace("req-nothing", "X")
    assert theirs.diagnostics[0].hint == nobodys.diagnostics[0].hint


def test_one_decision_wins(bench: Bench) -> None:
    """Issue 4.7: of several decisions at once one wins, and the others are told who was quicker."""
    bench.session("s")
    waiting = bench.settled("s", "unlisted")
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        choice = Choice.APPROVE if number % 2 else Choice.DENY
        try:
            decide(bench.plane, Principal(Role.ADMINISTRATOR, f"p{number}"), waiting.id, choice, digest=waiting.digest)
            outcomes.append(f"p{number}")
        except EnvdslError as error:
            outcomes.append(error.code)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [name for name in outcomes if name != "state-conflict"]
    decision = bench.get(waiting.id).decision
    assert decision is not None
    assert winners == [decision.by]
    assert len(outcomes) == 6


def test_the_digest_has_to_be_the_one_that_was_shown(light_bench: Bench) -> None:
    """Issue 4.7: the digest shown is the digest built."""
    bench = light_bench
    bench.session("s")
    fresh = bench.ask("s", "unlisted")
    assert refused(lambda: decide(bench.plane, ADMIN, fresh.id, Choice.DENY)).code == "app-not-resolved"
    bench.settle()
    assert refused(lambda: decide(bench.plane, ADMIN, fresh.id, Choice.APPROVE)).code == "app-digest-missing"
    error = refused(lambda: decide(bench.plane, ADMIN, fresh.id, Choice.APPROVE, digest="0" * 64))
    assert error.code == "app-digest-other"
    assert bench.get(fresh.id).status is Status.PENDING


def test_a_cancelled_request_is_not_built(light_bench: Bench) -> None:
    bench = light_bench
    before = bench.session("s")
    record = bench.ask("s", "foo")
    assert bench.worker.step()
    assert bench.get(record.id).status is Status.APPROVED
    assert asking.cancel(bench.plane, agent("s"), record.id).status is Status.CANCELLED
    bench.settle()
    assert bench.manifest("s") == before
    assert refused(lambda: asking.cancel(bench.plane, agent("s"), record.id)).code == "state-conflict"


def test_what_nobody_decides_on_expires(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    waiting = bench.settled("s", "unlisted")
    bench.clock.forward(days=6)
    bench.settle()
    assert bench.get(waiting.id).status is Status.PENDING
    bench.clock.forward(days=2)
    bench.settle()
    assert bench.get(waiting.id).status is Status.EXPIRED

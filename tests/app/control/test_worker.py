"""Workers that die, that are many, and that have no network."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from envdsl.app.control import extending
from envdsl.app.control.deciding import decide
from envdsl.app.control.worker import ATTEMPTS, LEASE, Worker
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.proposal import Choice
from envdsl.session import bindings
from envdsl.state.records import Status
from tests.app.control.bench import ADMIN, Bench

# A worker of another process that is killed where a function is entered or has returned.
KILLED = """\
import os, signal, sys
from importlib import import_module
from pathlib import Path
from envdsl.app.control.plane import ControlPlane
from envdsl.app.control.worker import Worker
from envdsl.app.project import Project
from envdsl.reporter import Reporter

root, store, url, where, when, times = sys.argv[1:]
module, _, path = where.partition(":")
holder = import_module(module)
*inner, name = path.split(".")
for part in inner:
    holder = getattr(holder, part)
real, left = getattr(holder, name), [int(times)]

def killing(*arguments, **options):
    left[0] -= 1
    if when == "before" and not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*arguments, **options)
    if when == "after" and not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return result

setattr(holder, name, killing)
project = Project.find(Path(root), store=Path(store), reporter=Reporter())
with ControlPlane.open(project, url=url) as plane:
    worker = Worker(plane, name="doomed", jobs=1)
    while worker.step():
        pass
"""

POINTS = [
    ("envdsl.app.control.proposing:propose", "before", 1),
    ("envdsl.app.control.proposing:propose", "after", 1),
    ("envdsl.app.control.extending:realise", "before", 1),
    ("envdsl.realise.steps:Steps.layer", "before", 1),
    ("envdsl.app.control.extending:realise", "after", 1),
    ("envdsl.session.bindings:rebase", "before", 1),
    ("envdsl.session.bindings:rebase", "after", 1),
    ("envdsl.app.control.worker:Worker._ready", "before", 1),
    ("envdsl.app.control.worker:Worker._ready", "after", 1),
]


@pytest.mark.parametrize(("where", "when", "times"), POINTS, ids=[f"{when} {where}" for where, when, _ in POINTS])
def test_a_worker_that_is_killed_anywhere_is_replaced_and_the_layer_is_built_once(
    light_bench: Bench, where: str, when: str, times: int
) -> None:
    """Issue 4.3: a crashed builder's request is picked up again; one build."""
    bench = light_bench
    bench.session("s")
    record = bench.ask("s", "tool")
    url = bench.project.config.database
    command = [sys.executable, "-c", KILLED, bench.root, bench.project.config.store, url, where, when, str(times)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    bench.clock.forward(seconds=LEASE + 1)
    bench.settle()
    ready = bench.get(record.id)
    assert ready.status is Status.READY, ready.problem
    assert [str(layer.id) for layer in bench.manifest("s").layers[1:]] == [ready.layer]
    with bench.plane.state.reading() as tx:
        rows = tx.bindings.history(bench.plane.store_id, "s")
    assert [row.cause for row in rows] == ["request", "create"]
    assert bench.run("s", "import tool, foo")[0] == 0
    actions = bench.actions(record.id)
    assert actions.count("request.ready") == actions.count("binding.request") == 1


def test_several_workers_lose_nothing_and_build_nothing_twice(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 4.10: no request lost or built twice."""
    built: list[str] = []
    real = bindings.rebase

    def counting(store: object, manifest: object) -> object:
        built.append(manifest.session)  # type: ignore[attr-defined]
        return real(store, manifest)  # type: ignore[arg-type]

    monkeypatch.setattr(bindings, "rebase", counting)
    names = [f"s{number}" for number in range(6)]
    for name in names:
        bench.session(name)
    requests = [bench.ask(name, f"foo=={1 + number % 2}") for number, name in enumerate(names)]
    stop = threading.Event()
    workers = [Worker(bench.plane, name=f"w{number}", jobs=1) for number in range(3)]
    threads = [threading.Thread(target=worker.run, args=(stop,)) for worker in workers]
    for thread in threads:
        thread.start()
    for request in requests:
        assert bench.env(request.session).wait(request.session, request.id, 60).status == "ready"
    stop.set()
    for thread in threads:
        thread.join()
    assert sorted(built) == names
    with bench.plane.state.reading() as tx:
        assert tx.workers.alive(bench.plane.store_id, 60) == []
        assert tx.audit.verify() is None


def test_two_requests_of_one_session_at_once_are_both_bound(bench: Bench) -> None:
    bench.session("s")
    bench.catalog('[allow]\npackages = ["foo", "unlisted", "spare"]\n')
    requests = [bench.ask("s", need) for need in ("foo", "unlisted", "spare")]
    stop = threading.Event()
    threads = [
        threading.Thread(target=Worker(bench.plane, name=f"w{number}", jobs=1).run, args=(stop,)) for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for request in requests:
        assert bench.env("s").wait("s", request.id, 60).status == "ready"
    stop.set()
    for thread in threads:
        thread.join()
    assert bench.run("s", "import foo, unlisted, spare")[0] == 0
    assert len(bench.manifest("s").layers) == 4


def test_a_request_waits_for_the_network_and_fails_only_after_many_attempts(
    light_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = light_bench
    real = extending.realise

    def away(*arguments: object, **options: object) -> object:
        raise EnvdslError.of("lock-index-unreachable", "no route", exit_status=ExitStatus.ENVIRONMENT)

    monkeypatch.setattr(extending, "realise", away)
    bench.session("s")
    record = bench.ask("s", "foo")
    bench.settle()
    assert bench.get(record.id).status is Status.BUILDING
    monkeypatch.setattr(extending, "realise", real)
    bench.clock.forward(minutes=5)
    bench.settle()
    assert bench.get(record.id).status is Status.READY

    monkeypatch.setattr(extending, "realise", away)
    again = bench.ask("s", "tool")
    for _ in range(ATTEMPTS + 1):
        bench.settle()
        bench.clock.forward(minutes=5)
    failed = bench.get(again.id)
    assert failed.status is Status.FAILED
    assert failed.problem is not None
    assert failed.problem["code"] == "lock-index-unreachable"


def test_a_defect_ends_its_request_and_no_worker(light_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = light_bench
    bench.session("s")

    def broken(*arguments: object, **options: object) -> object:
        raise RuntimeError("/secret/place")

    with monkeypatch.context() as patch:
        patch.setattr(extending, "realise", broken)
        record = bench.settled("s", "foo")
    assert record.status is Status.FAILED
    assert record.problem is not None
    assert record.problem["code"] == "app-defect"
    assert "/secret/place" not in str(record.problem)
    assert bench.settled("s", "tool").status is Status.READY


def test_a_question_without_an_end_holds_no_worker(light_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 4.9: limits. A resolver may look for an answer for ever."""
    monkeypatch.setattr("envdsl.lock.uv.PATIENCE", 0.001)
    light_bench.session("s")
    record = light_bench.settled("s", "foo")
    assert record.status is Status.FAILED
    assert record.problem is not None
    assert record.problem["code"] == "lock-uv-timeout"


def test_a_catalog_with_a_mistake_fails_no_request(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    bench.catalog("[alow]\n")
    record = bench.settled("s", "foo")
    assert record.status is Status.PENDING
    bench.catalog('[allow]\npackages = ["foo"]\n')
    bench.clock.forward(minutes=5)
    bench.settle()
    assert bench.get(record.id).status is Status.READY


def test_nor_does_a_catalog_that_cannot_be_read(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    bench.project.config.catalog.unlink()
    bench.project.config.catalog.mkdir()  # for root, permissions are no hindrance
    record = bench.settled("s", "foo")
    assert record.problem is not None
    assert (record.status, record.problem["code"]) == (Status.PENDING, "policy-catalog-unreadable")
    assert "policy cannot be read at the moment" in bench.env("s").wait("s", record.id, 0).next


def test_who_asks_and_who_reads_the_log_hear_that_the_catalog_has_a_mistake(
    light_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, warnings = light_bench, list[str]()
    monkeypatch.setattr(bench.project.reporter, "warn", lambda found: warnings.append(found.message))
    bench.session("s")
    bench.catalog("[allow]\n[alow]\n")
    record = bench.settled("s", "foo")
    answer = bench.env("s").wait("s", record.id, 0)
    assert answer.status == "pending"
    assert "policy cannot be read at the moment" in answer.next
    assert "layers.d/catalog.toml:2:2: " in warnings[0]
    assert record.problem is not None
    assert record.problem["code"] == "policy-catalog-key"
    bench.catalog('[allow]\npackages = ["foo"]\n')
    bench.clock.forward(minutes=5)
    assert bench.worker.step()
    approved = bench.get(record.id)
    assert (approved.status, approved.problem) == (Status.APPROVED, None)
    assert "being worked on" in bench.env("s").wait("s", record.id, 0).next


def test_what_the_catalog_denies_by_now_is_not_built_whoever_approved_it(light_bench: Bench) -> None:
    """Issue 4.1: what is denied stays denied, between the decision and the build, too."""
    bench = light_bench
    bench.session("s")
    by_person, by_rule = bench.ask("s", "spare"), bench.ask("s", "foo")
    assert bench.worker.step()
    assert bench.worker.step()
    digest = bench.get(by_person.id).digest
    decide(bench.plane, ADMIN, by_person.id, Choice.APPROVE, digest=digest)
    assert [bench.get(item.id).status for item in (by_rule, by_person)] == [Status.APPROVED, Status.APPROVED]
    bench.catalog('[deny]\nfoo = "it was taken over"\nspare = "and so was this"\n')
    bench.settle()
    assert [bench.get(item.id).status for item in (by_rule, by_person)] == [Status.REFUSED, Status.REFUSED]


def test_a_worker_that_lost_its_request_binds_nothing(light_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 4.3: a worker that was away for longer than its lease stops where it would write."""
    bench = light_bench
    bench.session("s")
    record = bench.ask("s", "foo")
    real = extending.realise
    other = Worker(bench.plane, name="other", jobs=1)

    def slow(*arguments: object, **options: object) -> object:
        layer = real(*arguments, **options)  # type: ignore[arg-type]
        monkeypatch.setattr(extending, "realise", real)
        bench.clock.forward(seconds=LEASE + 1)
        assert other.step()
        return layer

    monkeypatch.setattr(extending, "realise", slow)
    bench.settle()
    assert bench.get(record.id).status is Status.READY
    assert bench.actions(record.id).count("binding.request") == 1
    (ready,) = [event for event in bench.events(record.id) if event.action == "request.ready"]
    assert ready.actor == "other"


def test_an_interrupt_hands_the_request_back_at_once(light_bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = light_bench
    bench.session("s")
    record = bench.ask("s", "foo")

    def interrupted(*arguments: object, **options: object) -> object:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(extending, "realise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bench.settle()
    assert bench.get(record.id).worker is None
    bench.settle()
    assert bench.get(record.id).status is Status.READY


def test_a_wheel_that_is_not_what_the_plan_says_fails_the_request(light_bench: Bench) -> None:
    bench = light_bench
    before = bench.session("s")
    record = bench.ask("s", "foo==1")
    assert bench.worker.step()
    for wheel in (bench.root / "wheels").glob("foo-1-*"):
        wheel.write_bytes(wheel.read_bytes()[:-1] + b"x")
    bench.settle()
    failed = bench.get(record.id)
    assert failed.status is Status.FAILED
    assert failed.problem is not None
    assert "foo-1-py3-none-any.whl" in failed.problem["message"]
    assert bench.manifest("s") == before


def test_an_idle_worker_keeps_nobody_from_writing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks whether there is something to do before it takes the writers' turn."""
    bench.session("s")
    worker = Worker(bench.plane)
    assert worker.step() is False  # says that it is there

    def writes() -> None:
        raise AssertionError("it writes")

    with monkeypatch.context() as patch:
        patch.setattr(bench.plane.state, "transaction", writes)
        assert worker.step() is False
    bench.ask("s", "foo")
    assert worker.step() is True

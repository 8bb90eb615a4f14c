"""The crew: every job and every part is done once, large jobs by all threads, and it stops when it is told to."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from envdsl.realise.crew import Cancelled, Crew


def test_every_job_runs_once_and_the_first_begins_first() -> None:
    done: list[int] = []
    assert Crew(1).run([lambda n=n: done.append(n) for n in range(20)]) == []  # type: ignore[misc]
    assert done == list(range(20))


def test_idle_threads_help_with_shared_parts() -> None:
    crew = Crew(2)
    meeting = threading.Barrier(2)

    def job() -> None:
        # Two parts that can only be done at the same time.
        crew.share(lambda _: meeting.wait(10), [1, 2])

    assert crew.run([job]) == []


def test_all_parts_are_done_before_a_job_goes_on() -> None:
    crew = Crew(3)
    totals = []

    def job() -> None:
        done: list[int] = []

        def work(part: int) -> None:
            time.sleep(0.0005)
            done.append(part)

        crew.share(work, range(30))
        totals.append(sorted(done))

    assert crew.run([job] * 5) == []
    assert totals == [list(range(30))] * 5


def test_after_a_failure_running_jobs_are_finished_and_no_new_one_begins() -> None:
    crew = Crew(2)
    began: list[str] = []
    failed = threading.Event()

    def failing() -> None:
        began.append("failing")
        failed.set()
        raise ValueError("broken")

    def running() -> None:
        began.append("running")
        failed.wait(10)
        time.sleep(0.05)
        began.append("finished")

    errors = crew.run([running, failing, *[lambda: began.append("late")] * 5])
    assert [str(error) for error in errors] == ["broken"]
    assert sorted(began) == ["failing", "finished", "running"]


def test_a_part_that_fails_ends_its_job_with_that_failure() -> None:
    crew = Crew(2)
    done: list[int] = []

    def work(part: int) -> None:
        if part == 3:
            raise ValueError("part 3")
        done.append(part)

    (error,) = crew.run([lambda: crew.share(work, range(10_000))])
    assert str(error) == "part 3"
    assert len(done) < 10_000


def test_an_interrupt_stops_jobs_at_their_next_part_and_waits_for_their_cleaning() -> None:
    crew = Crew(2)
    started, cleaned = threading.Event(), []

    def job() -> None:
        try:
            crew.share(lambda _: (started.set(), time.sleep(0.01)), range(10_000))
        except Cancelled:
            time.sleep(0.05)
            cleaned.append(True)
            raise

    def interrupt() -> None:
        started.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        crew.run([job])
    assert cleaned == [True]


def test_an_interrupt_does_not_wait_for_another_process() -> None:
    crew = Crew(1)
    started, release = threading.Event(), threading.Event()

    def job() -> None:
        crew.blocked()
        started.set()
        release.wait(30)

    def interrupt() -> None:
        started.wait(10)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        crew.run([job])
    release.set()
    assert time.monotonic() - begin < 10


def test_jobs_that_come_later_are_done_with_those_that_were_there() -> None:
    crew = Crew(2)
    done: list[str] = []
    first = threading.Event()

    def feed() -> None:
        assert first.wait(10)
        crew.add(lambda: done.append("late"))

    assert crew.run([lambda: (done.append("early"), first.set())], feed=feed) == []
    assert done == ["early", "late"]


def test_after_a_failure_nothing_more_is_asked_for() -> None:
    crew = Crew(1)
    failed = threading.Event()

    def failing() -> None:
        failed.set()
        raise ValueError("broken")

    def feed() -> None:
        assert failed.wait(10)
        for _ in range(1000):
            time.sleep(0.01)
            crew.add(lambda: None)
        raise AssertionError("nobody said that it was over")

    assert [str(error) for error in crew.run([failing], feed=feed)] == ["broken"]


def test_what_stops_the_feeding_stops_the_jobs() -> None:
    crew = Crew(2)
    started, ended = threading.Event(), []

    def job() -> None:
        try:
            crew.share(lambda _: (started.set(), time.sleep(0.01)), range(10_000))
        except Cancelled:
            ended.append(True)
            raise

    def feed() -> None:
        started.wait(10)
        raise ValueError("no network")

    with pytest.raises(ValueError, match="no network"):
        crew.run([job], feed=feed)
    assert ended == [True]

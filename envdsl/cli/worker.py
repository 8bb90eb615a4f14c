"""``envdsl worker``."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.control import controlled

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.policy.access import Principal


@click.command(epilog="\b\nExamples:\n  envdsl worker --jobs 2\n  envdsl worker --once   # from a timer")
@click.option("--once", is_flag=True, help="End when there is nothing left to do.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), default=1, show_default=True, help="Requests at a time.")
@controlled
def worker(plane: ControlPlane, principal: Principal, once: bool, jobs: int) -> None:
    """Resolve, build and bind what sessions ask for, and deliver announcements.

    Any number may run, beside `envdsl serve` too. SIGTERM and Ctrl-C let it finish what it has in hand; what a worker
    that is killed had is taken over by another.
    """
    from envdsl.app.control import webhooks
    from envdsl.app.control.worker import Worker

    webhooks.warn_of_secret(plane)
    stop = threading.Event()

    def asked_to_stop(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt  # the second time: at once
        stop.set()

    before = {number: signal.signal(number, asked_to_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    crew = [Worker(plane) for _ in range(jobs)]
    failures: list[BaseException] = []

    def work(member: Worker) -> None:
        try:
            member.drain(stop) if once else member.run(stop)
        except BaseException as error:
            failures.append(error)
            stop.set()

    threads = [threading.Thread(target=work, args=(member,), daemon=True) for member in crew]
    try:
        for thread in threads:
            thread.start()
        output.message(f"working on requests with {output.count(jobs, 'thread')}; Ctrl-C ends it")
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # signals are handled between
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures:
        raise failures[0]

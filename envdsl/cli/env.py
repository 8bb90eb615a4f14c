"""``envdsl env``: the tool python_env on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.completing import complete_requests
from envdsl.cli.control import controlled
from envdsl.cli.options import as_json, complete_sessions
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.control.answers import RequestAnswer, StatusAnswer
    from envdsl.app.control.plane import ControlPlane
    from envdsl.policy.access import Principal

_READY = ("ready", "present")
_REFUSED = ("refused", "denied")
_FAILED = ("failed", "cancelled", "expired")


@click.group()
def env() -> None:
    """Packages of a session: what is installed, and asking for more."""


@env.command(epilog="\b\nExample:\n  envdsl env status report-7")
@click.argument("session", shell_complete=complete_sessions)
@as_json
@controlled
def status(plane: ControlPlane, principal: Principal, session: str, as_json: bool) -> None:
    """What can be imported in SESSION, and which requests are open."""
    from envdsl.app.control.python_env import PythonEnv

    _show(PythonEnv(plane, principal).status(session), as_json)


@env.command(
    epilog="\b\nExamples:\n  envdsl env request report-7 'rich>=13' polars --reason 'tables in the report'\n"
    "  envdsl env request report-7 --wheel dist/mine-1.0-py3-none-any.whl --wait 0"
)
@click.argument("session", shell_complete=complete_sessions)
@click.argument("requirements", nargs=-1, metavar="[REQUIREMENT]...")
@click.option(
    "--wheel",
    "-w",
    "wheels",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A wheel that no index has; a person decides on it.",
)
@click.option("--reason", default="", metavar="TEXT", help="What it is needed for: whoever decides reads it.")
@click.option(
    "--wait", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="SECONDS", help="For an answer."
)
@click.option("--key", metavar="TEXT", help="The same key is the same request, however often it is sent.")
@as_json
@controlled
def request(
    plane: ControlPlane,
    principal: Principal,
    session: str,
    requirements: tuple[str, ...],
    wheels: tuple[Path, ...],
    reason: str,
    wait: float,
    key: str | None,
    as_json: bool,
) -> int:
    """Ask for packages in SESSION. What the catalog allows comes by itself, the rest waits for a person.

    Where no `envdsl worker` or `envdsl serve` is alive, the work is done by this command. Exit status 0 once it can be
    imported, 75 while it has no outcome (a person has to decide, or the time is over: `env wait` goes on), 3 where it
    was refused or denied, 1 where it failed, was cancelled or expired.
    """
    from contextlib import nullcontext

    from envdsl.app.control import uploads
    from envdsl.app.control.inprocess import working
    from envdsl.app.control.python_env import PythonEnv

    environment = PythonEnv(plane, principal)
    environment.manifest(session)  # whether there is one, and whether the caller may: before anything is uploaded
    received = []
    for wheel in wheels:
        with wheel.open("rb") as stream:
            received.append(uploads.receive(plane, wheel.name, stream)[0])
    with working(plane) if wait else nullcontext():
        answer = environment.request(session, requirements, received, reason, wait, key=key)
    _show(answer, as_json)
    return exit_status(answer)


@env.command(epilog="\b\nExample:\n  envdsl env wait report-7 req-01k8… --timeout 30")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("request_id", metavar="REQUEST", shell_complete=complete_requests)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="At most so long.",
)
@as_json
@controlled
def wait(
    plane: ControlPlane, principal: Principal, session: str, request_id: str, timeout: float, as_json: bool
) -> int:
    """Wait until REQUEST has an outcome, or the time is over.

    Exit status as of `env request`: 0 once it can be imported, 75 while it has no outcome.
    """
    from envdsl.app.control.inprocess import working
    from envdsl.app.control.python_env import PythonEnv

    with working(plane):
        answer = PythonEnv(plane, principal).wait(session, request_id, timeout)
    _show(answer, as_json)
    return exit_status(answer)


def exit_status(answer: RequestAnswer) -> int:
    """0 for what can be imported alone; 3 where policy or a person says no, 1 where nothing came of it, 75 before."""
    if answer.status in _READY:
        return ExitStatus.OK
    if answer.status in _REFUSED:
        return ExitStatus.REFUSED
    return ExitStatus.FAILED if answer.status in _FAILED else ExitStatus.PENDING


def _show(answer: StatusAnswer | RequestAnswer, as_json: bool) -> None:
    from envdsl.app.control import answers

    if as_json:
        output.result_json(answers.to_json(answer))
    else:
        output.result(answers.to_text(answer))

"""``envdsl requests``: what sessions ask for, and deciding on it."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.completing import complete_open_requests, complete_requests
from envdsl.cli.control import controlled
from envdsl.cli.options import as_json, complete_sessions

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.policy.access import Principal
    from envdsl.policy.proposal import Choice
    from envdsl.state.records import RequestRecord

_STATUSES = (
    "pending",
    "approved",
    "isolated",
    "building",
    "ready",
    "failed",
    "denied",
    "refused",
    "cancelled",
    "expired",
)


@click.group()
def requests() -> None:
    """What sessions ask for: look at it, decide on it, make it the project's."""


@requests.command(
    "list", epilog="\b\nExamples:\n  envdsl requests list\n  envdsl requests list --session report-7 --all --json"
)
@click.option("--session", metavar="SESSION", help="Of one session.", shell_complete=complete_sessions)
@click.option("--status", "statuses", multiple=True, type=click.Choice(_STATUSES), help="In these states.")
@click.option("--all", "-a", "everything", is_flag=True, help="Those that have ended, too.")
@click.option("--limit", "-n", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many.")
@as_json
@controlled
def list_(
    plane: ControlPlane,
    principal: Principal,
    session: str | None,
    statuses: tuple[str, ...],
    everything: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List requests, the newest first: those that have not ended, unless asked otherwise."""
    from envdsl.app.control import asking
    from envdsl.state.records import Status

    wanted = [Status(item) for item in statuses] or [item for item in Status if everything or not item.ended]
    found = asking.listing(plane, principal, session=session, statuses=wanted, limit=limit)
    if as_json:
        output.result_json({"requests": [_described(record) for record in found]})
        return
    for record in found:
        asked = " ".join(_asked(record))
        output.result(f"{record.id}\t{record.session}\t{_state(record)}\t{_moment(record.created)}\t{asked}")


@requests.command(
    epilog="\b\nExamples:\n  envdsl requests show req-01k8…\n  envdsl requests show req-01k8… --format markdown"
)
@click.argument("request_id", metavar="REQUEST", shell_complete=complete_requests)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "markdown"]),
    default="text",
    show_default=True,
    help="Markdown is for chats and issue trackers.",
)
@as_json
@controlled
def show(plane: ControlPlane, principal: Principal, request_id: str, style: str, as_json: bool) -> None:
    """Show a request: the card that whoever decides is shown, or what became of it."""
    from envdsl.app.control import asking
    from envdsl.app.control.card import card
    from envdsl.cli.card import render

    record = asking.find(plane, principal, request_id)
    found = card(plane, record)
    if as_json:
        output.result_json({**_described(record), "card": found.to_json()})
    else:
        output.result(found.to_markdown() if style == "markdown" else render(found))


def _decision(choice: str, summary: str, details: str) -> click.Command:
    """A command that decides: the three differ in the word alone."""

    @requests.command(
        choice,
        help=f"{summary}\n\n{details}",
        epilog=f"\b\nExample:\n  envdsl requests {choice} req-01k8… --comment 'as agreed'",
    )
    @click.argument("request_id", metavar="REQUEST", shell_complete=complete_open_requests)
    @click.option("--digest", metavar="DIGEST", help="Of the plan that was shown.  [default: shown now, on a terminal]")
    @click.option("--comment", default="", metavar="TEXT", help="Whoever asked reads it.")
    @click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=120.0,
        show_default=True,
        metavar="SECONDS",
        help="For it to be built.",
    )
    @as_json
    @controlled
    def command(
        plane: ControlPlane,
        principal: Principal,
        request_id: str,
        digest: str | None,
        comment: str,
        wait: float,
        as_json: bool,
    ) -> int:
        from envdsl.policy.proposal import Choice

        return _decide(plane, principal, request_id, Choice(choice), digest, comment, wait, as_json)

    return command


approve = _decision(
    "approve",
    "Approve a request: the layer that was shown is built and bound.",
    "Administrators decide, and the owner of the session. Of several decisions the first wins. Exit "
    "status 75 where it is not built within --wait; `env wait` goes on.",
)
isolate = _decision(
    "isolate",
    "Let an iso layer replace the session's base.",
    "That is the way out where a request contradicts the base; the session's x layers go with it.",
)
deny = _decision("deny", "Deny a request.", "Nothing is built; whoever asked reads the comment.")


@requests.command(epilog="\b\nExample:\n  envdsl requests cancel req-01k8…")
@click.argument("request_id", metavar="REQUEST", shell_complete=complete_open_requests)
@as_json
@controlled
def cancel(plane: ControlPlane, principal: Principal, request_id: str, as_json: bool) -> None:
    """Cancel a request that is not being built yet."""
    from envdsl.app.control import asking

    record = asking.cancel(plane, principal, request_id)
    if as_json:
        output.result_json(_described(record))
    else:
        output.message(f"{record.id} is cancelled")


@requests.command(epilog="\b\nExample:\n  envdsl requests promote req-01k8… --name plotting && git add layers.d")
@click.argument("request_id", metavar="REQUEST", shell_complete=complete_requests)
@click.option("--name", metavar="NAME", help="Of the layer.  [default: what the session calls it]")
@as_json
@controlled
def promote(plane: ControlPlane, principal: Principal, request_id: str, name: str | None, as_json: bool) -> None:
    """Make a request that proved useful the project's: write its layer and its lock into layers.d.

    Building the layer gives the very one that the session is bound to. Prints the files that were written.
    """
    from envdsl.app.control import promoting

    written = promoting.promote(plane, principal, request_id, name=name)
    root = plane.project.config.root
    paths = [path.relative_to(root).as_posix() for path in written]
    if as_json:
        output.result_json({"request": request_id, "written": paths})
        return
    for path in paths:
        output.result(path)


def _decide(
    plane: ControlPlane,
    principal: Principal,
    request_id: str,
    choice: Choice,
    digest: str | None,
    comment: str,
    wait: float,
    as_json: bool,
) -> int:
    from envdsl.app.control import asking
    from envdsl.app.control.deciding import decide
    from envdsl.app.control.inprocess import working
    from envdsl.app.control.python_env import PythonEnv
    from envdsl.cli.env import exit_status
    from envdsl.policy.proposal import Choice

    if digest is None and choice is not Choice.DENY and sys.stdin.isatty() and sys.stdout.isatty():
        digest = _after_a_look(plane, principal, request_id, choice)
    record = decide(plane, principal, request_id, choice, digest=digest, comment=comment)
    if choice is not Choice.DENY and wait:
        with working(plane):
            answer = PythonEnv(plane, principal).wait(record.session, record.id, wait)
        status = exit_status(answer)
        record = asking.find(plane, principal, record.id)
    else:
        status = 0
    if as_json:
        output.result_json(_described(record))
    else:
        output.result(f"{record.id}\t{record.session}\t{_state(record)}")
        if record.problem is not None:
            output.message(str(record.problem["message"]))
    return status


def _after_a_look(plane: ControlPlane, principal: Principal, request_id: str, choice: Choice) -> str | None:
    """The digest of what is shown now and agreed to."""
    from envdsl.app.control import asking
    from envdsl.app.control.card import card
    from envdsl.app.control.deciding import plan_of
    from envdsl.cli.card import render
    from envdsl.policy import encoding
    from envdsl.policy.proposal import Proposal

    record = asking.find(plane, principal, request_id)
    if record.proposal is None or record.status.value != "pending":
        return None  # `decide` says how it stands
    plan = plan_of(encoding.from_json(Proposal, record.proposal), choice)
    output.result(render(card(plane, record)))
    click.confirm(f"{choice.value} this?", abort=True)
    return plan.digest if plan is not None else None


def _described(record: RequestRecord) -> dict[str, object]:
    decision = record.decision
    return {
        "id": record.id,
        "session": record.session,
        "status": record.status.value,
        "needs-person": _waits(record),
        "requirements": list(record.requirements),
        "uploads": [str(upload["filename"]) for upload in record.uploads],
        "requester": record.requester,
        "reason": record.reason,
        "digest": record.digest,
        "layer": record.layer,
        "problem": dict(record.problem) if record.problem else None,
        "decision": {
            "by": decision.by,
            "choice": decision.choice,
            "digest": decision.digest,
            "at": decision.at.isoformat(),
            "comment": decision.comment,
        }
        if decision
        else None,
        "created": record.created.isoformat(),
        "updated": record.updated.isoformat(),
        "expires": record.expires.isoformat() if record.expires else None,
    }


def _waits(record: RequestRecord) -> bool:
    return record.status.value == "pending" and record.classification is not None


def _state(record: RequestRecord) -> str:
    return "needs a person" if _waits(record) else record.status.value


def _asked(record: RequestRecord) -> list[str]:
    return [*record.requirements, *(str(upload["filename"]) for upload in record.uploads)]


def _moment(at: datetime) -> str:
    return at.astimezone().isoformat(sep=" ", timespec="minutes")

"""``envdsl token``."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from envdsl.cli import output
from envdsl.cli.ages import age
from envdsl.cli.completing import complete_tokens
from envdsl.cli.control import controlled
from envdsl.cli.options import as_json, complete_sessions

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.policy.access import Principal
    from envdsl.state.records import TokenRecord

_ROLES = ("agent", "owner", "administrator", "reader")


@click.group()
def token() -> None:
    """Access tokens for the service: for agents, people and monitoring."""


@token.command(
    epilog="\b\nExamples:\n  envdsl token create --role agent --session report-7 --expires 7d --name report-agent\n"
    "  envdsl token create --role owner --name alice"
)
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    required=True,
    help="agent: asks in one session; owner: decides for the sessions of NAME; administrator; reader: sees everything.",
)
@click.option(
    "--session", metavar="SESSION", help="The one session of an agent's token.", shell_complete=complete_sessions
)
@click.option("--name", required=True, help="Who acts with it; for an owner, to whom sessions belong.")
@click.option("--expires", type=age, metavar="AGE", help="Valid for so long (7d, 12h).  [default: until revoked]")
@as_json
@controlled
def create(
    plane: ControlPlane,
    principal: Principal,
    role: str,
    session: str | None,
    name: str,
    expires: float | None,
    as_json: bool,
) -> None:
    """Make a token and print it, this once: only a digest of it is kept."""
    from envdsl.app.control import tokens
    from envdsl.policy.access import Role

    text, record = tokens.create(
        plane,
        principal,
        role=Role(role),
        name=name,
        session=session,
        expires=timedelta(seconds=expires) if expires is not None else None,
    )
    described = _described(plane, record)
    if as_json:
        output.result_json({"token": text, **described})
        return
    output.result(text)
    until = f"until {_moment(record.expires)}" if record.expires is not None else f"until `token revoke {record.id}`"
    output.message(f"{record.id} is valid {until}; it is not shown again")


@token.command("list", epilog="\b\nExample:\n  envdsl token list --json")
@click.option("--all", "-a", "everything", is_flag=True, help="Those that are expired or revoked, too.")
@as_json
@controlled
def list_(plane: ControlPlane, principal: Principal, everything: bool, as_json: bool) -> None:
    """List the tokens, the newest first, with their last use; never the tokens themselves."""
    from envdsl.app.control import tokens

    found = [_described(plane, record) for record in tokens.listing(plane, principal)]
    shown = [item for item in found if everything or item["status"] == "valid"]
    if as_json:
        output.result_json({"tokens": shown})
        return
    for item in shown:
        used = f"used {item['used']}" if item["used"] else "never used"
        until = f"until {item['expires']}" if item["expires"] else "without end"
        words = (item["id"], item["role"], item["name"], item["session"] or "-", item["status"], until, used)
        output.result("\t".join(words))


@token.command(epilog="\b\nExample:\n  envdsl token revoke tok-01k…")
@click.argument("identifier", metavar="ID", shell_complete=complete_tokens)
@as_json
@controlled
def revoke(plane: ControlPlane, principal: Principal, identifier: str, as_json: bool) -> None:
    """End a token: from now on it opens nothing."""
    from envdsl.app.control import tokens

    record = tokens.revoke(plane, principal, identifier)
    described = _described(plane, record)
    if as_json:
        output.result_json(described)
    else:
        output.result(f"{record.id}\trevoked\t{_moment(record.revoked)}")


def _described(plane: ControlPlane, record: TokenRecord) -> dict[str, Any]:
    from envdsl.app.control import tokens

    return {
        "id": record.id,
        "role": record.role,
        "name": record.name,
        "session": record.session,
        "status": tokens.status(plane, record),
        "created": _moment(record.created),
        "expires": _moment(record.expires),
        "revoked": _moment(record.revoked),
        "used": _moment(record.used),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")

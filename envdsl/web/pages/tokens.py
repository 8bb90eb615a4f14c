"""Access tokens: made here (and shown once), seen without their secrets, revoked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.policy.access import Role
from envdsl.web.pages import names, problems
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.state.records import TokenRecord

_MOST_DAYS = 3650


@dataclass(frozen=True, slots=True)
class TokenLine:
    """``state`` is ``valid``, ``expired`` or ``revoked``."""

    record: TokenRecord
    state: str


@dataclass(frozen=True, slots=True)
class Filled:
    """The form for a new token, as it was filled in."""

    role: str = Role.AGENT.value
    name: str = ""
    session: str = ""
    days: str = "90"


@dataclass(frozen=True, slots=True)
class TokensView:
    """``text`` is the token that was just ``made``: the only place where it is ever shown."""

    tokens: Sequence[TokenLine]
    sessions: Sequence[str]
    roles: Sequence[str] = tuple(role.value for role in Role)
    filled: Filled = Filled()
    problem: Diagnostic | None = None
    made: TokenRecord | None = None
    text: str = ""


def listing(visit: Visit) -> Response:
    return visit.page("tokens.html", TokensView(_lines(visit), names.visible(visit)))


def create(visit: Visit) -> Response:
    from envdsl.app.control import tokens

    filled = Filled(visit.field("role"), visit.field("name"), visit.field("session"), visit.field("days"))
    try:
        text, made = tokens.create(
            visit.plane,
            visit.principal,
            role=Role(visit.choice("role", [role.value for role in Role])),
            name=filled.name or (f"agent:{filled.session}" if filled.session else ""),
            session=filled.session or None,
            expires=_days(filled.days),
        )
    except EnvdslError as error:
        view = TokensView(_lines(visit), names.visible(visit), filled=filled, problem=error.diagnostics[0])
        return visit.page("tokens.html", view, status=422)
    return visit.page("tokens.html", TokensView(_lines(visit), names.visible(visit), made=made, text=text))


def revoke(visit: Visit) -> Response:
    from envdsl.app.control import tokens

    tokens.revoke(visit.plane, visit.principal, visit.request.path_params["token"])
    return visit.redirect("/tokens", done="revoked")


def _lines(visit: Visit) -> list[TokenLine]:
    from envdsl.app.control import tokens

    found = tokens.listing(visit.plane, visit.principal)
    return [TokenLine(record, tokens.status(visit.plane, record)) for record in found]


def _days(text: str) -> timedelta | None:
    """None for an empty field: no end. Raises :class:`EnvdslError` ``web-form`` for what is no number of days."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _MOST_DAYS):
        raise problems.not_a_number("days", 1, _MOST_DAYS)
    return timedelta(days=int(text))

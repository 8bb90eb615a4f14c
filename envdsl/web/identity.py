"""Who is asking: a token, a browser's login, or the user at the other end of the Unix socket, in this order.

A token or login goes before the socket's user, so that what carries less authority is never given more. A request
that a proxy passed on has the proxy at the other end of its socket: that says nothing of who asks.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request

from envdsl.app.control import tokens
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Principal
from envdsl.web import peer
from envdsl.web.threads import in_thread

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.state.records import TokenRecord
    from envdsl.web.logins import Logins
    from envdsl.web.uses import Uses

T = TypeVar("T")

_PROXY_HEADERS = ("forwarded", "via", "x-real-ip", "x-forwarded-")  # beginnings of names


class Means(StrEnum):
    """How a caller was identified."""

    TOKEN = "token"  # sent on purpose with each request
    LOGIN = "login"  # a cookie, which a browser sends whoever made it ask
    PEER = "peer"  # the socket's user: the same holds for a browser behind `ssh -L`


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. ``csrf`` is what forms of this caller must carry: empty for a token, which no browser adds itself."""

    principal: Principal
    means: Means
    csrf: str = ""


def address(request: Request) -> str:
    """What failures are counted by: the client's address, or the user of the Unix socket."""
    uid = getattr(request.state, peer.STATE, None)
    if request.client is not None:
        return request.client.host
    return "unix" if uid is None else f"uid {uid}"


async def identify(request: Request) -> Identity | None:
    """The caller, None for an anonymous one. Raises :class:`EnvdslError` ``web-token-invalid`` for a token that is
    unknown, expired or revoked; ``web-too-many-requests`` after too many of those from one address."""
    state = request.app.state
    if (header := request.headers.get("authorization")) is not None:
        return await _by_token(request, header)
    logins: Logins = state.logins
    if (cookie := request.cookies.get(logins.cookie)) and (login := logins.find(cookie)):
        record = await _look(request, partial(_valid, state.plane, state.uses, identifier=login.token))
        if record is not None:
            return Identity(tokens.principal(record), Means.LOGIN, login.csrf)
        logins.end(cookie)
    uid = getattr(request.state, peer.STATE, None)
    if uid is None or not state.settings.trust_peer or any(name.startswith(_PROXY_HEADERS) for name in request.headers):
        return None
    principal = await in_thread(request, partial(state.plane.principal_of_user, uid))
    return Identity(principal, Means.PEER, _peer_csrf(state.secret, uid)) if principal is not None else None


async def _by_token(request: Request, header: str) -> Identity:
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        if wait := request.app.state.failures.take(address(request)):
            raise too_many(wait, "too many tokens that are not valid came from this address")
        raise invalid_token("the Authorization header holds no Bearer token")
    found = await check_token(request, text.strip())
    return Identity(found[1], Means.TOKEN)


async def check_token(request: Request, text: str) -> tuple[str, Principal]:
    """The id and the principal of a valid token. Raises as :func:`identify`.

    A valid one always passes: whoever shares an address with others (loopback, a proxy) must not be shut out by theirs.
    Nobody guesses 256 random bits, so that what is slowed down is noise, not an attack that could succeed.
    """
    state = request.app.state
    record = await _look(request, partial(_valid, state.plane, state.uses, text=text)) if text else None
    if record is None:
        if wait := state.failures.take(address(request)):
            raise too_many(wait, "too many tokens that are not valid came from this address")
        raise invalid_token("the token is unknown, expired or revoked")
    return record.id, tokens.principal(record)


async def _look(request: Request, function: Callable[[], T]) -> T:
    """Who asks for packages waits with the others who do: looking at a status goes before."""
    return await in_thread(request, function, writing=request.method not in ("GET", "HEAD"))


def _valid(plane: ControlPlane, uses: Uses, *, text: str = "", identifier: str = "") -> TokenRecord | None:
    """The token with this text or id, if it is valid now."""
    with plane.state.reading() as tx:
        store = plane.store_id
        record = tx.tokens.find(text, store=store) if text else tx.tokens.valid(identifier, store=store)
        if record is not None and tx.tokens.is_use_due(record):
            uses.note(record.id)
    return record


def invalid_token(message: str) -> EnvdslError:
    return EnvdslError.of(
        "web-token-invalid",
        message,
        hint="an administrator makes one with `envdsl token create`",
        exit_status=ExitStatus.REFUSED,
    )


def too_many(wait: int, message: str) -> EnvdslError:
    return EnvdslError.of(
        "web-too-many-requests",
        message,
        hint=f"try again in {wait} s",
        exit_status=ExitStatus.REFUSED,
        details={"retry-after": wait},
    )


def _peer_csrf(secret: bytes, uid: int) -> str:
    return hmac.new(secret, f"peer:{uid}".encode(), hashlib.sha256).hexdigest()

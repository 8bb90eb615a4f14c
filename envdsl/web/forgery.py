"""Requests that a foreign page makes a browser send (CSRF), and names that are rebound to this machine.

Only authority that a browser adds by itself can be abused so: a login's cookie, or the user of a forwarded Unix
socket. Two checks that fail closed: where the request comes from (Fetch Metadata, Origin), and the synchronizer token,
which a foreign page cannot read. Programs (no Origin, no Fetch Metadata) that come by the socket need neither.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Message, Receive

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.web.identity import Identity, Means
from envdsl.web.settings import Settings

HEADER = "x-csrf-token"
FIELD = "csrf"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]+")
_PEEK = 64 << 10  # bytes of a form that are looked at for the token


def check_host(headers: Mapping[str, str], settings: Settings) -> None:
    """Raises :class:`EnvdslError` ``web-host-unknown`` for a Host that this service is not called by."""
    value = headers.get("host", "")
    try:
        name = (urlsplit(f"//{value}").hostname or "").rstrip(".")
    except ValueError:
        name = ""
    # A header that goes on behind the name would make another path of the URL than the one that is routed.
    if name not in settings.hosts or not _HOST.fullmatch(value):
        raise EnvdslError.of(
            "web-host-unknown",
            f"this service is not called {value[:100]!r}",
            hint="`envdsl serve --host NAME` adds a name that it answers to",
            exit_status=ExitStatus.REFUSED,
        )


def check_origin(request: Request, settings: Settings) -> None:
    """Raises ``web-forged`` where the browser says that another site made it send this."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None and site not in ("same-origin", "none"):
        raise _forged(f"it was sent by another site (Sec-Fetch-Site: {site[:20]})")
    if origin is None:
        return
    schemes = {request.url.scheme} | ({"https"} if settings.https else set())
    if origin not in {f"{scheme}://{request.headers.get('host', '')}" for scheme in schemes}:
        raise _forged("its Origin is not this service")


def is_browser(request: Request) -> bool:
    return any(name in request.headers for name in ("origin", "sec-fetch-site", "sec-fetch-mode"))


async def check_forgery(request: Request, identity: Identity | None, settings: Settings) -> Receive:
    """Let a request pass that somebody sent on purpose; returns what its body is to be received from.

    Raises :class:`EnvdslError` ``web-forged``.
    """
    if request.method in SAFE or (identity is not None and identity.means is Means.TOKEN):
        return request.receive
    check_origin(request, settings)
    if identity is None or (identity.means is Means.PEER and not is_browser(request)):
        return request.receive
    receive = request.receive
    given = request.headers.get(HEADER)
    if given is None:
        given, receive = await _token_in_form(request)
    if given is None or not hmac.compare_digest(given.encode(), identity.csrf.encode()):
        raise _forged(f"it lacks the {HEADER} header, or `{FIELD}` as the first field of its form")
    return receive


async def _token_in_form(request: Request) -> tuple[str | None, Receive]:
    """The token in the first field of a form, and a ``receive`` that gives the whole body again.

    Only the beginning is read, so that an upload streams on; a token that is not there is none.
    """
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return None, request.receive
    seen: list[Message] = []
    body, more = b"", True
    found: str | None = None
    while more and found is None and len(body) < _PEEK:
        message = await request.receive()
        seen.append(message)
        if message["type"] != "http.request":
            break
        body += message.get("body", b"")
        more = message.get("more_body", False)
        found = _first_field(kind, body, complete=not more)

    async def receive() -> Message:
        return seen.pop(0) if seen else await request.receive()

    return found, receive


_MULTIPART = re.compile(
    rb'--[^\r\n]{1,200}\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n([A-Za-z0-9_-]{1,200})\r\n--', re.I
)
_URLENCODED = re.compile(rb"csrf=([A-Za-z0-9_-]{1,200})(&|$)")


def _first_field(kind: str, body: bytes, *, complete: bool) -> str | None:
    """The value of the field ``csrf`` at the beginning of ``body``, once it stands there whole."""
    match = (_MULTIPART if kind.startswith("multipart/") else _URLENCODED).match(body)
    if match is None or (match.end() == len(body) and not complete and not kind.startswith("multipart/")):
        return None
    return match[1].decode("ascii")


def _forged(why: str) -> EnvdslError:
    return EnvdslError.of(
        "web-forged",
        f"the request may have been forged: {why}",
        hint="load the page again and repeat what you did",
        exit_status=ExitStatus.REFUSED,
    )

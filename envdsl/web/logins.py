"""Browsers that logged in with a token: sessions of the admin page, kept in this process alone.

A browser holds a random cookie; here stands only its sha256, beside the id of the token that it was made with. The
token itself is forgotten, and looked up by its id at each request: revoking or expiring it ends its logins.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

from envdsl.web.settings import Settings

_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Login:
    """One browser. ``csrf`` is the synchronizer token of its forms; ``ends`` and ``idle`` are seconds of the clock."""

    token: str  # the id of the token, not the token
    csrf: str
    ends: float
    idle: float


class Logins:
    """All logins. ``clock`` gives seconds that never go back. Used by one thread: the event loop's."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._logins: dict[str, Login] = {}
        self.cookie = "__Host-envdsl" if settings.https else "envdsl"

    def begin(self, token: str) -> str:
        """A login with the token of this id. Returns the cookie's value, which is nowhere else."""
        now = self._clock()
        self._logins = {key: login for key, login in self._logins.items() if now < min(login.ends, login.idle)}
        while len(self._logins) >= _MOST:
            del self._logins[next(iter(self._logins))]
        value = secrets.token_urlsafe(32)
        ends = now + self._settings.login_lifetime
        self._logins[_digest(value)] = Login(token, secrets.token_urlsafe(32), ends, now + self._settings.login_idle)
        return value

    def find(self, cookie: str) -> Login | None:
        """The login of this cookie, its idle time begun anew; None where it is unknown or over."""
        key, now = _digest(cookie), self._clock()
        login = self._logins.get(key)
        if login is None:
            return None
        if now >= min(login.ends, login.idle):
            del self._logins[key]
            return None
        self._logins[key] = replace(login, idle=now + self._settings.login_idle)
        return login

    def end(self, cookie: str) -> None:
        self._logins.pop(_digest(cookie), None)


def _digest(cookie: str) -> str:
    # A lookup by digest tells a timing attack nothing about the cookie: it cannot choose the digest's prefix.
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).hexdigest()

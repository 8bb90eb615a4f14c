"""HTTP as all of envdsl speaks it: one kind of session, one rule for what is worth another attempt.

Certificates are those of the system (``truststore``), as with every other program of the machine;
proxies and netrc are what ``requests`` finds in the environment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import requests

CONNECT_TIMEOUT = 15.0  # seconds
READ_TIMEOUT = 60.0  # seconds without a single byte

# Statuses that say "not now": timeout, too early, too many requests, and the servers' own troubles.
_TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})

T = TypeVar("T")


def new_session() -> requests.Session:
    """A session that trusts what the system trusts. Sessions belong to one thread."""
    import ssl

    import requests
    import truststore
    from requests.adapters import HTTPAdapter

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    class SystemTrust(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, **options, ssl_context=context)

        def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
            return super().proxy_manager_for(*arguments, **options, ssl_context=context)

    session = requests.Session()
    session.headers["User-Agent"] = "envdsl"
    session.mount("https://", SystemTrust())
    return session


@dataclass(frozen=True)
class Retries:
    """How often to try again, and how long to wait before: exponential with jitter, in seconds."""

    attempts: int = 4
    first_delay: float = 0.5
    longest_delay: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, attempt: int, retry_after: float | None = None) -> None:
        """Sleep after failed attempt number ``attempt`` (from 0); a server's ``Retry-After`` goes first."""
        import random

        delay = self.first_delay * 2**attempt * random.uniform(0.75, 1.25)
        self.sleep(min(retry_after if retry_after is not None else delay, self.longest_delay))

    def call(self, action: Callable[[], T]) -> T:
        """``action()``, again while it fails in a way that may pass; the last failure is raised."""
        for attempt in range(self.attempts):
            try:
                return action()
            except Exception as error:
                if attempt + 1 == self.attempts or not is_transient(error):
                    raise
                self.wait(attempt, retry_after(error))
        raise AssertionError("attempts is at least one")


def is_transient(error: Exception) -> bool:
    """Whether the same request may succeed later."""
    import requests
    import urllib3

    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code in _TRANSIENT
    if isinstance(error, requests.exceptions.SSLError):
        return False
    return isinstance(
        error,
        requests.ConnectionError
        | requests.Timeout
        | requests.exceptions.ChunkedEncodingError
        | urllib3.exceptions.HTTPError
        | ConnectionError
        | TimeoutError,
    )


def retry_after(error: Exception) -> float | None:
    """The seconds that the server asked to wait (RFC 9110, 10.2.3), if it did."""
    from email.utils import parsedate_to_datetime

    import requests

    if not isinstance(error, requests.HTTPError) or error.response is None:
        return None
    value = error.response.headers.get("Retry-After", "").strip()
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def reason(error: Exception) -> str:
    """Why a request failed, in a few words and without the URL (which may hold what is nobody's business)."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"HTTP status {error.response.status_code}"
    if isinstance(error, requests.exceptions.SSLError):
        return "the server's certificate was not accepted"
    if isinstance(error, requests.Timeout | TimeoutError):
        return "no answer in time"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy refused or could not be reached"
    text = str(error)
    for phrase, meaning in (
        ("Name or service not known", "its name is unknown"),
        ("name resolution", "its name could not be looked up"),
        ("refused", "connection refused"),
        ("unreachable", "network unreachable"),
    ):
        if phrase in text:
            return meaning
    return "the connection broke"

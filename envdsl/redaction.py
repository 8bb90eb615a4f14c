"""Taking credentials out of text and URLs, before either gets anywhere.

Every path by which a URL, or a message of another program, reaches a message, a log or a file goes
through one of these two functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit, urlunsplit

MASK = "****"

_USERINFO = re.compile(r"""(?i)\b([a-z][a-z0-9+.-]*://)[^\s/?#"'<>]*@""")
_HEADER = re.compile(r"(?i)(authorization\s*[:=]\s*)(?:(basic|bearer|token|digest)\s+)?[^\s,;]+")
_PARAMETER = re.compile(
    r"""(?i)([?&][\w.%-]*(?:token|secret|passw|passwd|signature|credential|api-?key|access-?key|\bsig\b)[\w.%-]*=)"""
    r"""[^&\s"'<>#]+"""
)
_ACCESS_TOKEN = re.compile(r"\b(envdsl_[ador]_)[0-9a-f]{64}(?![0-9a-f])")  # :mod:`envdsl.state.tokens`
# Anything shorter would mask pieces of ordinary words.
_SHORTEST_SECRET = 4


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without userinfo in URLs, authorization headers, access tokens of envdsl, and query parameters that
    look like credentials.

    ``secrets`` are strings known to be secret (passwords that a keyring gave); they are masked as they are and
    percent-encoded.
    """
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, MASK).replace(quote(secret, safe=""), MASK)
    text = _USERINFO.sub(r"\1", text)
    text = _HEADER.sub(lambda match: f"{match[1]}{match[2] + ' ' if match[2] else ''}{MASK}", text)
    text = _ACCESS_TOKEN.sub(rf"\1{MASK}", text)
    return _PARAMETER.sub(rf"\1{MASK}", text)


def public_url(url: str) -> str:
    """``url`` without anything that could be a credential: userinfo, fragment, and a query that holds one."""
    parts = urlsplit(url)
    query = parts.query if redact(f"?{parts.query}") == f"?{parts.query}" else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))

"""What went wrong, as a page."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from envdsl.errors import Diagnostic
from envdsl.web.pages import preferences, rendering

# By HTTP status: the key of the title (``error.…`` of the catalogs).
_TITLES = {
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "not-found",
    409: "conflict",
    413: "too-large",
    429: "too-many",
    500: "defect",
    503: "environment",
}


@dataclass(frozen=True, slots=True)
class ErrorView:
    """``title`` is a key of the catalogs' ``error.…``."""

    title: str
    problem: Diagnostic


def error_page(request: Request, status: int, diagnostic: Diagnostic) -> Response:
    """``diagnostic`` as the page that answers ``request``."""
    return rendering.html(
        request,
        preferences.spoken(request),
        getattr(request.state, "principal", None),
        "error.html",
        status=status,
        view=ErrorView(_TITLES.get(status, "failed"), diagnostic),
    )

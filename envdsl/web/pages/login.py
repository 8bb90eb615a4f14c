"""The sign-in form. What it posts to, and the cookie, are :mod:`envdsl.web.signing_in`'s."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from envdsl.web.pages import preferences, rendering
from envdsl.web.signing_in import local_path


@dataclass(frozen=True, slots=True)
class LoginView:
    """``next`` is where the visitor wanted to go, ``failed`` the code of why the last attempt was refused."""

    next: str
    failed: str


async def login(request: Request) -> Response:
    view = LoginView(local_path(request.query_params.get("next", "/")), request.query_params.get("failed", ""))
    return rendering.html(request, preferences.spoken(request), None, "login.html", view=view)

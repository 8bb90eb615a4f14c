"""``POST /login`` and ``POST /logout``: a browser trades a token for a cookie, and gives it back."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from envdsl.errors import EnvdslError
from envdsl.web.identity import check_token
from envdsl.web.logins import Logins


async def login(request: Request) -> Response:
    """The form's ``token`` begins a login; ``next`` is where to go then, on this service."""
    async with request.form(max_files=0, max_fields=10) as form:
        token, wanted = form.get("token"), form.get("next")
    place = local_path(wanted if isinstance(wanted, str) else "")
    try:
        identifier, _principal = await check_token(request, token.strip() if isinstance(token, str) else "")
    except EnvdslError as error:
        request.state.problem = error.code
        return RedirectResponse(f"/login?failed={error.code}&next={quote(place, safe='/')}", 303)
    logins: Logins = request.app.state.logins
    _forget(request)
    response = RedirectResponse(place, 303)
    response.set_cookie(
        logins.cookie,
        logins.begin(identifier),
        path="/",
        secure=request.app.state.settings.https,
        httponly=True,
        samesite="strict",
    )
    return response


async def logout(request: Request) -> Response:
    """End the login of the cookie, here and in the browser."""
    _forget(request)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(request.app.state.logins.cookie, path="/", secure=request.app.state.settings.https)
    return response


def _forget(request: Request) -> None:
    logins: Logins = request.app.state.logins
    if cookie := request.cookies.get(logins.cookie):
        logins.end(cookie)


def local_path(wanted: str) -> str:
    """``wanted`` if it is a path of this service, else ``/``: a link must not send anybody elsewhere after a login.

    Browsers read ``//host`` and ``/\\host`` as another host, and drop tabs and newlines before they look.
    """
    safe = wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable()
    return wanted if safe and "\\" not in wanted else "/"

"""How a visitor wants the pages: language and colours, in two cookies that hold nothing else."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from envdsl.web.pages import languages
from envdsl.web.pages.languages import Language
from envdsl.web.signing_in import local_path

THEMES = ("auto", "light", "dark")
_LANGUAGE, _THEME = "language", "theme"
_YEAR = 365 * 24 * 3600


def spoken(request: Request) -> Language:
    """The language of the cookie, else of ``Accept-Language``."""
    code = request.cookies.get(_LANGUAGE, "")
    if code not in languages.CODES:
        code = languages.negotiate(request.headers.get("accept-language", ""))
    return languages.language(code)


def theme(request: Request) -> str:
    """One of :data:`THEMES`; ``auto`` follows the browser."""
    chosen = request.cookies.get(_THEME, "")
    return chosen if chosen in THEMES else "auto"


async def change(request: Request) -> Response:
    """Set what the form names, and go back to where it was sent from. For anybody: it concerns nobody else."""
    async with request.form(max_files=0, max_fields=5) as form:
        chosen = {name: value for name, value in form.items() if isinstance(value, str)}
    response = RedirectResponse(local_path(chosen.get("back", "")), 303)
    secure = request.app.state.settings.https
    for name, allowed in ((_LANGUAGE, languages.CODES), (_THEME, THEMES)):
        if (value := chosen.get(name, "")) in allowed:
            response.set_cookie(name, value, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)
    return response

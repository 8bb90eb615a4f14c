"""From a view to HTML: Jinja2, always escaping, where an undefined name is an error and not an empty string."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from envdsl.policy.access import Action, Principal, may
from envdsl.web.identity import Means
from envdsl.web.pages import preferences
from envdsl.web.pages.languages import CODES, Language, language

# The menu: message key, path, and what one must be allowed to see it (None: everybody who is known).
MENU: tuple[tuple[str, str, Action | None], ...] = (
    ("overview", "/", None),
    ("requests", "/requests", None),
    ("sessions", "/sessions", None),
    ("layers", "/layers", Action.SEE_STORE),
    ("catalog", "/catalog", Action.SEE_STORE),
    ("upload", "/upload", Action.UPLOAD),
    ("gc", "/gc", Action.COLLECT),
    ("audit", "/audit", Action.SEE_AUDIT),
    ("tokens", "/tokens", Action.MANAGE_TOKENS),
)


@cache
def environment() -> Environment:
    """The templates. They get their words by ``t(key)`` alone: no template holds prose."""
    found = Environment(
        loader=PackageLoader("envdsl.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["short"] = short
    return found


def short(text: str, length: int = 12) -> str:
    """The beginning of a digest or an id, as people compare them; the kind of a layer's id stays whole."""
    kind, separator, rest = text.partition("-")
    if separator and kind in ("base", "x", "iso"):
        return f"{kind}-{rest[:length]}"
    return text[:length]


def html(
    request: Request,
    spoken: Language,
    principal: Principal | None,
    template: str,
    *,
    status: int = 200,
    **values: Any,
) -> Response:
    """``template`` with ``values`` (above all ``view``), as an answer in the language ``spoken``.

    ``principal`` is who reads it; None on the sign-in form, and on errors that nobody is known to have made.
    """
    now = request.app.state.plane.now()
    identity = getattr(request.state, "identity", None)
    text = (
        environment()
        .get_template(template)
        .render(
            t=spoken.text,
            says=spoken.has,
            size=spoken.size,
            number=spoken.number,
            moment=spoken.moment,
            duration=spoken.duration,
            ago=partial(spoken.ago, now=now),
            language=spoken,
            languages=[language(code) for code in CODES],
            theme=preferences.theme(request),
            principal=principal,
            may_see=lambda action: principal is not None and may(principal, action),
            menu=[
                (key, path) for key, path, action in MENU if principal and (action is None or may(principal, action))
            ],
            here=request.url.path,
            csrf=getattr(request.state, "csrf", ""),
            has_login=identity is not None and identity.means is Means.LOGIN,
            done=request.query_params.get("done", ""),
            Action=Action,
            **values,
        )
    )
    headers = {"Vary": "Accept-Language, Cookie", "Content-Language": spoken.tag}
    return HTMLResponse(text, status, headers)

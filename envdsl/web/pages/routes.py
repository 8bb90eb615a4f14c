"""All pages at a glance: who may do what, where. Routes and authorisation come from here."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from envdsl.policy.access import Action
from envdsl.web.api.endpoint import Concerns
from envdsl.web.pages import (
    audit,
    catalog,
    gc,
    layers,
    login,
    overview,
    preferences,
    requests,
    sessions,
    tokens,
    uploads,
)
from envdsl.web.pages.page import Page
from envdsl.web.pages.static import PackageFiles
from envdsl.web.pages.visit import Visit

_CALLER, _STORE, _SESSION, _REQUEST = Concerns.CALLER, Concerns.STORE, Concerns.SESSION, Concerns.REQUEST

# fmt: off
_PAGES: tuple[Page, ...] = (
    Page("GET", "/", None, _CALLER, overview.overview),
    Page("POST", "/health", Action.SEE_STORE, _STORE, overview.health, slow=True),

    Page("GET", "/requests", None, _CALLER, requests.queue),
    Page("GET", "/requests/{request}", Action.SEE_SESSION, _REQUEST, requests.request),
    Page("POST", "/requests/{request}/decision", Action.DECIDE, _REQUEST, requests.decide),
    Page("POST", "/requests/{request}/cancel", Action.CANCEL, _REQUEST, requests.cancel),
    Page("POST", "/requests/{request}/promotion", Action.PROMOTE, _REQUEST, requests.promote, slow=True),

    Page("GET", "/sessions", None, _CALLER, sessions.listing),
    Page("GET", "/sessions/{session}", Action.SEE_SESSION, _SESSION, sessions.show),
    Page("POST", "/sessions/{session}/requests", Action.REQUEST, _SESSION, sessions.ask),
    Page("POST", "/sessions/{session}/rebase", Action.REBIND, _SESSION, sessions.rebase, slow=True),
    Page("POST", "/sessions/{session}/undo", Action.REBIND, _SESSION, sessions.undo, slow=True),
    Page("POST", "/sessions/{session}/seal", Action.REBIND, _SESSION, sessions.seal, slow=True),

    Page("GET", "/layers", Action.SEE_STORE, _STORE, layers.layers, slow=True),
    Page("GET", "/layers/{layer}", Action.SEE_STORE, _STORE, layers.layer, slow=True),
    Page("GET", "/catalog", Action.SEE_STORE, _STORE, catalog.catalog),

    Page("GET", "/upload", Action.UPLOAD, _STORE, uploads.form),
    Page("POST", "/upload", Action.UPLOAD, _STORE, uploads.receive, slow=True),
    # Whether the visitor may ask in the session that the form names, is asked where it is known.
    Page("POST", "/upload/request", Action.UPLOAD, _STORE, sessions.ask_with_wheel),

    Page("GET", "/gc", Action.COLLECT, _STORE, gc.form),
    Page("POST", "/gc", Action.COLLECT, _STORE, gc.collect, slow=True),

    Page("GET", "/audit", Action.SEE_AUDIT, _STORE, audit.listing),
    Page("POST", "/audit/verify", Action.SEE_AUDIT, _STORE, audit.verify, slow=True),

    Page("GET", "/tokens", Action.MANAGE_TOKENS, _STORE, tokens.listing),
    Page("POST", "/tokens", Action.MANAGE_TOKENS, _STORE, tokens.create),
    Page("POST", "/tokens/{token}/revoke", Action.MANAGE_TOKENS, _STORE, tokens.revoke),
)
# fmt: on

_READ = {page.path for page in _PAGES if page.method == "GET"}


def home(visit: Visit) -> Response:
    """The address of an answer to a form, asked for again: by a reload, or after the language was changed there."""
    path = visit.request.scope["route"].path
    while path not in _READ:
        path = path.rpartition("/")[0] or "/"
    return RedirectResponse(path.format_map(visit.request.path_params), 303)


PAGES = (
    *_PAGES,
    *(Page("GET", page.path, None, _CALLER, home) for page in _PAGES if page.path not in _READ),
)

ROUTES: list[BaseRoute] = [
    *(page.route() for page in PAGES),
    Route("/login", login.login, methods=["GET"], name="pages.login"),
    Route("/preferences", preferences.change, methods=["POST"], name="pages.preferences"),
    Mount("/static", PackageFiles(), name="pages.static"),
]

"""Errors as answers: RFC 9457 problem details for programs, a page for browsers, a traceback for nobody."""

from __future__ import annotations

import http
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from envdsl.app.control import hints
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus

MEDIA_TYPE = "application/problem+json"
PROGRAM_PATHS = ("/api/", "/mcp", "/metrics", "/healthz")  # never asked by a person who reads the answer

_LOG = logging.getLogger("envdsl.web")

# By code where the exit status alone does not tell.
_STATUS = {
    "web-unauthenticated": 401,
    "web-token-invalid": 401,
    "web-forbidden": 403,
    "web-forged": 403,
    "web-host-unknown": 421,
    "web-unknown-session": 404,
    "web-unknown-request": 404,
    "web-not-found": 404,
    "web-method-not-allowed": 405,
    "web-not-acceptable": 406,
    "web-body-too-large": 413,
    "web-media-type": 415,
    "web-invalid-body": 422,
    "web-too-many-requests": 429,
    "state-key-reused": 422,
    "app-digest-other": 409,
    "app-rebase-other": 409,
    "app-promoted-already": 409,
    "app-wheel-exists": 409,
    "app-not-resolved": 409,
    "app-nothing-to-undo": 409,
    "app-layer-collected": 409,
    "app-upload-size": 413,
    "app-too-many-open": 429,
    "app-too-many-uploads": 429,
}
# What a program can do where the hint names a command.
WAYS = {
    "state-unknown-request": "GET /api/v1/requests lists those that you may see",
    "state-unknown-token": "GET /api/v1/tokens lists those that there are",
    "state-conflict": "GET /api/v1/requests/{request} says how it stands",
    "app-unknown-binding": "GET /api/v1/sessions/{session}/history lists the bindings with their numbers",
    "app-nothing-to-undo": "GET /api/v1/sessions/{session}/history lists what it was bound to",
    "app-unknown-layer": "it may have been collected as garbage; GET /api/v1/layers lists those that there are",
    "app-layer-exists": "send another `name`",
    "app-base-moved-on": "POST /api/v1/sessions/{session}/rebase resolves it on the present base; promote it then",
    "app-not-resolved": "ask again later: GET /api/v1/requests/{request}/card shows it once a worker has resolved it",
    "app-choice": "GET /api/v1/requests/{request}/card says why",
    "app-digest-missing": "send the `digest` of what was shown: GET /api/v1/requests/{request}/card has it",
    "app-digest-other": "look again: GET /api/v1/requests/{request}/card",
    "app-package": "a name such as pandas; a version goes to the parameter `version`",
    "app-session-without-base": "send its base as `to`, and the x layer in `add`",
    "web-unauthenticated": "send `Authorization: Bearer …` with a token; an administrator makes one",
    "web-token-invalid": "an administrator makes one (POST /api/v1/tokens)",
}
_BY_EXIT = {ExitStatus.USAGE: 400, ExitStatus.REFUSED: 403, ExitStatus.ENVIRONMENT: 503}


def status_of(error: EnvdslError) -> int:
    """The HTTP status of an error: by its code, else by the exit status that the command line would end with."""
    code = error.code
    if code in _STATUS:
        return _STATUS[code]
    if code.startswith(("config-", "policy-catalog-")):
        return 503  # a file of ours is wrong, not what was asked
    if "-unknown-" in code or code.endswith("-unknown"):
        return 404
    if code.endswith("-conflict"):
        return 409
    return _BY_EXIT.get(error.exit_status, 422)


def document(error: EnvdslError, *, status: int, instance: str | None = None) -> dict[str, Any]:
    """The members of RFC 9457, and ``code`` and ``hint`` of the first diagnostic; ``errors`` where there are more."""
    first = error.diagnostics[0]
    value: dict[str, Any] = {
        "type": f"urn:envdsl:problem:{first.code}",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": first.message,
        "code": first.code,
    }
    if hint := hints.elsewhere(first.code, first.hint, WAYS):
        value["hint"] = hint
    if instance:
        value["instance"] = f"urn:envdsl:request:{instance}"
    if len(error.diagnostics) > 1:
        value["errors"] = [_finding(diagnostic) for diagnostic in error.diagnostics]
    return value


def _finding(diagnostic: Diagnostic) -> dict[str, Any]:
    value = {"code": diagnostic.code, "detail": diagnostic.message}
    hint = hints.elsewhere(diagnostic.code, diagnostic.hint, WAYS)
    return value | ({"hint": hint} if hint else {})


def answer(request: Request, error: EnvdslError, headers: Mapping[str, str] | None = None) -> Response:
    """``error`` as an answer to ``request``."""
    status = status_of(error)
    request.state.problem = error.code  # for the log
    if status == 401:
        headers = {"WWW-Authenticate": 'Bearer realm="envdsl"', **(headers or {})}
    if not request.url.path.startswith(PROGRAM_PATHS):
        return _page(request, error, status, headers)
    content = document(error, status=status, instance=getattr(request.state, "id", None))
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def _page(request: Request, error: EnvdslError, status: int, headers: Mapping[str, str] | None) -> Response:
    if status == 401 and request.method in ("GET", "HEAD"):
        from urllib.parse import quote

        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(wanted, safe='/')}", 303)
    from envdsl.web.pages.errors import error_page

    response = error_page(request, status, error.diagnostics[0])
    response.headers.update(headers or {})
    return response


def on_error(request: Request, error: Exception) -> Response:
    """Starlette's handler of :class:`EnvdslError`."""
    assert isinstance(error, EnvdslError)
    if error.code == "session-unknown":  # its hint names a session that is called alike, whoever's it is
        error = EnvdslError.of(error.code, "there is no such session", exit_status=error.exit_status)
    return answer(request, error)


def on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's handler of its own exceptions: no such route, wrong method, malformed form."""
    assert isinstance(error, HTTPException)
    codes = {404: "web-not-found", 405: "web-method-not-allowed", 413: "web-body-too-large"}
    code = codes.get(error.status_code, "web-invalid-request")
    found = EnvdslError.of(code, error.detail, exit_status=ExitStatus.USAGE)
    return answer(request, found, error.headers)


def on_defect(request: Request, error: Exception) -> Response:
    """What no handler expected: a defect of envdsl. All about it goes to the log, nothing of it to the client."""
    identifier = getattr(request.state, "id", None)
    _LOG.error("defect", exc_info=error, extra={"fields": {"request-id": identifier}})
    request.state.problem = "internal-defect"
    detail = "envdsl has a defect here; the service's log has the details under this request's id"
    if not request.url.path.startswith(PROGRAM_PATHS):
        from envdsl.web.pages.errors import error_page

        with suppress(Exception):  # the defect may be in what every page has
            return error_page(request, 500, Diagnostic("internal-defect", detail, hint=identifier))
    content = {
        "type": "urn:envdsl:problem:internal-defect",
        "title": http.HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
        "status": 500,
        "detail": detail,
        "code": "internal-defect",
    } | ({"instance": f"urn:envdsl:request:{identifier}"} if identifier else {})
    return JSONResponse(content, 500, media_type=MEDIA_TYPE)

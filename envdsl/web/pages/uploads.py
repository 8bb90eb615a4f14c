"""A wheel from a browser: checked as a build would check it, and kept for a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.policy.access import Action
from envdsl.web.pages import names
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.app.control.uploads import IntakeReport


@dataclass(frozen=True, slots=True)
class UploadView:
    """``problem`` is why the wheel was refused; ``sessions`` are those that the visitor may ask for it in."""

    report: IntakeReport | None = None
    problem: Diagnostic | None = None
    filename: str = ""
    sessions: Sequence[str] = ()


def form(visit: Visit) -> Response:
    return visit.page("upload.html", UploadView())


def receive(visit: Visit) -> Response:
    from envdsl.app.control import uploads
    from envdsl.web.pages.problems import missing

    sent = visit.file("wheel")
    if sent is None or not sent.filename:
        return visit.page("upload.html", UploadView(problem=missing("wheel")), status=422)
    limit = visit.request.app.state.settings.max_upload
    try:
        _, report = uploads.receive(visit.plane, sent.filename, sent.file, limit=limit)
    except EnvdslError as error:
        view = UploadView(problem=error.diagnostics[0], filename=sent.filename)
        return visit.page("upload.html", view, status=422)
    return visit.page("upload.html", UploadView(report, sessions=names.where(visit, Action.REQUEST)))

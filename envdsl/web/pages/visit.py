"""One visit of a page: who asks, in which language, and what the templates need beside the view."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action, Principal, Role, may
from envdsl.web import authorisation
from envdsl.web.pages import rendering
from envdsl.web.pages.languages import Language

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.state.records import RequestRecord


@dataclass(frozen=True, slots=True)
class Visit:
    """What a view gets: a request whose principal may make it. ``form`` is empty for GET; its values are texts, or
    files that were sent. ``record`` is the request of a path with ``{request}``."""

    request: Request
    plane: ControlPlane
    principal: Principal
    language: Language
    form: Mapping[str, str | UploadFile]
    record: RequestRecord | None = None

    @property
    def asked(self) -> RequestRecord:
        """The request of a path with ``{request}``."""
        assert self.record is not None
        return self.record

    @property
    def session(self) -> str:
        """The session of a path with ``{session}``."""
        return str(self.request.path_params["session"])

    def may(self, action: Action, session: str | None = None) -> bool:
        """Whether the visitor may do ``action``, to ``session`` where it concerns one."""
        owner = self.owner_of(session) if session is not None and self.principal.role is Role.OWNER else None
        return may(self.principal, action, session=session, owner=owner)

    def owner_of(self, session: str) -> str | None:
        """Whose session it is; None where there is no such session any more."""
        return authorisation.owner_of(self.plane, session)

    def query(self, name: str) -> str:
        return self.request.query_params.get(name, "").strip()

    def field(self, name: str) -> str:
        """A text of the form; "" where it is missing."""
        value = self.form.get(name, "")
        return value.strip() if isinstance(value, str) else ""

    def choice(self, name: str, allowed: Collection[str]) -> str:
        """A field that holds one of ``allowed``. Raises :class:`EnvdslError` ``web-form``: no form of ours sends
        anything else."""
        value = self.field(name)
        if value not in allowed:
            raise EnvdslError.of(
                "web-form",
                f"`{name}` must be one of {', '.join(sorted(allowed))}",
                exit_status=ExitStatus.USAGE,
            )
        return value

    def file(self, name: str) -> UploadFile | None:
        """A file of the form; None where none was chosen."""
        value = self.form.get(name)
        return value if isinstance(value, UploadFile) and value.filename else None

    def page(self, template: str, view: object, *, status: int = 200) -> Response:
        """The page: ``view`` is what ``template`` shows."""
        return rendering.html(self.request, self.language, self.principal, template, status=status, view=view)

    def redirect(self, path: str, *, done: str | None = None) -> Response:
        """See another page (303); ``done`` (of the catalogs' ``done.…``) is what is said there."""
        return RedirectResponse(f"{path}?done={done}" if done else path, 303)

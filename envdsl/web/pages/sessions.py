"""Sessions: what each is bound to, what it had before, and the three things that may be done about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import Response

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.policy.access import Action
from envdsl.policy.proposal import Upload
from envdsl.web import authorisation
from envdsl.web.pages import names
from envdsl.web.pages.request_lines import OPEN, Line, lines
from envdsl.web.pages.visit import Visit

if TYPE_CHECKING:
    from envdsl.session.difference import Difference
    from envdsl.session.manifest import BoundLayer, Manifest
    from envdsl.state.records import BindingRecord

_PAGE = 100


@dataclass(frozen=True, slots=True)
class SessionLine:
    """``broken`` says why its manifest cannot be read; the rest is empty then. ``open`` counts its open requests."""

    name: str
    owner: str
    python: str = ""
    layers: tuple[str, ...] = ()
    packages: int = 0
    open: int = 0
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class SessionsView:
    """One page of those whose names hold ``query``; ``count`` is how many these are, ``more`` the name that the next
    page begins after."""

    sessions: Sequence[SessionLine]
    query: str
    count: int
    more: str | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """``packages`` are names and versions of all layers together, ``bases`` what the session may be rebased to.
    ``problem`` is why asking failed, ``asked`` and ``reason`` what the form held then."""

    name: str
    owner: str
    python: str
    workspace: str | None
    layers: Sequence[BoundLayer]
    packages: Sequence[tuple[str, str]]
    bases: Sequence[str]
    history: Sequence[BindingRecord]
    requests: Sequence[Line]
    may_rebind: bool
    may_request: bool
    problem: Diagnostic | None = None
    asked: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RebaseView:
    name: str
    base: str
    difference: Difference | None = None
    problem: Diagnostic | None = None

    @property
    def changes(self) -> int:
        return len(self.difference.lines()) if self.difference is not None else 0


def listing(visit: Visit) -> Response:
    query, after = visit.query("name"), visit.query("after")
    found = [name for name in names.visible(visit) if query in name]
    rest = [name for name in found if name > after]
    counts = Counter(line.session for line in lines(visit, statuses=OPEN, limit=1000))
    view = SessionsView(
        [_line(visit, name, counts) for name in rest[:_PAGE]],
        query,
        len(found),
        rest[_PAGE - 1] if len(rest) > _PAGE else None,
    )
    return visit.page("sessions.html", view)


def show(visit: Visit) -> Response:
    return visit.page("session.html", _view(visit))


def ask(visit: Visit) -> Response:
    """Ask for packages, one requirement a line."""
    from envdsl.app.control import asking

    wanted, reason = visit.field("requirements"), visit.field("reason")
    try:
        record = asking.request(
            visit.plane,
            visit.principal,
            visit.session,
            [text.strip() for text in wanted.splitlines() if text.strip()],
            reason=reason,
        )
    except EnvdslError as error:
        view = _view(visit, problem=error.diagnostics[0], asked=wanted, reason=reason)
        return visit.page("session.html", view, status=422)
    return visit.redirect(f"/requests/{record.id}", done="asked")


def ask_with_wheel(visit: Visit) -> Response:
    """Ask for a wheel that was uploaded before, in a session that the form names."""
    from envdsl.app.control import asking

    session, size = visit.field("session"), visit.field("size")
    authorisation.require_session(visit.plane, visit.principal, Action.REQUEST, session)
    upload = Upload(visit.field("filename"), visit.field("sha256"), int(size) if size.isdecimal() else 0)
    record = asking.request(visit.plane, visit.principal, session, (), uploads=[upload], reason=visit.field("reason"))
    return visit.redirect(f"/requests/{record.id}", done="asked")


def rebase(visit: Visit) -> Response:
    """Show what a rebase would change, or do it: the form's ``step`` says which, and only ``run`` changes anything."""
    from envdsl.app.control import binding

    base, run = visit.field("base"), visit.field("step") == "run"
    try:
        found = binding.rebase(
            visit.plane,
            visit.principal,
            visit.session,
            base=base or None,
            dry_run=not run,
            expected=visit.field("digest") if run else None,
        )
    except EnvdslError as error:
        view = RebaseView(visit.session, base, problem=error.diagnostics[0])
        return visit.page("rebase.html", view, status=422)
    if run:
        return visit.redirect(f"/sessions/{visit.session}", done="rebased")
    return visit.page("rebase.html", RebaseView(visit.session, base, found))


def undo(visit: Visit) -> Response:
    from envdsl.app.control import binding

    binding.undo(visit.plane, visit.principal, visit.session)
    return visit.redirect(f"/sessions/{visit.session}", done="undone")


def seal(visit: Visit) -> Response:
    """The signed document, as a file to keep."""
    from envdsl.app.control import sealing

    document = json.dumps(sealing.seal(visit.plane, visit.principal, visit.session), indent=2, ensure_ascii=False)
    headers = {"Content-Disposition": f'attachment; filename="seal-{visit.session}.json"'}
    return Response(f"{document}\n", headers=headers, media_type="application/json")


def _line(visit: Visit, name: str, counts: Counter[str]) -> SessionLine:
    from envdsl.app import sessions

    owner = visit.owner_of(name) or ""
    try:
        manifest = sessions.show(visit.plane.project, name).manifest
    except EnvdslError as error:
        return SessionLine(name, owner, broken=str(error))
    return SessionLine(
        name,
        owner,
        python=manifest.interpreter.version,
        layers=tuple(layer.name for layer in manifest.layers),
        packages=len(_packages(manifest)),
        open=counts[name],
    )


def _view(visit: Visit, *, problem: Diagnostic | None = None, asked: str = "", reason: str = "") -> SessionView:
    from envdsl.app import sessions
    from envdsl.app.control import binding, inventory

    name, plane = visit.session, visit.plane
    manifest = sessions.show(plane.project, name).manifest
    may_rebind = visit.may(Action.REBIND, name)
    return SessionView(
        name=name,
        owner=plane.owner_of(name),
        python=manifest.interpreter.version,
        workspace=manifest.workspace.source if manifest.workspace else None,
        layers=manifest.layers,
        packages=_packages(manifest),
        bases=inventory.foundations(plane.project) if may_rebind else (),
        history=binding.history(plane, name),
        requests=lines(visit, session=name, limit=20),
        may_rebind=may_rebind,
        may_request=visit.may(Action.REQUEST, name),
        problem=problem,
        asked=asked,
        reason=reason,
    )


def _packages(manifest: Manifest) -> list[tuple[str, str]]:
    return sorted({(package.name, package.version) for layer in manifest.layers for package in layer.packages})

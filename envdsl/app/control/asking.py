"""Asking for packages: a row in the database, and nothing that takes time. A worker does the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

from envdsl.app.control import changes, manifests
from envdsl.app.control import uploads as kept_uploads
from envdsl.app.control.authorising import allowed, require, visible
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.policy.access import Action, Principal
from envdsl.policy.proposal import Upload
from envdsl.redaction import public_url, redact
from envdsl.state.records import RequestRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.session.manifest import Manifest

MOST_OPEN = 50  # requests of one session that have not ended: a queue is everybody's
MOST_REQUIREMENTS = 100  # of one request, uploads included
LONGEST_REQUIREMENT = 500  # characters
LONGEST_REASON = 2000  # characters
LONGEST_KEY = 200  # characters
_CANCELLABLE = (Status.PENDING, Status.APPROVED, Status.ISOLATED)


def request(
    plane: ControlPlane,
    principal: Principal,
    session: str,
    requirements: Sequence[str],
    *,
    uploads: Sequence[Upload] = (),
    reason: str = "",
    key: str | None = None,
) -> RequestRecord:
    """Ask for ``requirements`` (PEP 508) and ``uploads`` (:func:`envdsl.app.control.uploads.receive`) in ``session``.

    The same need of the same binding is the same request while that has not ended; the same ``key`` (chosen by the
    asker) is the same request for ever. Nothing is resolved here. Raises EnvdslError: ``app-forbidden``,
    ``session-unknown``, ``app-requirement-invalid``, ``app-nothing-asked``, ``app-request-size``,
    ``app-upload-unknown``, ``app-too-many-open``, ``state-key-reused``.
    """
    require(plane, principal, Action.REQUEST, session)
    manifest = manifests.read(plane.project.store.layout, session).manifest
    wanted = normalised(requirements)
    brought = sorted(set(uploads), key=lambda upload: (upload.filename, upload.sha256))
    _check_size(wanted, brought, reason, key)
    kept_uploads.known(plane, brought)
    with plane.state.transaction() as transaction:
        record, new = transaction.requests.ask(
            store=plane.store_id,
            session=session,
            requester=principal.name,
            reason=redact(plain(reason)),
            requirements=wanted,
            uploads=[asdict(upload) for upload in brought],
            fingerprint=fingerprint(manifest, wanted, brought),
            key=key,
            expires=plane.now() + timedelta(seconds=plane.project.config.service.expire),
        )
        if new and transaction.requests.open_count(plane.store_id, session) > MOST_OPEN:
            raise EnvdslError.of(
                "app-too-many-open",
                f"{MOST_OPEN} requests of {session} have not ended yet",
                hint="wait for them or cancel some, or ask for several packages in one request",
                exit_status=ExitStatus.REFUSED,
            )
    changes.tell(changes.WORK)
    return record


def cancel(plane: ControlPlane, principal: Principal, request_id: str) -> RequestRecord:
    """End a request that is not being built yet. Raises EnvdslError: ``state-unknown-request``, ``app-forbidden``,
    ``state-conflict``."""
    record = find(plane, principal, request_id)
    require(plane, principal, Action.CANCEL, record.session)
    with plane.state.transaction() as transaction:
        record = transaction.requests.transition(record.id, _CANCELLABLE, Status.CANCELLED, actor=principal.name)
    changes.tell(record.id)
    return record


def find(plane: ControlPlane, principal: Principal, request_id: str) -> RequestRecord:
    """The request with this id. Raises EnvdslError ``state-unknown-request``, also for one that ``principal`` may not
    see: nobody learns what others ask for."""
    with plane.state.reading() as transaction:
        record = transaction.requests.get(request_id)
    if record.store != plane.store_id or not allowed(plane, principal, Action.SEE_SESSION, record.session):
        raise unknown(request_id)
    return record


def unknown(request_id: str) -> EnvdslError:
    """For a request that is not there, or not the caller's to see."""
    return EnvdslError.of(
        "state-unknown-request",
        f"there is no request {request_id!r}",
        hint="`envdsl requests list --all` shows those that there are",
        exit_status=ExitStatus.USAGE,
    )


def listing(
    plane: ControlPlane,
    principal: Principal,
    *,
    session: str | None = None,
    statuses: Collection[Status] | None = None,
    before: str | None = None,
    limit: int = 100,
) -> tuple[RequestRecord, ...]:
    """The requests that ``principal`` may see, the newest first; ``before`` (an id) gives the next page.

    Raises EnvdslError ``app-forbidden`` for a ``session`` of somebody else's.
    """
    if session is not None:
        require(plane, principal, Action.SEE_SESSION, session)
    sessions = visible(plane, principal) if session is None else (session,)
    with plane.state.reading() as transaction:
        found = transaction.requests.list(
            plane.store_id, sessions=sessions, statuses=statuses, before=before, limit=limit
        )
    return tuple(found)


def normalised(requirements: Iterable[str]) -> tuple[str, ...]:
    """The requirements in their normal form, each once, sorted.

    Raises EnvdslError with an ``app-requirement-invalid`` for each that is none.
    """
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    found: set[str] = set()
    wrong: list[Diagnostic] = []
    for text in requirements:
        try:
            if len(text) > LONGEST_REQUIREMENT:
                raise InvalidRequirement(f"it has more than {LONGEST_REQUIREMENT} characters")
            requirement = Requirement(text.strip())
            if not str(requirement).isprintable():  # a marker's string may hold what moves a terminal's cursor
                raise InvalidRequirement("it has characters that cannot be printed")
        except InvalidRequirement as error:
            why = str(error).partition("\n")[0]
            wrong.append(
                Diagnostic(
                    "app-requirement-invalid",
                    f"{redact(text)[:60]!r} is not a requirement: {redact(why)}",
                    hint="write a distribution's name and, if need be, versions and extras: rich, rich>=13,<15, x[y]",
                    exit_status=ExitStatus.USAGE,
                )
            )
        else:
            requirement.name = canonicalize_name(requirement.name)
            if requirement.url is not None:  # it will be refused, and be read by many
                requirement.url = public_url(requirement.url)
            found.add(str(requirement))
    if wrong:
        raise EnvdslError(*wrong)
    return tuple(sorted(found))


def binding_digest(manifest: Manifest) -> str:
    """blake3 of what a session is bound to: as long as it is the same, so is what a request resolves to."""
    return blake3_hex(canonical_json([manifest.interpreter.key, *(layer.key for layer in manifest.layers)]))


def fingerprint(manifest: Manifest, requirements: Iterable[str], uploads: Iterable[Upload]) -> str:
    """What makes two requests the same one: the session's binding, and the need in its normal form."""
    need = {
        "binding": binding_digest(manifest),
        "requirements": list(requirements),
        "uploads": [[upload.filename, upload.sha256] for upload in uploads],
    }
    return blake3_hex(canonical_json(need))


def _check_size(requirements: Sequence[str], uploads: Sequence[Upload], reason: str, key: str | None) -> None:
    if not requirements and not uploads:
        raise EnvdslError.of(
            "app-nothing-asked",
            "the request asks for nothing",
            hint="name a requirement, such as rich>=13, or a wheel",
            exit_status=ExitStatus.USAGE,
        )
    many = len(requirements) + len(uploads) > MOST_REQUIREMENTS
    if many or len(reason) > LONGEST_REASON or len(key or "") > LONGEST_KEY:
        raise EnvdslError.of(
            "app-request-size",
            f"a request holds up to {MOST_REQUIREMENTS} requirements and wheels, a reason of up to {LONGEST_REASON} "
            f"characters, and a key of up to {LONGEST_KEY}",
            hint="divide it into several requests",
            exit_status=ExitStatus.USAGE,
        )


def plain(text: str) -> str:
    """Text that a terminal and a log can show: whoever wrote it, somebody else will read it."""
    return "".join(character if character.isprintable() else " " for character in text).strip()

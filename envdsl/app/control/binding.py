"""What a session is bound to, what it was bound to, and how that changes: history, undo, rebase.

The manifest in the store is the source of truth; the rows of ``exec_env_bindings`` are its history. A session that
was made or bound anew by an envdsl that knows no database gets the row it lacks from whoever looks next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app import sessions
from envdsl.app.control import manifests
from envdsl.app.control.authorising import require
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LayerId
from envdsl.policy.access import Action, Principal, Role
from envdsl.state.machine import OPEN
from envdsl.state.records import BindingRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.session.difference import Difference
    from envdsl.session.manifest import BoundLayer, Manifest
    from envdsl.state.transaction import Transaction

UNRECORDED = "unrecorded"  # who bound a session where nobody wrote it down


@contextmanager
def alone(plane: ControlPlane, session: str) -> Iterator[None]:
    """Hold the binding of ``session``: among all threads and processes one changes it, files and row together."""
    from envdsl.store.locks import exclusive

    layout = plane.project.store.layout
    with exclusive(layout.tmp / "locks" / f"session-{session}"):
        yield


def history(plane: ControlPlane, session: str) -> tuple[BindingRecord, ...]:
    """What the session had, the newest first; the first row is what it has now. Raises EnvdslError
    ``session-unknown``."""
    manifest = _manifest(plane, session)
    with plane.state.reading() as transaction:
        found = transaction.bindings.history(plane.store_id, session)
    if found and _same(found[0], manifest):
        return tuple(found)
    with alone(plane, session):
        manifest = _manifest(plane, session)
        owner = plane.owner_of(session)
        with plane.state.transaction() as transaction:
            note(transaction, plane, manifest, creator=owner)
            return tuple(transaction.bindings.history(plane.store_id, session))


def created(plane: ControlPlane, principal: Principal, session: str, *, owner: str | None = None) -> None:
    """Write down that ``principal`` made the session, and whose it is, where that is not the user whose directory it
    is. Raises as :func:`check_owner`."""
    check_owner(principal, owner)
    with alone(plane, session):
        if owner is not None:
            with plane.state.transaction() as transaction:
                transaction.sessions.give(plane.store_id, session, owner, actor=principal.name)
        append(plane, session, cause="create", actor=principal.name, origins={})


def check_owner(principal: Principal, owner: str | None) -> None:
    """Only an administrator makes a session somebody else's: raises EnvdslError ``app-forbidden``."""
    if owner not in (None, principal.name) and principal.role is not Role.ADMINISTRATOR:
        raise EnvdslError.of(
            "app-forbidden",
            f"{principal.name} may not make a session that belongs to {owner}",
            hint="an administrator may",
            exit_status=ExitStatus.REFUSED,
        )


def removed(plane: ControlPlane, principal: Principal, session: str) -> None:
    """End the open requests and the tokens of a session that is gone, and forget whose it was; its history stays."""
    with plane.state.transaction() as transaction:
        requests = transaction.requests.list(plane.store_id, sessions=[session], statuses=OPEN, limit=None)
        for record in requests:
            if record.status is not Status.BUILDING:  # its worker finds that there is no session
                transaction.requests.transition(record.id, OPEN, Status.CANCELLED, actor=principal.name)
        transaction.tokens.revoke_of_session(session, store=plane.store_id, actor=principal.name)
        transaction.sessions.remove(plane.store_id, session, actor=principal.name)


def undo(
    plane: ControlPlane, principal: Principal, session: str, *, number: int | None = None, dry_run: bool = False
) -> Difference:
    """Bind the session to exactly the layers that it had before, or had as its binding ``number``. ``dry_run`` changes
    nothing.

    An undo is a binding like others: undoing it brings back what it took away. Raises EnvdslError ``app-forbidden``,
    ``app-nothing-to-undo``, ``app-unknown-binding``, ``app-layer-collected`` where gc has removed a layer since,
    ``app-layer-refused`` where the catalog has come to refuse one that the session would get back.
    """
    from envdsl.session import bindings

    require(plane, principal, Action.REBIND, session)
    rows = history(plane, session)
    with alone(plane, session), plane.project.store.lease():
        present = _manifest(plane, session)
        target = _target(rows, session, number)
        _permit(plane, {request for layer, request in origins_of(target).items() if not _has(present, layer)})
        layers = [_bound(plane, target, row) for row in target.layers]
        workspace = Path(present.workspace.source) if present.workspace else None
        manifest = sessions.like(plane.project, present, layers, workspace=workspace, dry_run=dry_run)
        if dry_run:
            return bindings.preview(plane.project.store.layout, manifest)
        change = bindings.rebase(plane.project.store, manifest)
        append(plane, session, cause="undo", actor=principal.name, origins=origins_of(target))
    return change


def rebase(
    plane: ControlPlane,
    principal: Principal,
    session: str,
    base: str | None = None,
    *,
    add: Sequence[str] = (),
    drop: Sequence[str] = (),
    workspace: Path | None = None,
    dry_run: bool = False,
    expected: str | None = None,
) -> Difference:
    """Bind the session to its layers as they are declared and locked now, and resolve what it asked for anew on its
    new base; see :func:`envdsl.app.sessions.rebase` for the declared part.

    ``expected`` is the digest of the difference that somebody was shown.

    Nothing changes where any of that fails: EnvdslError ``app-forbidden``, ``app-rebase-conflict`` for a request that
    the new base cannot serve, ``app-rebase-refused`` for one that the catalog refuses on it, ``app-layer-refused`` for
    a layer to add that was asked for somewhere and is refused now, ``app-rebase-other`` where the difference is not
    what was ``expected``, and whatever locking and building raise.
    """
    from envdsl.app.control.following import followed
    from envdsl.session import bindings

    require(plane, principal, Action.REBIND, session)
    plane.project.reread()
    change = sessions.Change(base, tuple(add), tuple(drop), workspace)
    with plane.state.reading() as transaction:
        asked = [transaction.requests.of_layer(plane.store_id, layer) for layer in add]
    _permit(plane, {record.id for record in asked if record is not None})
    if dry_run:
        present = _manifest(plane, session)
        with plane.state.reading() as transaction:
            latest = transaction.bindings.latest(plane.store_id, session)
        manifest, _ = followed(plane, present, change, origins_of(latest), dry_run=True)
        return bindings.preview(plane.project.store.layout, manifest)
    origins = origins_of(history(plane, session)[0])
    with alone(plane, session), plane.project.store.lease():
        manifest, origins = followed(plane, _manifest(plane, session), change, origins)
        sessions.check_expected(plane.project, manifest, expected)
        difference = bindings.rebase(plane.project.store, manifest)
        append(plane, session, cause="rebase", actor=principal.name, origins=origins)
    return difference


def _permit(plane: ControlPlane, requests: Iterable[str]) -> None:
    """Raises ``app-layer-refused`` where the catalog refuses now what one of ``requests`` brought."""
    from envdsl.app.control.following import permit

    for request in sorted(requests):
        with plane.state.reading() as transaction:
            record = transaction.requests.get(request)
        permit(plane, record)


def _has(manifest: Manifest, layer: str) -> bool:
    return any(str(item.id) == layer for item in manifest.layers)


def append(plane: ControlPlane, session: str, *, cause: str, actor: str, origins: Mapping[str, str]) -> None:
    """A row for what the session's manifest says now; the caller holds the session (:func:`alone`)."""
    manifest = _manifest(plane, session)
    with plane.state.transaction() as transaction:
        transaction.bindings.append(
            store=plane.store_id,
            session=session,
            cause=cause,
            actor=actor,
            layers=rows(manifest, origins),
            manifest=digest(manifest),
        )


def note(transaction: Transaction, plane: ControlPlane, manifest: Manifest, *, creator: str) -> BindingRecord:
    """The latest row of the session, written now where nobody wrote one for the layers of ``manifest``."""
    latest = transaction.bindings.latest(plane.store_id, manifest.session)
    if latest is not None and _same(latest, manifest):
        return latest
    return transaction.bindings.append(
        store=plane.store_id,
        session=manifest.session,
        cause="create" if latest is None else "rebase",
        actor=creator if latest is None else UNRECORDED,
        layers=rows(manifest, origins_of(latest)),
        manifest=digest(manifest),
    )


def rows(manifest: Manifest, origins: Mapping[str, str]) -> list[dict[str, Any]]:
    """The layers of a manifest for a row; ``origins`` says by id which request a layer came from."""
    return [
        {
            "name": layer.name,
            "id": str(layer.id),
            "key": layer.key,
            "tree-hash": layer.tree_hash,
            "lock": layer.lock,
            **({"request": origins[str(layer.id)]} if str(layer.id) in origins else {}),
        }
        for layer in manifest.layers
    ]


def origins_of(record: BindingRecord | None) -> dict[str, str]:
    """The requests that layers came from, by the layers' ids."""
    layers = record.layers if record is not None else ()
    return {str(layer["id"]): str(layer["request"]) for layer in layers if layer.get("request")}


def digest(manifest: Manifest) -> str:
    """blake3 of manifest.json."""
    return blake3_hex(manifest.to_json().encode("utf-8", "surrogateescape"))


def _manifest(plane: ControlPlane, session: str) -> Manifest:
    return manifests.read(plane.project.store.layout, session).manifest


def _same(record: BindingRecord, manifest: Manifest) -> bool:
    return [layer["id"] for layer in record.layers] == [str(layer.id) for layer in manifest.layers]


def _target(found: Sequence[BindingRecord], session: str, number: int | None) -> BindingRecord:
    if number is None and len(found) < 2:
        raise EnvdslError.of(
            "app-nothing-to-undo",
            f"the session {session} has had no other binding than this",
            hint=f"envdsl session history {session}",
            exit_status=ExitStatus.USAGE,
        )
    target = found[1] if number is None else next((row for row in found if row.number == number), None)
    if target is None:
        raise EnvdslError.of(
            "app-unknown-binding",
            f"the session {session} has had no binding {number}",
            hint=f"`envdsl session history {session}` lists 1 to {found[0].number}",
            exit_status=ExitStatus.USAGE,
        )
    return target


def _bound(plane: ControlPlane, target: BindingRecord, row: Mapping[str, Any]) -> BoundLayer:
    from envdsl.session.layers import bind_layer

    layer = LayerId.parse(str(row["id"]))
    try:
        return bind_layer(plane.project.store, str(row["name"]), layer, lock=row.get("lock"))
    except EnvdslError as error:
        if error.code != "session-layer-missing":
            raise
        raise EnvdslError.of(
            "app-layer-collected",
            f"binding {target.number} had the layer {row['name']} ({layer}), which is not in the store any more",
            hint="gc removes what nobody is bound to; ask for the packages again, or rebase the session",
        ) from error

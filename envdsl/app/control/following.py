"""How what a session asked for follows it to another base: each request is resolved again, with what it asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app import sessions
from envdsl.app.control import extending
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.proposal import Plan, Proposal, Upload, Verdict
from envdsl.state.records import RequestRecord

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.session.manifest import BoundLayer, Manifest


def followed(
    plane: ControlPlane,
    present: Manifest,
    change: sessions.Change,
    origins: Mapping[str, str],
    *,
    dry_run: bool = False,
) -> tuple[Manifest, dict[str, str]]:
    """The manifest that a rebase of ``present`` leads to, and which request each of its layers came from.

    ``origins`` are the requests of the present layers, by the layers' ids. A request whose needs the new base meets
    itself has no layer any more. The layers are built unless it is a ``dry_run``, which asks the indexes and writes
    nothing.
    """
    project = plane.project
    requested = [layer for layer in present.layers if _follows(plane, layer, change, origins)]
    manifest = sessions.rebased(project, present, change, apart=[layer.id for layer in requested], dry_run=dry_run)
    kept = {str(layer.id) for layer in manifest.layers}
    found = {layer: request for layer, request in origins.items() if layer in kept}
    # What a request was resolved under: the base, and the x layers beside it.
    stays = [layer.id for layer in manifest.layers] == [layer.id for layer in present.layers if layer not in requested]
    for layer in requested:
        request = origins[str(layer.id)]
        follower = layer if stays else _resolved(plane, manifest, _record(plane, request), dry_run=dry_run)
        if follower is not None:
            manifest = _with(plane, manifest, follower, dry_run=dry_run)
            found[str(follower.id)] = request
    return manifest, found


def _follows(plane: ControlPlane, layer: BoundLayer, change: sessions.Change, origins: Mapping[str, str]) -> bool:
    """Whether a bound layer came from a request, which is to be resolved again. A promoted one is the project's."""
    if str(layer.id) not in origins or layer.name in plane.project.spec.layers:
        return False
    if layer.base is None:  # iso: it stays until another base is named
        return change.base is not None
    return not any(sessions.is_called(layer, item) for item in change.drop)


def _record(plane: ControlPlane, request: str) -> RequestRecord:
    with plane.state.reading() as transaction:
        return transaction.requests.get(request)


def _resolved(plane: ControlPlane, manifest: Manifest, record: RequestRecord, *, dry_run: bool) -> BoundLayer | None:
    """The layer of a request on the foundation of ``manifest``; None where that has all that was asked for."""
    from envdsl.app.control.proposing import propose

    foundation = manifest.foundation
    if plane.project.store.lookup(foundation.key) is None:
        raise EnvdslError.of(
            "app-base-not-built",
            f"what was asked for ({_asked(record)}) can be resolved on {foundation.name} once that is built",
            hint=f"`envdsl build {foundation.name}` builds it, and changes no session",
        )
    uploads = uploads_of(record)
    proposal = propose(plane, manifest, record.requirements, uploads)
    plan = _plan(plane, record, proposal, foundation)
    if plan is None:
        return None
    name = extending.layer_name(record.requirements, uploads, {layer.name for layer in manifest.layers})
    if dry_run:
        return extending.foresee(plane, plan, name, foundation)
    return extending.realise(plane, plan, name, foundation, uploads)


def _plan(plane: ControlPlane, record: RequestRecord, proposal: Proposal, foundation: BoundLayer) -> Plan | None:
    from envdsl.policy.classify import classify

    if proposal.problem is not None:
        raise EnvdslError.of(
            "app-rebase-conflict",
            f"what was asked for ({_asked(record)}) cannot be had on {foundation.name}: {proposal.problem.message}",
            hint="drop its layer from the session (--drop), or rebase to another base",
            details={"request": record.id},
        )
    classification = classify(plane.catalog, proposal, now=plane.now())
    if classification.verdict is Verdict.REFUSED:
        reasons = "; ".join(reason.message for reason in classification.reasons)
        raise EnvdslError.of(
            "app-rebase-refused",
            f"what was asked for ({_asked(record)}) is refused on {foundation.name}: {reasons}",
            hint="drop its layer from the session (--drop), or change the catalog",
            exit_status=ExitStatus.REFUSED,
            details={"request": record.id},
        )
    return proposal.extension


def permit(plane: ControlPlane, record: RequestRecord) -> None:
    """Raises EnvdslError ``app-layer-refused`` where the catalog, as it is now, refuses what ``record`` brought: that a
    layer stands in the store is no way around a denial."""
    from envdsl.policy import encoding
    from envdsl.policy.classify import classify

    if record.proposal is None:
        return
    classification = classify(plane.catalog, encoding.from_json(Proposal, record.proposal), now=plane.now())
    if classification.verdict is Verdict.REFUSED:
        reasons = "; ".join(reason.message for reason in classification.reasons)
        raise EnvdslError.of(
            "app-layer-refused",
            f"the layer of {record.id} ({_asked(record)}) is refused by the catalog as it is now: {reasons}",
            hint="ask for something else, or change the catalog",
            exit_status=ExitStatus.REFUSED,
            details={"request": record.id},
        )


def _with(plane: ControlPlane, manifest: Manifest, layer: BoundLayer, *, dry_run: bool) -> Manifest:
    workspace = Path(manifest.workspace.source) if manifest.workspace else None
    layers = [*manifest.layers, layer]
    return sessions.like(plane.project, manifest, layers, workspace=workspace, dry_run=dry_run)


def uploads_of(record: RequestRecord) -> tuple[Upload, ...]:
    """The wheels that came with a request."""
    return tuple(Upload(item["filename"], item["sha256"], item["size"]) for item in record.uploads)


def _asked(record: RequestRecord) -> str:
    return " ".join([*record.requirements, *(upload.filename for upload in uploads_of(record))])

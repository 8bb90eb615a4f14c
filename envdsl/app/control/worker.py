"""The worker: takes one request at a time, resolves and sorts it, or builds its layer and binds it.

Whatever a worker does may be done again: a row that it held when it died is claimed by another once its lease is
over. Resolving changes nothing. A layer is built once, whoever builds it (:mod:`envdsl.store`). Binding replaces the
session's files, the manifest last, then writes the row: a worker that finds the layer bound already has only the
row to write.

A plan holds for the binding that it was resolved under. Where the session's binding is another when it comes to
building, the request is resolved again: the same digest goes on, another one goes back to be sorted, since nobody
has been shown it.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.app import sessions
from envdsl.app.control import binding, changes, extending, manifests, uploads, webhooks
from envdsl.app.control.asking import binding_digest
from envdsl.app.control.following import uploads_of
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.names import LayerKind
from envdsl.policy.proposal import Choice, Classification, Plan, Proposal, Verdict
from envdsl.state.machine import OPEN
from envdsl.state.records import Decision, RequestRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.session.manifest import BoundLayer, Manifest

LEASE = 60.0  # seconds that a request is held without a sign of life
ALIVE = 30.0  # seconds within which a worker shows itself
ATTEMPTS = 5  # workers that may die of a request, or fail for want of a network, before it fails
IDLE = 0.5  # seconds between looks at the queue of a database that other processes write, too
UPLOADS = 7 * 86400.0  # seconds after which an upload that nobody asked for goes
RULE = "rule"
_LATER = (5.0, 15.0, 60.0, 180.0)  # seconds until a request is tried again after the environment failed it


class Worker:
    """One of any number, in threads, processes and (with PostgreSQL) on hosts that share a store.

    ``name`` tells it from all others. ``jobs`` is the number of threads of a build; default: the processors.
    ``took`` hears how many seconds each request took: ``resolve`` or ``build``.
    """

    def __init__(
        self,
        plane: ControlPlane,
        *,
        name: str | None = None,
        jobs: int | None = None,
        lease: float = LEASE,
        took: Callable[[str, float], None] | None = None,
    ) -> None:
        self._plane = plane
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._jobs = jobs
        self._lease = lease
        self._took = took
        self._seen = 0.0
        self._kept_house = -3600.0

    def step(self, *, announcing: bool = True) -> bool:
        """Do one thing that is to be done: resolve a request or build one; else, where ``announcing``, deliver an
        announcement. False where there is nothing.

        What is wrong with a request becomes its outcome. Raises EnvdslError where the database fails.
        """
        unseen = time.monotonic() - self._seen > ALIVE / 3
        if not unseen and not self._any_due():
            return announcing and webhooks.deliver_due(self._plane) > 0
        with self._plane.state.transaction() as transaction:
            if unseen:
                transaction.workers.seen(self.name, self._plane.store_id)
                self._seen = time.monotonic()
            ended = transaction.requests.expire(self._plane.store_id)
            record = transaction.requests.claim(self.name, self._lease, self._plane.store_id)
        changes.tell(*(item.id for item in ended))
        if record is None:
            return announcing and webhooks.deliver_due(self._plane) > 0
        began = time.perf_counter()
        try:
            with self._holding(record):
                self._carry_out(record)
        except EnvdslError as error:
            if error.code not in ("state-lease-lost", "state-conflict"):
                raise
            # Cancelled meanwhile, or taken over by another worker: what was built is there for whoever needs it.
            self._plane.project.reporter.note(f"{record.id}: {error}")
        changes.tell(record.id)
        if self._took is not None:
            self._took("build" if record.status is Status.BUILDING else "resolve", time.perf_counter() - began)
        return True

    def _any_due(self) -> bool:
        with self._plane.state.reading() as transaction:
            return transaction.requests.any_due(self._plane.store_id)

    def run(self, stop: threading.Event) -> None:
        """Work until ``stop`` is set; what is in hand is finished first."""
        # In a thread of its own: a receiver that does not answer must keep no request waiting.
        announcer = threading.Thread(target=self._announce, args=(stop,), name=f"announcer of {self.name}", daemon=True)
        announcer.start()
        try:
            with changes.watching(changes.WORK) as news:
                while not stop.is_set():
                    news.clear()
                    if not self.step(announcing=False) and not stop.is_set():
                        self._keep_house()
                        news.wait(IDLE)
        finally:
            self.gone()

    def drain(self, stop: threading.Event) -> None:
        """Work until there is nothing to do, or ``stop`` is set."""
        try:
            while not stop.is_set() and self.step():
                pass
        finally:
            self.gone()

    def gone(self) -> None:
        """Say that this worker works no more."""
        with suppress(EnvdslError), self._plane.state.transaction() as transaction:
            transaction.workers.gone(self.name)

    def _announce(self, stop: threading.Event) -> None:
        while not stop.wait(IDLE):
            with suppress(EnvdslError):  # the database is away, of which the worker itself says more
                webhooks.deliver_due(self._plane)

    def _keep_house(self) -> None:
        """Once an hour, uploads go that nobody has asked for, or that came to nothing; those of requests that are ready
        stay, since a rebase resolves them again."""
        if time.monotonic() - self._kept_house < 3600:
            return
        self._kept_house = time.monotonic()
        statuses = [Status.READY, *OPEN]
        with self._plane.state.reading() as transaction:
            records = transaction.requests.list(self._plane.store_id, statuses=statuses, limit=None)
        needed = {upload.sha256 for record in records for upload in uploads_of(record)}
        uploads.prune(self._plane, keep=needed, older_than=UPLOADS)

    def _carry_out(self, record: RequestRecord) -> None:
        try:
            if record.attempts > ATTEMPTS:
                raise EnvdslError.of(
                    "app-worker-died",
                    f"{ATTEMPTS} workers took this request, and none came to an end",
                    hint="the log of the workers says why; ask again once that is mended",
                )
            if record.status is Status.BUILDING:
                self._build(record)
            else:
                self._resolve(record)
        except EnvdslError as error:
            if error.code.startswith("state-"):
                raise
            self._failed(record, error)
        except Exception as error:
            # A defect, which would take the next worker along as well: the request ends, the worker goes on.
            self._plane.project.reporter.note("".join(traceback.format_exception(error)))
            message = f"{type(error).__name__} in the worker: this is a defect of envdsl"
            self._failed(record, EnvdslError.of("app-defect", message, hint="the log of the workers has the details"))

    def _resolve(self, record: RequestRecord) -> None:
        from envdsl.app.control.alike import propose
        from envdsl.policy.classify import classify

        manifest = self._manifest(record)
        proposal = propose(self._plane, manifest, record.requirements, uploads_of(record))
        classification = classify(self._plane.catalog, proposal, now=self._plane.now())
        self._sorted(record, manifest, proposal, classification)

    def _sorted(
        self, record: RequestRecord, manifest: Manifest, proposal: Proposal, classification: Classification
    ) -> None:
        from envdsl.policy import encoding

        extension, isolated = proposal.extension, proposal.isolated
        plan = extension if extension is not None else isolated
        found: dict[str, Any] = {
            "classification": encoding.to_json(classification),
            "proposal": encoding.to_json(proposal) | {"binding": binding_digest(manifest)},
            "digest": plan.digest if plan is not None else None,
            "problem": None,
        }
        told: Mapping[str, Any] | None = None
        match classification.verdict:
            case Verdict.PRESENT:
                to = Status.READY
            case Verdict.REFUSED:
                to = Status.REFUSED
            case Verdict.APPROVED:
                to = Status.APPROVED
                found["decision"] = Decision(RULE, Choice.APPROVE, found["digest"], self._plane.now())
            case Verdict.PERSON:
                to = Status.PENDING
                told = webhooks.announcement(self._plane, replace(record, **found))
        with self._plane.state.transaction() as transaction:
            transaction.requests.transition(record.id, [Status.PENDING], to, actor=RULE, holder=self.name, **found)
            if told is not None:
                webhooks.announce(self._plane, transaction, told)
        changes.tell(changes.WORK)

    def _build(self, record: RequestRecord) -> None:
        from envdsl.policy import encoding

        proposal = encoding.from_json(Proposal, record.proposal)
        isolates = record.decision is not None and record.decision.choice == Choice.ISOLATE
        plan = proposal.isolated if isolates else proposal.extension
        if plan is None or plan.digest != record.digest:
            raise EnvdslError.of("app-plan-damaged", "the plan that was decided on is not there any more")
        resolved_under = (record.proposal or {}).get("binding")
        while True:
            manifest = self._manifest(record)
            bound = next((layer for layer in manifest.layers if layer.lock == plan.digest), None)
            if bound is None and not self._permitted(record, proposal):
                return
            if bound is None and binding_digest(manifest) != resolved_under:
                if not self._still(record, manifest, isolates=isolates):
                    return
                resolved_under = binding_digest(manifest)
            if bound is not None:  # by a worker that died before it could say so
                with binding.alone(self._plane, record.session):
                    self._ready(record, bound)
                return
            if self._bound(record, plan, manifest):
                return

    def _still(self, record: RequestRecord, manifest: Manifest, *, isolates: bool) -> bool:
        """Whether the request resolves to what was decided on under the binding that the session has now. Where it does
        not, it is sorted anew, which is the next thing for a worker."""
        from envdsl.app.control.alike import propose

        proposal = propose(self._plane, manifest, record.requirements, uploads_of(record))
        plan = proposal.isolated if isolates else proposal.extension
        if plan is not None and plan.digest == record.digest:
            return True
        self._back(record, "the session is bound to something else since it was resolved")
        return False

    def _permitted(self, record: RequestRecord, proposal: Proposal) -> bool:
        """Whether the catalog, which may have changed since, still allows what it approved, and does not deny what a
        person did. Where it is otherwise, the request is sorted anew."""
        from envdsl.policy.classify import classify

        verdict = classify(self._plane.catalog, proposal, now=self._plane.now()).verdict
        by_rule = record.decision is not None and record.decision.by == RULE
        if verdict is Verdict.APPROVED or (verdict is Verdict.PERSON and not by_rule):
            return True
        self._back(record, "the catalog says something else since it was decided")
        return False

    def _back(self, record: RequestRecord, because: str) -> None:
        with self._plane.state.transaction() as transaction:
            transaction.requests.transition(
                record.id,
                [Status.BUILDING],
                Status.PENDING,
                actor=self.name,
                holder=self.name,
                data={"because": because},
                classification=None,
                proposal=None,
                digest=None,
                decision=None,
                problem=None,
            )
        changes.tell(changes.WORK)

    def _bound(self, record: RequestRecord, plan: Plan, manifest: Manifest) -> bool:
        """Build the layer and bind the session to it; False where ``manifest``, under which it was resolved, is not
        what the session is bound to any more."""
        from envdsl.session import bindings

        project, brought = self._plane.project, uploads_of(record)
        name = extending.layer_name(record.requirements, brought, {layer.name for layer in manifest.layers})
        with project.store.lease():
            layer = extending.realise(self._plane, plan, name, manifest.foundation, brought, jobs=self._jobs)
            with binding.alone(self._plane, record.session):
                present = self._manifest(record)
                if binding_digest(present) != binding_digest(manifest):
                    return False
                self._held(record)
                owner = self._plane.owner_of(record.session)
                with self._plane.state.transaction() as transaction:
                    binding.note(transaction, self._plane, present, creator=owner)
                layers = [layer] if layer.kind is LayerKind.ISO else [*present.layers, layer]
                bindings.rebase(project.store, self._composed(present, layers))
                self._ready(record, layer)
        return True

    def _manifest(self, record: RequestRecord) -> Manifest:
        """What the session is bound to now."""
        return manifests.read(self._plane.project.store.layout, record.session).manifest

    def _composed(self, present: Manifest, layers: list[BoundLayer]) -> Manifest:
        workspace = Path(present.workspace.source) if present.workspace else None
        return sessions.like(self._plane.project, present, layers, workspace=workspace)

    def _ready(self, record: RequestRecord, layer: BoundLayer) -> None:
        manifest = self._manifest(record)
        with self._plane.state.transaction() as transaction:
            latest = transaction.bindings.latest(self._plane.store_id, record.session)
            origins = binding.origins_of(latest) | {str(layer.id): record.id}
            transaction.bindings.append(
                store=self._plane.store_id,
                session=record.session,
                cause="request",
                actor=record.decision.by if record.decision else self.name,
                layers=binding.rows(manifest, origins),
                manifest=binding.digest(manifest),
                request=record.id,
            )
            transaction.requests.transition(
                record.id,
                [Status.BUILDING],
                Status.READY,
                actor=self.name,
                holder=self.name,
                layer=str(layer.id),
                problem=None,
            )

    def _failed(self, record: RequestRecord, error: EnvdslError) -> None:
        """The request has failed. Where it was not the request's fault (no network, no space, a catalog with a mistake)
        it is tried again later."""
        first = error.diagnostics[0]
        unreadable = first.code.startswith("policy-catalog")
        passing = (unreadable or error.exit_status is ExitStatus.ENVIRONMENT) and record.attempts < ATTEMPTS
        message = f"{first.span}: {first.message}" if unreadable and first.span is not None else first.message
        problem = {"code": first.code, "message": message, "hint": first.hint}
        with self._plane.state.transaction() as transaction:
            if passing:
                delay = _LATER[min(record.attempts, len(_LATER)) - 1]
                transaction.requests.release(record.id, self.name, delay_seconds=delay, problem=problem)
            else:
                transaction.requests.transition(
                    record.id,
                    [Status.PENDING, Status.BUILDING],
                    Status.FAILED,
                    actor=self.name,
                    holder=self.name,
                    problem=problem,
                )
        said = f"{record.id}: {'later' if passing else 'failed'}: {message}"
        if unreadable:  # nothing goes on until somebody mends it
            self._plane.project.reporter.warn(Diagnostic(first.code, said, hint=first.hint, severity="warning"))
        else:
            self._plane.project.reporter.note(said)

    def _held(self, record: RequestRecord) -> None:
        """Raises ``state-lease-lost`` where another worker has taken the request over: it will bind, not we."""
        with self._plane.state.transaction() as transaction:
            transaction.workers.seen(self.name, self._plane.store_id)
            transaction.requests.renew(record.id, self.name, self._lease)

    @contextmanager
    def _holding(self, record: RequestRecord) -> Iterator[None]:
        """Renew the lease for as long as the block takes; an interrupt hands the request back at once."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(min(self._lease, ALIVE) / 3):
                try:
                    self._held(record)
                except EnvdslError as error:
                    if error.code == "state-lease-lost":
                        return  # the block finds out when it wants to write

        renewing = threading.Thread(target=renew, name=f"lease of {record.id}", daemon=True)
        renewing.start()
        try:
            yield
        except BaseException as error:
            if not isinstance(error, EnvdslError):
                with suppress(EnvdslError), self._plane.state.transaction() as transaction:
                    transaction.requests.release(record.id, self.name)
            raise
        finally:
            done.set()
            renewing.join()

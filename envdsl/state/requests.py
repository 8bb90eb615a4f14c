"""``exec_env_requests``: asking, claiming, and going from one state to the next.

Every method that changes a state writes the audit row itself, in the same transaction: neither is ever there alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from sqlalchemy import ColumnElement, Row, and_, bindparam, func, insert, or_, select, update

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.state import machine
from envdsl.state.columns import check_text
from envdsl.state.ids import new_id
from envdsl.state.records import Decision, RequestRecord, Status
from envdsl.state.tables import requests

if TYPE_CHECKING:
    from envdsl.state.transaction import Transaction


_OF_SESSION = (
    select(requests)
    .where(requests.c.store == bindparam("store"), requests.c.session == bindparam("session"))
    .order_by(requests.c.id.desc())
)
_OPEN_OF_SESSION = _OF_SESSION.where(requests.c.status.in_(sorted(machine.OPEN)))
_ENDED_OF_SESSION = _OF_SESSION.where(requests.c.status.in_(sorted(machine.ENDED))).limit(bindparam("most"))


class Changes(TypedDict, total=False):
    """What a transition may write besides the status."""

    classification: Mapping[str, Any] | None
    proposal: Mapping[str, Any] | None
    digest: str | None
    decision: Decision | None
    layer: str | None
    problem: Mapping[str, Any] | None
    expires: datetime | None


class Requests:
    """The requests in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def ask(
        self,
        *,
        store: str,
        session: str,
        requester: str,
        reason: str,
        requirements: Sequence[str],
        uploads: Sequence[Mapping[str, Any]],
        fingerprint: str,
        key: str | None = None,
        expires: datetime | None = None,
    ) -> tuple[RequestRecord, bool]:
        """A PENDING request, and whether it is new.

        The same one comes back for the same ``fingerprint`` while it has not ended, and for the same ``key`` (chosen by
        the asker, unique in the session) for ever: a retry after an answer that was lost asks for nothing twice.
        Raises :class:`EnvdslError` ``state-key-reused`` where ``key`` was used for another need, ``state-text``.
        """
        for text in (*requirements, *(str(upload.get("filename", "")) for upload in uploads)):
            check_text(text)
        if key is not None and (earlier := self._of_key(store, session, key)) is not None:
            if earlier.requirements != tuple(requirements) or list(earlier.uploads) != [dict(item) for item in uploads]:
                raise _key_reused(key, earlier)
            return earlier, False
        if (same := self.open_with(store, session, fingerprint)) is not None:
            return self._with_key(same, key), False
        now = self._transaction.now
        request_id = new_id("req", now)
        values = {
            "id": request_id,
            "store": store,
            "session": session,
            "requester": requester,
            "reason": reason,
            "requirements": list(requirements),
            "uploads": [dict(upload) for upload in uploads],
            "fingerprint": fingerprint,
            "idempotency_key": key,
            "status": Status.PENDING,
            "attempts": 0,
            "created": now,
            "updated": now,
            "expires": expires,
        }
        self._transaction.write(insert(requests).values(values))
        self._transaction.audit.append(
            actor=requester,
            action="request.created",
            session=session,
            subject=request_id,
            data={"store": store, "requirements": list(requirements), "uploads": values["uploads"], "reason": reason},
        )
        return self.get(request_id), True

    def find(self, request_id: str) -> RequestRecord | None:
        row = self._transaction.read(select(requests).where(requests.c.id == request_id)).first()
        return _record(row) if row is not None else None

    def get(self, request_id: str) -> RequestRecord:
        """Raises :class:`EnvdslError` ``state-unknown-request``."""
        found = self.find(request_id)
        if found is None:
            raise EnvdslError.of(
                "state-unknown-request",
                f"there is no request {request_id!r}",
                hint="`envdsl requests list --all` shows those that there are",
                exit_status=ExitStatus.USAGE,
            )
        return found

    def updated(self, request_id: str) -> datetime | None:
        """When it changed last; None for an unknown one. For those who wait: the row itself can be large."""
        found: datetime | None = self._transaction.read(
            select(requests.c.updated).where(requests.c.id == request_id)
        ).scalar()
        return found

    def open_with(self, store: str, session: str, fingerprint: str) -> RequestRecord | None:
        """The request of this need that has not ended."""
        query = select(requests).where(
            requests.c.store == store,
            requests.c.session == session,
            requests.c.fingerprint == fingerprint,
            requests.c.status.in_(sorted(machine.OPEN)),
        )
        row = self._transaction.read(query).first()
        return _record(row) if row is not None else None

    def open_count(self, store: str, session: str) -> int:
        """How many requests of a session have not ended."""
        query = select(func.count()).where(
            requests.c.store == store, requests.c.session == session, requests.c.status.in_(sorted(machine.OPEN))
        )
        return int(self._transaction.read(query).scalar_one())

    def list(
        self,
        store: str,
        *,
        sessions: Collection[str] | None = None,
        statuses: Collection[Status] | None = None,
        before: str | None = None,
        limit: int | None = 100,
    ) -> list[RequestRecord]:
        """Up to ``limit`` requests of a store, the newest first; those with ids below ``before`` are the next page."""
        query = select(requests).where(requests.c.store == store).order_by(requests.c.id.desc()).limit(limit)
        if sessions is not None:
            query = query.where(requests.c.session.in_(sorted(sessions)))
        if statuses is not None:
            query = query.where(requests.c.status.in_(sorted(statuses)))
        if before is not None:
            query = query.where(requests.c.id < before)
        return [_record(row) for row in self._transaction.read(query)]

    def recent(self, store: str, session: str, *, ended: int) -> Sequence[RequestRecord]:
        """What a session's status shows: its requests that have not ended, then the latest ``ended`` of the others;
        each the newest first."""
        parameters = {"store": store, "session": session}
        still = self._transaction.read(_OPEN_OF_SESSION, parameters)
        over = self._transaction.read(_ENDED_OF_SESSION, {**parameters, "most": ended})
        return [*map(_record, still), *map(_record, over)]

    def counts(self, store: str) -> Mapping[Status, int]:
        """How many requests of a store are in each state."""
        counted = func.count().label("number")
        query = select(requests.c.status, counted).where(requests.c.store == store).group_by(requests.c.status)
        found = {Status(row.status): int(row.number) for row in self._transaction.read(query)}
        return {status: found.get(status, 0) for status in Status}

    def unresolved(self, store: str) -> int:
        """How many PENDING requests of a store wait for a worker; the other ones wait for a person."""
        query = select(func.count()).where(
            requests.c.store == store, requests.c.status == Status.PENDING, requests.c.classification.is_(None)
        )
        return int(self._transaction.read(query).scalar_one())

    def transition(
        self,
        request_id: str,
        from_: Collection[Status],
        to: Status,
        *,
        actor: str,
        holder: str | None = None,
        data: Mapping[str, Any] | None = None,
        **changes: Unpack[Changes],
    ) -> RequestRecord:
        """Take a request from one of ``from_`` to ``to``, with its audit row ``request.<to>``.

        ``holder`` is the worker that acts: it must still hold the request. Whoever held it holds it no more afterwards.
        ``data`` goes into the audit row, beside what changed. Raises :class:`EnvdslError`: ``state-conflict`` (its
        details: ``status``) where it is in another state, since somebody else was quicker; ``state-lease-lost``;
        ``state-transition`` for one that the machine does not have; ``state-unknown-request``.
        """
        before = self.get(request_id)
        if holder is not None and before.worker != holder:
            raise _lease_lost(before, holder)
        if before.status not in from_:
            raise _conflict(before, to)
        if not machine.allowed(before.status, to):
            raise EnvdslError.of("state-transition", f"a request does not go from {before.status} to {to}")
        values = _columns(changes) | {"worker": None, "lease": None, "attempts": 0}
        self._update(before, to, values)
        after = self.get(request_id)
        facts: dict[str, Any] = {"store": after.store, "from": before.status.value, "digest": after.digest}
        if (decision := changes.get("decision")) is not None:
            facts["decision"] = {
                "by": decision.by,
                "choice": decision.choice,
                "digest": decision.digest,
                "comment": decision.comment,
            }
        if after.layer is not None:
            facts["layer"] = after.layer
        if to is Status.FAILED and after.problem is not None:
            facts["problem"] = after.problem.get("code")
        self._audit(after, actor, f"request.{'waiting' if to is before.status else to.value}", facts | dict(data or {}))
        return after

    def of_layer(self, store: str, layer: str) -> RequestRecord | None:
        """The latest request that came to the layer with this id."""
        query = select(requests).where(requests.c.store == store, requests.c.layer == layer)
        row = self._transaction.read(query.order_by(requests.c.created.desc(), requests.c.id).limit(1)).first()
        return _record(row) if row is not None else None

    def any_due(self, store: str) -> bool:
        """Whether :meth:`claim` or :meth:`expire` would find something. Only reads: an idle worker keeps nobody from
        writing."""
        now = self._transaction.now
        query = select(requests.c.id).where(or_(_claimable(store, now), _overdue(store, now))).limit(1)
        return self._transaction.read(query).first() is not None

    def claim(self, worker: str, lease_seconds: float, store: str) -> RequestRecord | None:
        """The request that has waited longest for a worker, now held by ``worker``; None where there is none.

        That is a PENDING one without classification, an APPROVED or ISOLATED one (which becomes BUILDING), or one
        whose worker's lease is over. ``attempts`` counts the workers that took it since it changed its state.
        """
        now = self._transaction.now
        query = select(requests).where(_claimable(store, now)).order_by(requests.c.created, requests.c.id).limit(1)
        row = self._transaction.read(query).first()
        if row is None:
            return None
        before = _record(row)
        begins = before.status in (Status.APPROVED, Status.ISOLATED)
        self._update(
            before,
            Status.BUILDING if begins else before.status,
            {
                "worker": worker,
                "lease": now + timedelta(seconds=lease_seconds),
                "attempts": before.attempts + 1,
            },
        )
        after = self.get(before.id)
        if begins:
            facts = {"store": store, "from": before.status.value, "digest": after.digest}
            self._audit(after, worker, "request.building", facts)
        elif before.worker is not None:
            self._audit(after, worker, "request.taken-over", {"store": store, "from-worker": before.worker})
        return after

    def renew(self, request_id: str, worker: str, lease_seconds: float) -> RequestRecord:
        """Hold a request for longer. Raises :class:`EnvdslError` ``state-lease-lost`` where another worker has it, or
        where it ended meanwhile: whoever gets that stops."""
        present = self.get(request_id)
        if present.worker != worker:
            raise _lease_lost(present, worker)
        lease = self._transaction.now + timedelta(seconds=lease_seconds)
        self._update(present, present.status, {"lease": lease})
        return self.get(request_id)

    def release(
        self, request_id: str, worker: str, *, delay_seconds: float = 0, problem: Mapping[str, Any] | None = None
    ) -> RequestRecord:
        """Hand a request back without a result (the network is away, the worker stops); nobody claims it for
        ``delay_seconds``, and ``problem`` says why until it goes on. Its ``attempts`` stay. Raises
        :class:`EnvdslError` ``state-lease-lost``."""
        present = self.get(request_id)
        if present.worker != worker:
            raise _lease_lost(present, worker)
        lease = self._transaction.now + timedelta(seconds=delay_seconds) if delay_seconds else None
        why = {"problem": problem} if problem is not None else {}
        self._update(present, present.status, {"worker": None, "lease": lease, **why})
        return self.get(request_id)

    def expire(self, store: str, *, actor: str = "rule") -> Sequence[RequestRecord]:
        """End what nobody decided or built in time, except what a worker has in hand."""
        query = select(requests.c.id).where(_overdue(store, self._transaction.now))
        due = list(self._transaction.read(query).scalars())
        return [self.transition(item, machine.EXPIRABLE, Status.EXPIRED, actor=actor) for item in due]

    def _of_key(self, store: str, session: str, key: str) -> RequestRecord | None:
        query = select(requests).where(
            requests.c.store == store, requests.c.session == session, requests.c.idempotency_key == key
        )
        row = self._transaction.read(query).first()
        return _record(row) if row is not None else None

    def _with_key(self, record: RequestRecord, key: str | None) -> RequestRecord:
        """``record`` with ``key``, so that a retry finds it once it has ended. One that has a key keeps that."""
        if key is None or record.key is not None:
            return record
        self._transaction.write(update(requests).where(requests.c.id == record.id).values(idempotency_key=key))
        return self.get(record.id)

    def _update(self, before: RequestRecord, to: Status, values: Mapping[str, Any]) -> None:
        statement = (
            update(requests)
            .where(requests.c.id == before.id, requests.c.status == before.status)
            .values(**values, status=to, updated=self._transaction.now)
        )
        if self._transaction.write(statement).rowcount != 1:  # only where a writer did not wait for its turn
            raise _conflict(self.get(before.id), to)

    def _audit(self, request: RequestRecord, actor: str, action: str, data: Mapping[str, Any]) -> None:
        self._transaction.audit.append(
            actor=actor, action=action, session=request.session, subject=request.id, data=data
        )


def _claimable(store: str, now: datetime) -> ColumnElement[bool]:
    """Waits for a worker, or for another one."""
    waits = or_(
        requests.c.status.in_([Status.APPROVED, Status.ISOLATED, Status.BUILDING]),
        and_(requests.c.status == Status.PENDING, requests.c.classification.is_(None)),
    )
    free = or_(requests.c.lease.is_(None), requests.c.lease <= now)
    in_time = or_(requests.c.expires.is_(None), requests.c.expires > now, requests.c.status == Status.BUILDING)
    return and_(requests.c.store == store, waits, free, in_time)


def _overdue(store: str, now: datetime) -> ColumnElement[bool]:
    """Was not decided or built in time, and no worker has it in hand."""
    return and_(
        requests.c.store == store,
        requests.c.status.in_(sorted(machine.EXPIRABLE)),
        requests.c.expires <= now,
        or_(requests.c.worker.is_(None), requests.c.lease <= now),
    )


def _columns(changes: Changes) -> dict[str, Any]:
    values: dict[str, Any] = {name: value for name, value in changes.items() if name != "decision"}
    if "decision" in changes:
        decision = changes["decision"]
        values |= {
            "decided_by": decision.by if decision else None,
            "decided_choice": decision.choice if decision else None,
            "decided_digest": decision.digest if decision else None,
            "decided_at": decision.at if decision else None,
            "decided_comment": decision.comment if decision else None,
        }
    return values


def _record(row: Row[Any]) -> RequestRecord:
    decision = None
    if row.decided_by is not None:
        decision = Decision(
            row.decided_by, row.decided_choice, row.decided_digest, row.decided_at, row.decided_comment or ""
        )
    return RequestRecord(
        id=row.id,
        store=row.store,
        session=row.session,
        requester=row.requester,
        reason=row.reason,
        requirements=tuple(row.requirements),
        uploads=tuple(row.uploads),
        fingerprint=row.fingerprint,
        status=Status(row.status),
        classification=row.classification,
        proposal=row.proposal,
        digest=row.digest,
        decision=decision,
        layer=row.layer,
        problem=row.problem,
        attempts=row.attempts,
        worker=row.worker,
        lease=row.lease,
        created=row.created,
        updated=row.updated,
        expires=row.expires,
        key=row.idempotency_key,
    )


def _conflict(present: RequestRecord, to: Status) -> EnvdslError:
    by = f", decided by {present.decision.by}" if present.decision else ""
    return EnvdslError.of(
        "state-conflict",
        f"the request {present.id} is {present.status} already{by}; it cannot become {to} now",
        hint=f"`envdsl requests show {present.id}` says how it stands",
        details={"request": present.id, "status": present.status.value},
    )


def _lease_lost(present: RequestRecord, worker: str) -> EnvdslError:
    holder = f"{present.worker} holds it" if present.worker else "nobody holds it"
    return EnvdslError.of(
        "state-lease-lost",
        f"{worker} does not hold the request {present.id} any more: it is {present.status}, and {holder}",
        details={"request": present.id, "status": present.status.value},
    )


def _key_reused(key: str, earlier: RequestRecord) -> EnvdslError:
    return EnvdslError.of(
        "state-key-reused",
        f"the idempotency key {key!r} was used for another need: request {earlier.id}",
        hint="use a new key for a new request",
        exit_status=ExitStatus.USAGE,
    )

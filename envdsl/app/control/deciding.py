"""What a person decides on a request that waits for one. Of several decisions one wins, and names its person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envdsl.app.control import changes
from envdsl.app.control.asking import find, plain
from envdsl.app.control.authorising import require
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Action, Principal
from envdsl.policy.proposal import Choice, Classification, Plan, Proposal
from envdsl.state.records import Decision, RequestRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane

_OUTCOMES = {Choice.APPROVE: Status.APPROVED, Choice.ISOLATE: Status.ISOLATED, Choice.DENY: Status.DENIED}
_LONGEST_COMMENT = 2000  # characters


def decide(
    plane: ControlPlane,
    principal: Principal,
    request_id: str,
    choice: Choice,
    *,
    digest: str | None = None,
    comment: str = "",
) -> RequestRecord:
    """Decide on a request. ``digest`` is that of the plan which the person was shown; to deny, none is needed.

    Raises EnvdslError: ``state-unknown-request``, ``app-forbidden``; ``state-conflict`` where it was decided or ended
    already; ``app-not-resolved`` where there is nothing to decide on yet; ``app-choice`` for one that is not to be
    had; ``app-digest-missing``; ``app-digest-other`` where the plan is not the one that was shown.
    """
    from envdsl.policy import encoding

    seen = find(plane, principal, request_id)
    require(plane, principal, Action.DECIDE, seen.session)
    with plane.state.transaction() as transaction:
        record = transaction.requests.get(request_id)
        plan: Plan | None = None
        if record.status is Status.PENDING:
            if record.classification is None or record.proposal is None:
                raise EnvdslError.of(
                    "app-not-resolved",
                    f"{request_id} is still being resolved: nobody knows yet what it would bring",
                    hint=f"`envdsl requests show {request_id}` shows it as soon as a worker has resolved it",
                )
            _check_choice(record, choice, encoding.from_json(Classification, record.classification))
            plan = plan_of(encoding.from_json(Proposal, record.proposal), choice)
            if plan is not None:
                _check_digest(record, plan, digest)
        decision = Decision(
            by=principal.name,
            choice=choice.value,
            digest=plan.digest if plan is not None else None,
            at=transaction.now,
            comment=plain(comment)[:_LONGEST_COMMENT],
        )
        record = transaction.requests.transition(
            request_id,
            [Status.PENDING],
            _OUTCOMES[choice],
            actor=principal.name,
            decision=decision,
            digest=plan.digest if plan is not None else record.digest,
        )
    changes.tell(record.id, changes.WORK)
    return record


def plan_of(proposal: Proposal, choice: Choice) -> Plan | None:
    """What would be built; nothing where the request is denied."""
    match choice:
        case Choice.APPROVE:
            return proposal.extension
        case Choice.ISOLATE:
            return proposal.isolated
        case Choice.DENY:
            return None


def _check_choice(record: RequestRecord, choice: Choice, classification: Classification) -> None:
    if choice not in classification.choices:
        raise EnvdslError.of(
            "app-choice",
            f"{record.id} cannot be decided that way ({choice}): its choices are {', '.join(classification.choices)}",
            hint=f"`envdsl requests show {record.id}` says why",
            exit_status=ExitStatus.USAGE,
        )


def _check_digest(record: RequestRecord, plan: Plan, digest: str | None) -> None:
    if digest is None:
        raise EnvdslError.of(
            "app-digest-missing",
            "say which plan was shown, by its digest: what is decided on is what is built",
            hint=f"--digest {plan.digest}, after a look at `envdsl requests show {record.id}`",
            exit_status=ExitStatus.USAGE,
        )
    if digest != plan.digest:
        raise EnvdslError.of(
            "app-digest-other",
            f"the plan of {record.id} is not the one that was shown: {plan.digest[:16]}…, not {digest[:16]}…",
            hint=f"look again: `envdsl requests show {record.id}`",
            details={"digest": plan.digest},
        )

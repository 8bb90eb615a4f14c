"""How a request stands, in the words of an answer: what was refused and why, and what to do now. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from envdsl.app.control.answers import Installed, Refusal, RequestAnswer
from envdsl.policy import encoding
from envdsl.policy.proposal import Choice, Classification, Plan, Proposal, Verdict
from envdsl.state.records import RequestRecord, Status

PRESENT = "present"
_REFUSING = frozenset({Status.PENDING, Status.REFUSED})  # where the classification says what is in the way


def answer_of(record: RequestRecord, installed: Sequence[Installed]) -> RequestAnswer:
    """The answer for ``record``; ``installed`` is what its session has now."""
    classification = encoding.from_json(Classification, record.classification) if record.classification else None
    proposal = encoding.from_json(Proposal, record.proposal) if record.proposal else None
    present = record.status is Status.READY and record.layer is None
    plan = _plan(record, proposal)
    names = set(_requested(record)) | ({wheel.name for wheel in plan.wheels} if plan else set())
    imports = _imports(installed, names, set(_requested(record))) if record.status is Status.READY else ()
    return RequestAnswer(
        id=record.id,
        session=record.session,
        status=PRESENT if present else record.status.value,
        requirements=(*record.requirements, *(str(upload["filename"]) for upload in record.uploads)),
        packages=_packages(plan, proposal) if record.status not in (Status.REFUSED, Status.DENIED) else (),
        imports=imports,
        reasons=tuple(_reasons(record, classification)),
        decided_by=record.decision.by if record.decision else None,
        next=_next(record, classification, imports),
    )


def next_of_status(requests: Iterable[RequestAnswer]) -> str:
    """What to do after a look at a session."""
    waiting = [answer.id for answer in requests if answer.status in _WAITING]
    if waiting:
        return (
            f"Wait for {', '.join(str(item) for item in waiting)} with action wait; what is installed can be used now."
        )
    return "What is installed can be imported now; ask for anything else with action request."


_WAITING = frozenset(status.value for status in Status if not status.ended)


def _plan(record: RequestRecord, proposal: Proposal | None) -> Plan | None:
    if proposal is None:
        return None
    if record.decision is not None and record.decision.choice == Choice.ISOLATE:
        return proposal.isolated
    return proposal.extension or proposal.isolated


def _packages(plan: Plan | None, proposal: Proposal | None) -> tuple[str, ...]:
    """What the layer brings that the session lacked."""
    present: Mapping[str, str] = proposal.present if proposal is not None else {}
    wheels = plan.wheels if plan is not None else ()
    return tuple(f"{item.name} {item.version}" for item in wheels if present.get(item.name) != item.version)


def _requested(record: RequestRecord) -> Iterator[str]:
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    for text in record.requirements:
        try:
            yield canonicalize_name(Requirement(text).name)
        except InvalidRequirement:
            continue
    for upload in record.uploads:
        yield canonicalize_name(str(upload["filename"]).partition("-")[0])


def _imports(installed: Sequence[Installed], names: set[str], first: set[str]) -> tuple[str, ...]:
    """Import names, those of what was asked for first."""
    found = sorted((item for item in installed if item.name in names), key=lambda item: item.name not in first)
    return tuple(dict.fromkeys(name for item in found for name in item.imports))


def _reasons(record: RequestRecord, classification: Classification | None) -> Iterator[Refusal]:
    if record.status is Status.FAILED and record.problem is not None:
        problem: Mapping[str, Any] = record.problem
        yield Refusal(str(problem["code"]), str(problem["message"]), instead=problem.get("hint"))
    if record.status is Status.DENIED and record.decision is not None:
        comment = record.decision.comment
        yield Refusal("app-denied", f"{record.decision.by} denied it" + (f": {comment}" if comment else "."))
    if classification is not None and record.status in _REFUSING:
        for reason in classification.reasons:
            yield Refusal(reason.code, reason.message, reason.package, reason.hint)


def _next(record: RequestRecord, classification: Classification | None, imports: Sequence[str]) -> str:
    match record.status:
        case Status.PENDING if classification is not None and classification.verdict is Verdict.PERSON:
            return (
                f"A person has to decide. Go on with what is installed, and look again with action wait and "
                f"request {record.id}."
            )
        case Status.PENDING | Status.APPROVED | Status.ISOLATED | Status.BUILDING if _is_policy_unreadable(record):
            return (
                "The policy cannot be read at the moment, which whoever runs the service has to mend. "
                f"Go on with what is installed, and look again with action wait and request {record.id}."
            )
        case Status.PENDING | Status.APPROVED | Status.ISOLATED | Status.BUILDING:
            return f"It is being worked on: use action wait with request {record.id}."
        case Status.READY if record.layer is None:
            return f"Nothing to do: the session has it already.{_import_hint(imports)}"
        case Status.READY:
            return f"Start a new process to use it.{_import_hint(imports)}"
        case Status.REFUSED:
            return "It is refused, and asking again changes nothing: use what is said instead, or do without."
        case Status.DENIED:
            return "Do without it, or ask for something else; asking for the same again needs a better reason."
        case Status.FAILED:
            return "It could not be built: do what is said instead, or ask again later."
        case Status.CANCELLED:
            return "It was cancelled: ask again if it is still needed."
        case Status.EXPIRED:
            return "Nobody decided in time: ask again if it is still needed."


def _is_policy_unreadable(record: RequestRecord) -> bool:
    """Whether the last worker that took it put it off for a mistake in the catalog."""
    return record.problem is not None and str(record.problem["code"]).startswith("policy-catalog")


def _import_hint(imports: Sequence[str]) -> str:
    return f" Import it as {imports[0]}." if imports else ""

"""The card on which a person decides: who asks for what, why a person is asked, and what each choice would bring.

As JSON for webhooks and other programs, as Markdown for chats and issue trackers. What is on it comes from
an agent and from strangers' wheels, so nothing of it can shape the Markdown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError
from envdsl.policy import encoding
from envdsl.policy.proposal import Choice, Classification, Plan, Proposal, ProposedWheel
from envdsl.state.records import RequestRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane


@dataclass(frozen=True, slots=True)
class Difference:
    """What a plan changes for the session: ``name version`` of what comes and goes, ``name old -> new`` of what
    changes; sorted."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Offer:
    """One choice. ``plan`` is what it would build, None for a denial; a decision for it names the plan's digest.

    ``new`` are the wheels that the session lacks, ``size`` their bytes.
    """

    choice: Choice
    plan: Plan | None = None
    difference: Difference | None = None
    new: tuple[ProposedWheel, ...] = ()

    @property
    def size(self) -> int:
        return sum(wheel.size for wheel in self.new)


@dataclass(frozen=True, slots=True)
class Card:
    """``proposal`` and ``classification`` are None until the request is resolved. ``offers`` are the choices that a
    person has while it waits for one; of other requests, what would be built or was. ``owner`` is the session's, None
    where that is gone."""

    record: RequestRecord
    owner: str | None
    now: datetime
    proposal: Proposal | None = None
    classification: Classification | None = None
    offers: tuple[Offer, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Keys in kebab-case; times ISO 8601, sizes in bytes, ages in whole days (null where no index tells)."""
        record, sorted_as = self.record, self.classification
        return {
            "id": record.id,
            "status": record.status.value,
            "session": record.session,
            "owner": self.owner,
            "requester": record.requester,
            "reason": record.reason,
            "requirements": list(record.requirements),
            "uploads": [dict(upload) for upload in record.uploads],
            "created": record.created.isoformat(),
            "expires": record.expires.isoformat() if record.expires else None,
            "verdict": sorted_as.verdict.value if sorted_as else None,
            "reasons": encoding.to_json(sorted_as.reasons) if sorted_as else [],
            "choices": [choice.value for choice in self.choices],
            "offers": [self._offer(offer) for offer in self.offers],
            "decision": encoding.to_json(record.decision),
        }

    def to_markdown(self) -> str:
        """CommonMark with tables."""
        from envdsl.app.control.card_markdown import render

        return render(self)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What a person may decide now."""
        waiting = self.record.status is Status.PENDING and self.classification is not None
        return self.classification.choices if waiting and self.classification else ()

    def age(self, wheel: ProposedWheel) -> int | None:
        """Whole days since an index got the wheel."""
        return max(0, (self.now - wheel.released).days) if wheel.released is not None else None

    def _offer(self, offer: Offer) -> dict[str, Any]:
        plan = offer.plan
        if plan is None:
            return {"choice": offer.choice.value, "digest": None}
        return {
            "choice": offer.choice.value,
            "digest": plan.digest,
            "kind": plan.kind,
            "note": plan.note,
            "size": offer.size,
            "difference": encoding.to_json(offer.difference),
            "wheels": [
                {**encoding.to_json(wheel), "age-days": self.age(wheel), "new": wheel in offer.new}
                for wheel in plan.wheels
            ],
        }


def card(plane: ControlPlane, request: RequestRecord) -> Card:
    """The card of ``request``."""
    owner, now = None, plane.now()
    with suppress(EnvdslError):
        owner = plane.owner_of(request.session)
    if request.proposal is None or request.classification is None:
        return Card(request, owner, now)
    proposal = encoding.from_json(Proposal, request.proposal)
    classification = encoding.from_json(Classification, request.classification)
    found = {Choice.APPROVE: proposal.extension, Choice.ISOLATE: proposal.isolated}
    offers = [_offer(choice, plan, proposal.present) for choice, plan in found.items() if plan is not None]
    made = Card(request, owner, now, proposal, classification, tuple(offers))
    if Choice.DENY in made.choices:
        offers.append(Offer(Choice.DENY))
    return Card(request, owner, now, proposal, classification, tuple(offers))


def difference(present: Mapping[str, str], plan: Plan) -> Difference:
    """What ``plan`` changes for a session with ``present``: an extension adds to it, an iso layer replaces it."""
    planned = {wheel.name: wheel.version for wheel in plan.wheels}
    changed = [name for name in planned if name in present and present[name] != planned[name]]
    return Difference(
        added=tuple(f"{name} {planned[name]}" for name in sorted(planned.keys() - present.keys())),
        changed=tuple(f"{name} {present[name]} -> {planned[name]}" for name in sorted(changed)),
        removed=tuple(f"{name} {present[name]}" for name in sorted(present.keys() - planned.keys()))
        if plan.kind == "iso"
        else (),
    )


def _offer(choice: Choice, plan: Plan, present: Mapping[str, str]) -> Offer:
    new = tuple(wheel for wheel in plan.wheels if wheel.uploaded or present.get(wheel.name) != wheel.version)
    return Offer(choice, plan, difference(present, plan), new)

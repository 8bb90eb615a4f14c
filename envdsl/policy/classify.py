"""How a resolved request is sorted: present, approved by rule, for a person, or refused. Pure.

Every finding is a *reason* with a treatment; the gravest decides. What the session has already needs no leave:
only wheels that it lacks are judged. A request that contradicts what the session stands on can only become an
iso layer, which is always a person's choice, and so its wheels are judged for what would forbid it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from envdsl.policy import licences
from envdsl.policy.catalog import Catalog
from envdsl.policy.proposal import (
    Choice,
    Classification,
    Plan,
    Problem,
    ProblemKind,
    Proposal,
    ProposedWheel,
    Reason,
    Verdict,
)
from envdsl.policy.quantities import spell_age, spell_size
from envdsl.policy.rules import Treatment

CONTRADICTIONS = frozenset({ProblemKind.CONTRADICTS_BASE, ProblemKind.CONTRADICTS_SESSION})

# The codes of all reasons, the gravest first: the order in which a person reads them.
CODES = (
    "policy-denied",
    "policy-denied-dependency",
    "policy-hash-mismatch",
    "policy-invalid",
    "policy-yanked",
    "policy-sdist-only",
    "policy-unresolvable",
    "policy-contradicts-base",
    "policy-contradicts-session",
    "policy-licence-denied",
    "policy-vulnerability",
    "policy-upload",
    "policy-unlisted",
    "policy-version",
    "policy-unlisted-dependency",
    "policy-licence-unlisted",
    "policy-licence-unknown",
    "policy-wheel-size",
    "policy-closure-size",
    "policy-age",
    "policy-age-unknown",
)


_MOST_NAMES = 4  # of a list in a sentence


@dataclass(frozen=True, slots=True)
class _Finding:
    treatment: Treatment
    reason: Reason


def classify(catalog: Catalog, proposal: Proposal, *, now: datetime) -> Classification:
    """Sort ``proposal`` by ``catalog`` (which need not be that of the session yet); ``now`` is what ages count to."""
    catalog = catalog.for_session(proposal.session)
    problem, plan = proposal.problem, proposal.extension
    if problem is None and plan is None:
        return Classification(Verdict.PRESENT, ())
    findings: list[_Finding] = []
    choices = [Choice.APPROVE, Choice.DENY]
    if problem is not None:
        contradiction = problem.kind in CONTRADICTIONS
        plan = proposal.isolated if contradiction else None
        treatment = Treatment.DENY if plan is None else Treatment.ASK
        findings.append(_Finding(treatment, _of_problem(problem)))
        choices = [Choice.ISOLATE, Choice.DENY]
    elif proposal.isolated is not None:
        choices.insert(1, Choice.ISOLATE)
    findings += _of_requirements(catalog, proposal, plan)
    if plan is not None:
        findings += _Judge(catalog, proposal, plan, now).findings()
    counting = {item.reason: item for item in findings if item.treatment is not Treatment.ALLOW}
    reasons = sorted(counting.values(), key=_gravity)
    told = tuple(item.reason for item in reasons)
    if any(item.treatment is Treatment.DENY for item in reasons):
        return Classification(Verdict.REFUSED, told)
    if reasons:
        return Classification(Verdict.PERSON, told, tuple(choices))
    return Classification(Verdict.APPROVED, ())


def _gravity(finding: _Finding) -> tuple[object, ...]:
    reason = finding.reason
    return finding.treatment is not Treatment.DENY, CODES.index(reason.code), reason.package or "", reason.message


def _of_requirements(catalog: Catalog, proposal: Proposal, plan: Plan | None) -> Iterator[_Finding]:
    """Names that were asked for, have no wheel in ``plan``, and are denied in every version: that holds whether they
    resolve or not."""
    judged = {wheel.name for wheel in plan.wheels} if plan else set()
    for name in _requested(proposal):
        if name in judged:
            continue
        for entry in catalog.denied(name):
            if not entry.specifier and name not in proposal.present:
                yield _Finding(Treatment.DENY, Reason("policy-denied", f"{name} is denied: {entry.reason}", name))


def _of_problem(problem: Problem) -> Reason:
    package = problem.packages[0] if len(problem.packages) == 1 else None
    return Reason(f"policy-{problem.kind}", problem.message, package, problem.hint)


def _requested(proposal: Proposal) -> tuple[str, ...]:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name, parse_wheel_filename

    names = [canonicalize_name(Requirement(text).name) for text in proposal.requirements if _readable(text)]
    names += [parse_wheel_filename(upload.filename)[0] for upload in proposal.uploads if _is_wheel(upload.filename)]
    return tuple(sorted(set(names)))


def _readable(text: str) -> bool:
    """A request may hold anything: what is no requirement is in ``problem`` already."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def _is_wheel(filename: str) -> bool:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return False
    return True


class _Judge:
    """Judges the wheels of one plan."""

    def __init__(self, catalog: Catalog, proposal: Proposal, plan: Plan, now: datetime) -> None:
        self._catalog = catalog
        self._rules = catalog.rules
        self._now = now
        self._wheels = [
            wheel
            for wheel in sorted(plan.wheels, key=lambda wheel: (wheel.name, wheel.filename))
            if wheel.uploaded or not proposal.has(wheel)
        ]
        self._covered = self._with_dependencies() if self._rules.dependencies else frozenset()

    def findings(self) -> Iterator[_Finding]:
        for wheel in self._wheels:
            yield from self._name(wheel)
            yield from self._licence(wheel)
            yield from self._age(wheel)
            yield from self._vulnerabilities(wheel)
            if wheel.yanked is not None:
                because = f": {wheel.yanked}" if wheel.yanked else ""
                yield _finding(Treatment.DENY, "policy-yanked", f"{_title(wheel)} was withdrawn{because}", wheel)
            limit = self._rules.max_wheel_size
            if limit is not None and wheel.size > limit:
                message = (
                    f"the wheel of {_title(wheel)} has {spell_size(wheel.size)}, and {spell_size(limit)} are allowed"
                )
                yield _finding(Treatment.ASK, "policy-wheel-size", message, wheel)
        limit, size = self._rules.max_closure_size, sum(wheel.size for wheel in self._wheels)
        if limit is not None and size > limit:
            message = f"all wheels together have {spell_size(size)}, and {spell_size(limit)} are allowed"
            yield _Finding(Treatment.ASK, Reason("policy-closure-size", message))

    def _name(self, wheel: ProposedWheel) -> Iterator[_Finding]:
        dependency = "-dependency" if wheel.required_by else ""
        via = f", which {_listing(wheel.required_by)} needs," if dependency else ""
        denied = [entry for entry in self._catalog.denied(wheel.name) if entry.denies(wheel.version)]
        for entry in denied:
            message = f"{_title(wheel)}{via} is denied: {entry.reason}"
            yield _finding(Treatment.DENY, f"policy-denied{dependency}", message, wheel)
        if denied:
            return
        if wheel.uploaded:
            yield _finding(
                Treatment.ASK, "policy-upload", f"{wheel.filename} was uploaded and stands in no index", wheel
            )
            return
        allowed = self._catalog.allowed(wheel.name)
        if any(entry.covers(wheel.version) for entry in allowed):
            return
        if allowed:
            only = " or ".join(dict.fromkeys(map(str, allowed)))
            message = f"{_title(wheel)}{via} is not what is allowed: {only}"
            yield _finding(self._catalog.unlisted, "policy-version", message, wheel)
        elif wheel.name not in self._covered:
            message = f"{_title(wheel)}{via} is not listed"
            yield _finding(self._catalog.unlisted, f"policy-unlisted{dependency}", message, wheel)

    def _licence(self, wheel: ProposedWheel) -> Iterator[_Finding]:
        ruling = licences.rule(wheel.licence, self._rules)
        if ruling.treatment is Treatment.ALLOW:
            return
        if not ruling.known:
            stated = f"states a licence that is not understood ({_short(wheel.licence)})" if wheel.licence else None
            message = f"{_title(wheel)} {stated or 'does not state its licence'}"
            yield _finding(ruling.treatment, "policy-licence-unknown", message, wheel)
            return
        code, state = ("denied", "denied") if ruling.denied else ("unlisted", "not listed")
        message = f"{_title(wheel)} has the licence {_short(wheel.licence)}; {state}: {ruling.why}"
        yield _finding(ruling.treatment, f"policy-licence-{code}", message, wheel)

    def _age(self, wheel: ProposedWheel) -> Iterator[_Finding]:
        minimum = self._rules.minimum_age
        if not minimum or wheel.uploaded:
            return
        if wheel.released is None:
            message = f"no index says since when there is {_title(wheel)}; it should be {spell_age(minimum)} old"
            treatment = self._rules.unknown_age or Treatment.ASK
            yield _finding(treatment, "policy-age-unknown", message, wheel)
        elif (age := self._now - wheel.released) < minimum:
            message = f"{_title(wheel)} is {spell_age(age)} old, and should be {spell_age(minimum)}"
            yield _finding(Treatment.ASK, "policy-age", message, wheel)

    def _vulnerabilities(self, wheel: ProposedWheel) -> Iterator[_Finding]:
        treatment = self._rules.known_vulnerability or Treatment.ASK
        for known in wheel.vulnerabilities:
            if not {known.id, *known.aliases} & set(self._rules.ignored):
                about = f": {known.summary}" if known.summary else ""
                hint = f"fixed in {' and '.join(known.fixed)}" if known.fixed else None
                message = f"{_title(wheel)} has the known vulnerability {known.id}{about}"
                yield _Finding(treatment, Reason("policy-vulnerability", message, wheel.name, hint))

    def _with_dependencies(self) -> frozenset[str]:
        """Names that an allowed package brings in, directly or through others that are brought in so. What an uploaded
        wheel brings in, its author chose, whatever it is called."""
        covered = {
            wheel.name
            for wheel in self._wheels
            if not wheel.uploaded and any(entry.covers(wheel.version) for entry in self._catalog.allowed(wheel.name))
        }
        while True:
            more = {
                wheel.name
                for wheel in self._wheels
                if wheel.name not in covered
                and not wheel.uploaded
                and not self._catalog.allowed(wheel.name)
                and covered.intersection(wheel.required_by)
            }
            if not more:
                return frozenset(covered)
            covered |= more


def _finding(treatment: Treatment, code: str, message: str, wheel: ProposedWheel) -> _Finding:
    return _Finding(treatment, Reason(code, message, wheel.name))


def _title(wheel: ProposedWheel) -> str:
    return f"{wheel.name} {wheel.version}"


def _short(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if len(words) <= 60 else f"{words[:59]}…"


def _listing(names: Sequence[str]) -> str:
    shown = sorted(names)
    if len(shown) > _MOST_NAMES:
        shown = [*shown[: _MOST_NAMES - 1], f"{len(shown) - _MOST_NAMES + 1} others"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"

"""Issue 4.2: how requests are sorted. A table of cases, and what holds for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.policy import encoding
from envdsl.policy.catalog import Catalog, SessionRules, parse_catalog
from envdsl.policy.classify import CODES, classify
from envdsl.policy.proposal import (
    Choice,
    Classification,
    Plan,
    Problem,
    ProblemKind,
    Proposal,
    ProposedWheel,
    Upload,
    Verdict,
    Vulnerability,
)
from envdsl.policy.rules import Entry, Rules, Treatment

NOW = datetime(2026, 6, 1, tzinfo=UTC)
OLD = NOW - timedelta(days=300)

CATALOG = """
[allow]
packages = ["pandas>=2.2,<4", "six", "numpy"]
[deny]
evil = "a known trap"
"six<1.15" = "too old"
[limits]
max-wheel-size = "50 MB"
max-closure-size = "80 MB"
minimum-age = "7 days"
[licences]
allowed = ["MIT", "BSD-*"]
denied = ["AGPL-*"]
[[session]]
pattern = "open-*"
allow.dependencies = true
[[session]]
pattern = "closed-*"
allow.unlisted = "deny"
[[session]]
pattern = "bold-*"
licences.unknown = "allow"
licences.unlisted = "allow"
limits.unknown-age = "allow"
limits.max-wheel-size = "none"
limits.max-closure-size = "none"
vulnerabilities.known = "allow"
[[session]]
pattern = "strict-*"
licences.unknown = "deny"
vulnerabilities.known = "deny"
[[session]]
pattern = "knowing-*"
vulnerabilities.ignore = { CVE-1 = "on another system" }
"""


def wheel(name: str = "pandas", version: str = "3.0", **more: Any) -> ProposedWheel:
    facts: dict[str, Any] = {
        "filename": f"{name}-{version}-py3-none-any.whl",
        "sha256": "a" * 64,
        "size": 1_000_000,
        "released": OLD,
        "licence": "MIT",
    }
    return ProposedWheel(name, version, **(facts | more))


def plan(*wheels: ProposedWheel, kind: str = "x") -> Plan:
    return Plan(kind, "d" * 64, "lock", wheels)


@dataclass
class Case:
    """``extension`` and ``isolated`` are the wheels of the plans; ``codes`` are the expected reasons in order."""

    id: str
    verdict: str
    codes: list[str] = field(default_factory=list)
    extension: list[ProposedWheel] | None = None
    isolated: list[ProposedWheel] | None = None
    problem: Problem | None = None
    wanted: tuple[str, ...] = ("pandas",)
    present: dict[str, str] = field(default_factory=lambda: {"numpy": "2.1"})
    uploads: tuple[Upload, ...] = ()
    session: str = "s"
    choices: list[str] | None = None
    words: str = ""
    present_sha256: tuple[str, ...] = ()

    @property
    def proposal(self) -> Proposal:
        return Proposal(
            self.session,
            self.wanted,
            self.uploads,
            self.present,
            plan(*self.extension) if self.extension is not None else None,
            plan(*self.isolated, kind="iso") if self.isolated is not None else None,
            self.problem,
            self.present_sha256,
        )


def problem(kind: ProblemKind, *packages: str) -> Problem:
    return Problem(kind, f"because of {kind}", packages, hint="do something else")


BASE = problem(ProblemKind.CONTRADICTS_BASE, "numpy")
SESSION = problem(ProblemKind.CONTRADICTS_SESSION, "foo")
UPLOAD = Upload("mine-1.0-py3-none-any.whl", "b" * 64, 1000)
DEPENDENCY = wheel("tzdata", "2026.1", required_by=("pandas",))
VULNERABLE = Vulnerability("GHSA-1", ("CVE-1",), "code execution", "HIGH", ("3.1",))

CASES = [
    Case("allowed", "approved", extension=[wheel()]),
    Case(
        "allowed with a listed dependency",
        "approved",
        extension=[wheel(), wheel("six", "1.16", required_by=("pandas",))],
    ),
    Case("there already", "present"),
    Case("there already, and denied by now", "present", wanted=("evil",), present={"evil": "1"}),
    Case(
        "a wheel over the limit",
        "needs-person",
        ["policy-wheel-size"],
        [wheel(size=60_000_000)],
        words="60 MB, and 50 MB",
    ),
    Case(
        "a closure over the limit",
        "needs-person",
        ["policy-closure-size"],
        [wheel(size=45_000_000), wheel("six", "1.16", size=45_000_000)],
        words="90 MB",
    ),
    Case("no limit", "approved", extension=[wheel(size=10**10)], session="bold-1"),
    Case(
        "what is there does not count for the limit", "approved", extension=[wheel("numpy", "2.1", size=10**9), wheel()]
    ),
    Case("unlisted itself", "needs-person", ["policy-unlisted"], [wheel("plot")], wanted=("plot",)),
    Case("unlisted itself, and nobody is asked", "refused", ["policy-unlisted"], [wheel("plot")], session="closed-1"),
    Case(
        "another version than the listed one",
        "needs-person",
        ["policy-version"],
        [wheel(version="4.0")],
        words="pandas<4",
    ),
    Case(
        "unlisted dependency",
        "needs-person",
        ["policy-unlisted-dependency"],
        [wheel(), DEPENDENCY],
        words="which pandas needs",
    ),
    Case("dependencies are trusted", "approved", extension=[wheel(), DEPENDENCY], session="open-1"),
    Case(
        "dependencies are trusted through others",
        "approved",
        extension=[wheel(), DEPENDENCY, wheel("deep", required_by=("tzdata",))],
        session="open-1",
    ),
    Case(
        "dependencies of what is not listed are not trusted",
        "needs-person",
        ["policy-unlisted", "policy-unlisted-dependency"],
        [wheel("plot"), wheel("colours", required_by=("plot",))],
        session="open-1",
        wanted=("plot",),
    ),
    Case(
        "a listed dependency of another version is not trusted",
        "needs-person",
        ["policy-version"],
        [wheel("six", "1.16"), wheel("pandas", "5.0", required_by=("six",))],
        session="open-1",
        wanted=("six",),
    ),
    Case("denied itself", "refused", ["policy-denied"], [wheel("evil")], wanted=("evil",), words="a known trap"),
    Case(
        "denied in this version", "refused", ["policy-denied"], [wheel("six", "1.14")], wanted=("six",), words="too old"
    ),
    Case(
        "denied dependency",
        "refused",
        ["policy-denied-dependency"],
        [wheel(), wheel("evil", required_by=("pandas",))],
        words="evil 3.0, which pandas needs, is denied: a known trap",
    ),
    Case(
        "needed by many",
        "needs-person",
        ["policy-unlisted-dependency"],
        [wheel(), wheel("deep", required_by=("a", "b", "c", "d", "e", "pandas"))],
        words="deep 3.0, which a, b, c or 3 others needs, is not listed",
    ),
    Case(
        "denied, and not to be had anyway",
        "refused",
        ["policy-denied", "policy-unresolvable"],
        problem=problem(ProblemKind.UNRESOLVABLE),
        wanted=("Evil>=3",),
    ),
    Case("sdist only", "refused", ["policy-sdist-only"], problem=problem(ProblemKind.SDIST_ONLY, "pandas")),
    Case("unresolvable", "refused", ["policy-unresolvable"], problem=problem(ProblemKind.UNRESOLVABLE)),
    Case("invalid", "refused", ["policy-invalid"], problem=problem(ProblemKind.INVALID), wanted=("no requirement !",)),
    Case(
        "hash mismatch",
        "refused",
        ["policy-hash-mismatch"],
        problem=problem(ProblemKind.HASH_MISMATCH),
        uploads=(UPLOAD,),
    ),
    Case("yanked", "refused", ["policy-yanked"], problem=problem(ProblemKind.YANKED, "pandas")),
    Case("withdrawn meanwhile", "refused", ["policy-yanked"], [wheel(yanked="broken")], words="withdrawn: broken"),
    Case(
        "contradicts the base",
        "needs-person",
        ["policy-contradicts-base"],
        isolated=[wheel("numpy", "1.26"), wheel()],
        problem=BASE,
        choices=["isolate", "deny"],
    ),
    Case("contradicts the base, and has no solution", "refused", ["policy-contradicts-base"], problem=BASE),
    Case(
        "contradicts the base, and the way out is denied",
        "refused",
        ["policy-denied-dependency", "policy-contradicts-base"],
        isolated=[wheel("evil", required_by=("pandas",))],
        problem=BASE,
    ),
    Case(
        "contradicts a bound x layer",
        "needs-person",
        ["policy-contradicts-session"],
        isolated=[wheel()],
        problem=SESSION,
        choices=["isolate", "deny"],
    ),
    Case(
        "an uploaded wheel",
        "needs-person",
        ["policy-upload"],
        [wheel("mine", "1.0", uploaded=True, released=None)],
        wanted=(),
        uploads=(UPLOAD,),
    ),
    Case(
        "an uploaded wheel of a listed name",
        "needs-person",
        ["policy-upload"],
        [wheel(uploaded=True)],
        uploads=(replace(UPLOAD, filename="pandas-3.0-py3-none-any.whl"),),
    ),
    Case(
        "an uploaded wheel of what is there in the same version",
        "needs-person",
        ["policy-upload"],
        [wheel("numpy", "2.1", uploaded=True)],
        uploads=(replace(UPLOAD, filename="numpy-2.1-py3-none-any.whl"),),
    ),
    Case(
        "another wheel of what is there in the same version",
        "refused",
        ["policy-licence-denied"],
        [wheel("numpy", "2.1", licence="AGPL-3.0-only")],
        present_sha256=("f" * 64,),
    ),
    Case(
        "an uploaded wheel of a denied name",
        "refused",
        ["policy-denied"],
        [wheel("evil", uploaded=True)],
        uploads=(replace(UPLOAD, filename="evil-3.0-py3-none-any.whl"),),
        wanted=(),
    ),
    Case(
        "what an uploaded wheel of a listed name brings in is its author's choice",
        "needs-person",
        ["policy-upload", "policy-unlisted-dependency"],
        [wheel(uploaded=True), wheel("tzdata", "2026.1", required_by=("pandas",))],
        uploads=(replace(UPLOAD, filename="pandas-3.0-py3-none-any.whl"),),
        session="open-1",
    ),
    Case(
        "a pre-release of the version that a denial ends with",
        "refused",
        ["policy-denied"],
        [wheel("six", "1.15rc1")],
        wanted=("six",),
    ),
    Case("the version that a denial ends with", "approved", extension=[wheel("six", "1.15")], wanted=("six",)),
    Case("too young", "needs-person", ["policy-age"], [wheel(released=NOW - timedelta(days=6))], words="6 days old"),
    Case("just old enough", "approved", extension=[wheel(released=NOW - timedelta(days=7))]),
    Case("age unknown", "needs-person", ["policy-age-unknown"], [wheel(released=None)]),
    Case("age unknown, and that is no matter", "approved", extension=[wheel(released=None)], session="bold-1"),
    Case("licence unknown", "needs-person", ["policy-licence-unknown"], [wheel(licence=None)], words="does not state"),
    Case("licence not understood", "needs-person", ["policy-licence-unknown"], [wheel(licence="mine")], words="(mine)"),
    Case(
        "licence unknown, and denied for that",
        "refused",
        ["policy-licence-unknown"],
        [wheel(licence=None)],
        session="strict-1",
    ),
    Case("licence unknown, and that is no matter", "approved", extension=[wheel(licence=None)], session="bold-1"),
    Case(
        "licence not listed", "needs-person", ["policy-licence-unlisted"], [wheel(licence="MPL-2.0")], words="MPL-2.0"
    ),
    Case(
        "licence not listed, and that is no matter", "approved", extension=[wheel(licence="MPL-2.0")], session="bold-1"
    ),
    Case("licence denied", "refused", ["policy-licence-denied"], [wheel(licence="AGPL-3.0-only")]),
    Case(
        "licence denied, boldly",
        "refused",
        ["policy-licence-denied"],
        [wheel(licence="AGPL-3.0-only")],
        session="bold-1",
    ),
    Case(
        "a known vulnerability",
        "needs-person",
        ["policy-vulnerability"],
        [wheel(vulnerabilities=(VULNERABLE,))],
        words="pandas 3.0 has the known vulnerability GHSA-1: code execution",
    ),
    Case(
        "a known vulnerability, forbidden",
        "refused",
        ["policy-vulnerability"],
        [wheel(vulnerabilities=(VULNERABLE,))],
        session="strict-1",
    ),
    Case(
        "a known vulnerability, allowed", "approved", extension=[wheel(vulnerabilities=(VULNERABLE,))], session="bold-1"
    ),
    Case(
        "a vulnerability that does not count",
        "approved",
        extension=[wheel(vulnerabilities=(VULNERABLE,))],
        session="knowing-1",
    ),
    Case(
        "many reasons, the gravest first",
        "needs-person",
        ["policy-unlisted", "policy-version", "policy-licence-unknown", "policy-wheel-size", "policy-age"],
        [
            wheel(version="1.0", size=60_000_000),
            wheel("plot", released=NOW),
            wheel("six", "1.16", licence=None),
        ],
        wanted=("pandas", "plot", "six"),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_table_of_cases(case: Case) -> None:
    """Issue 4.2: the classification is a pure function; this is its table."""
    catalog = parse_catalog(CATALOG, name="catalog.toml")
    found = classify(catalog, case.proposal, now=NOW)
    assert (found.verdict, [reason.code for reason in found.reasons]) == (case.verdict, case.codes)
    assert case.words in " ".join(reason.message for reason in found.reasons)
    offered = case.choices or (["approve", "deny"] if case.verdict == "needs-person" else [])
    assert list(found.choices) == offered


names = st.sampled_from(["pandas", "six", "plot", "evil", "numpy", "tzdata"])
versions = st.sampled_from(["1.0", "2.2", "3.0", "5.0rc1"])
wheels = st.builds(
    wheel,
    names,
    versions,
    size=st.sampled_from([1, 49_000_000, 60_000_000]),
    released=st.sampled_from([None, OLD, NOW]),
    licence=st.sampled_from([None, "MIT", "AGPL-3.0-only", "MPL-2.0", "who knows"]),
    uploaded=st.booleans(),
    yanked=st.sampled_from([None, None, None, ""]),
    required_by=st.sets(names, max_size=2).map(lambda found: tuple(sorted(found))),
    vulnerabilities=st.sampled_from([(), (VULNERABLE,)]),
)
plans = st.lists(wheels, max_size=4, unique_by=lambda item: item.name).map(lambda found: plan(*found))
problems = st.none() | st.sampled_from(list(ProblemKind)).map(problem)
entries = st.builds(Entry, names, st.sampled_from(["", "<2", ">=2"]), st.just("no"))
treatments = st.none() | st.sampled_from(list(Treatment))
rules = st.builds(
    Rules,
    allow=st.lists(entries, max_size=4).map(tuple),
    dependencies=st.none() | st.booleans(),
    unlisted=treatments,
    deny=st.lists(entries, max_size=1).map(tuple),
    max_wheel_size=st.none() | st.just(50_000_000),
    max_closure_size=st.none() | st.just(80_000_000),
    minimum_age=st.none() | st.just(timedelta(days=7)),
    unknown_age=treatments,
    allowed_licences=st.sampled_from([(), ("MIT",)]),
    denied_licences=st.sampled_from([(), ("AGPL-*",)]),
    unlisted_licence=treatments,
    unknown_licence=treatments,
    known_vulnerability=treatments,
)
catalogs = st.builds(lambda general, more: Catalog("c", general, {}, (SessionRules("s*", more),)), rules, rules)


@st.composite
def proposals(draw: st.DrawFn) -> Proposal:
    trouble = draw(problems)
    return Proposal(
        "s",
        tuple(sorted(draw(st.sets(names, max_size=3)))),
        draw(st.sampled_from([(), (UPLOAD,)])),
        draw(st.dictionaries(names, versions, max_size=2)),
        draw(st.none() | plans) if trouble is None else None,
        draw(st.none() | plans),
        trouble,
    )


MILDER = [Verdict.APPROVED, Verdict.PERSON, Verdict.REFUSED]


def severity(found: Classification) -> int:
    return MILDER.index(found.verdict)


@given(catalogs, proposals())
def test_a_classification_is_whole(catalog: Catalog, proposal: Proposal) -> None:
    """Choices where a person decides, and nowhere else; reasons for whatever is not approved; each code is known."""
    found = classify(catalog, proposal, now=NOW)
    assert bool(found.choices) == (found.verdict is Verdict.PERSON)
    assert bool(found.reasons) == (found.verdict in (Verdict.PERSON, Verdict.REFUSED))
    assert all(reason.code in CODES for reason in found.reasons)
    assert Choice.DENY in found.choices or not found.choices
    if proposal.problem is not None:
        assert Choice.APPROVE not in found.choices
        assert found.verdict is not Verdict.APPROVED
    if Choice.ISOLATE in found.choices:
        assert proposal.isolated is not None
    assert encoding.from_json(Classification, encoding.to_json(found)) == found


@given(catalogs, proposals(), entries, st.booleans())
def test_denying_more_never_makes_a_verdict_milder(
    catalog: Catalog, proposal: Proposal, entry: Entry, general: bool
) -> None:
    before = classify(catalog, proposal, now=NOW)
    more = Rules(deny=(entry,))
    after = classify(
        replace(catalog, rules=catalog.rules.under(more))
        if general
        else replace(catalog, sessions=(*catalog.sessions, SessionRules("*", more))),
        proposal,
        now=NOW,
    )
    if before.verdict is Verdict.PRESENT:
        assert after == before
    else:
        assert severity(after) >= severity(before)


@given(catalogs, proposals(), entries)
def test_allowing_more_never_makes_a_verdict_graver(catalog: Catalog, proposal: Proposal, entry: Entry) -> None:
    before = classify(catalog, proposal, now=NOW)
    # A second entry for a name can take the cover of an allowed dependant from it; a new name can't.
    if before.verdict is not Verdict.PRESENT and not catalog.for_session("s").rules.dependencies:
        after = classify(
            replace(catalog, rules=catalog.rules.under(Rules(allow=(replace(entry, reason=None),)))), proposal, now=NOW
        )
        assert severity(after) <= severity(before)


@given(catalogs, proposals(), st.randoms(use_true_random=False))
def test_order_does_not_matter(catalog: Catalog, proposal: Proposal, random: Any) -> None:
    """Of wheels, requirements and entries."""

    def shuffled(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(random.sample(items, len(items)))

    def other(item: Plan | None) -> Plan | None:
        return replace(item, wheels=shuffled(item.wheels)) if item else None

    mixed = replace(
        proposal,
        requirements=shuffled(proposal.requirements),
        extension=other(proposal.extension),
        isolated=other(proposal.isolated),
    )
    listed = replace(catalog, rules=replace(catalog.rules, allow=shuffled(catalog.rules.allow)))
    before, after = classify(catalog, proposal, now=NOW), classify(listed, mixed, now=NOW)
    assert (after.verdict, after.choices) == (before.verdict, before.choices)
    assert [(reason.code, reason.package) for reason in after.reasons] == [
        (reason.code, reason.package) for reason in before.reasons
    ]


@given(catalogs, proposals())
def test_a_wheel_that_the_session_has_needs_nobodys_leave(catalog: Catalog, proposal: Proposal) -> None:
    if proposal.extension is not None and proposal.problem is None:
        had = replace(
            proposal,
            present={wheel.name: wheel.version for wheel in proposal.extension.wheels},
            extension=replace(
                proposal.extension,
                wheels=tuple(replace(wheel, uploaded=False) for wheel in proposal.extension.wheels),
            ),
            isolated=None,
            requirements=(),
            uploads=(),
        )
        assert classify(catalog, had, now=NOW).verdict is Verdict.APPROVED


@given(proposals())
def test_proposals_are_kept_as_json(proposal: Proposal) -> None:
    assert encoding.from_json(Proposal, encoding.to_json(proposal)) == proposal


@pytest.mark.parametrize("value", [None, 3, [], {}, {"session": 1}, {"session": "s", "requirements": 3}])
def test_what_is_no_proposal_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="not a Proposal"):
        encoding.from_json(Proposal, value)


def test_unknown_and_missing_keys_of_another_version_are_borne() -> None:
    value = encoding.to_json(CASES[0].proposal)
    value["newer"] = 1
    del value["isolated"]
    del value["extension"]["note"]
    assert encoding.from_json(Proposal, value) == CASES[0].proposal

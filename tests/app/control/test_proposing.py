"""Issue 4.2: what a request comes to. Real wheels, a real index, real uv, a real session."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.app.control import extending
from envdsl.errors import EnvdslError
from envdsl.lock.pylock import parse_lock
from envdsl.policy import encoding
from envdsl.policy.classify import classify
from envdsl.policy.proposal import Choice, Plan, ProblemKind, Proposal, Upload, Verdict
from tests.app.control.stage import NOW, Stage
from tests.lock.index import make_sdist


def names(plan: Plan | None) -> list[str]:
    assert plan is not None
    return [f"{wheel.name} {wheel.version}" for wheel in plan.wheels]


def verdict(stage: Stage, proposal: Proposal) -> Verdict:
    return classify(stage.plane.catalog, proposal, now=NOW).verdict


def test_a_request_becomes_an_x_layer_with_what_the_session_lacks(stage: Stage) -> None:
    """Issue 4.2: resolved under the base's lock; what it has is not brought again."""
    stage.wheel("plot", "1.0", "numpy", "colours")
    stage.wheel("colours", "3.2")
    proposal = stage.propose(stage.session("s"), "plot>=1")
    assert proposal.problem is None
    assert names(proposal.extension) == ["colours 3.2", "plot 1.0"]
    assert proposal.present == {"learn": "1.0", "numpy": "2.1"}
    assert proposal.extension is not None
    assert [wheel.required_by for wheel in proposal.extension.wheels] == [("plot",), ()]
    assert "127.0.0.1" not in proposal.extension.lock
    assert str(stage.root) not in proposal.extension.lock
    assert str(stage.project.config.store) not in proposal.extension.lock


def test_the_plan_is_built_as_it_was_shown(stage: Stage) -> None:
    """Issue 4.7: the digest shown is the digest built."""
    stage.wheel("plot", "1.0", "numpy")
    session = stage.session("s")
    plan = stage.propose(session, "plot").extension
    assert plan is not None
    with stage.project.store.lease():
        layer = extending.realise(stage.plane, plan, "requested-plot", session.foundation)
    assert layer.lock == plan.digest
    assert [(package.name, package.sha256) for package in layer.packages] == [("plot", plan.wheels[0].sha256)]
    assert layer.base == session.foundation.id


def test_two_sessions_with_the_same_need_have_the_same_plan(stage: Stage) -> None:
    """Issue 4.2: deterministic, whatever else a session is bound to and whatever the catalog of the day says."""
    stage.wheel("plot", "1.0", "numpy")
    first = stage.propose(stage.session("a"), "plot")
    stage.catalog('[allow]\npackages = ["plot<2"]\n[limits]\nminimum-age = "7 days"\n')
    second = stage.propose(stage.session("b", "core", "one"), " Plot ", "plot")
    assert first.extension == second.extension
    assert second.requirements == ("plot",)


def test_what_is_there_already_needs_no_layer(stage: Stage) -> None:
    """Issue 4.2: nothing to do because it is there already."""
    session = stage.session("s", "core", "one")
    for wanted in (["numpy>=2"], ["foo"], ["foo==1", "learn"], ["tomli; python_version < '3'"], []):
        proposal = stage.propose(session, *wanted)
        assert (proposal.extension, proposal.problem) == (None, None), wanted
        assert verdict(stage, proposal) is Verdict.PRESENT


def test_extras_of_what_is_there_bring_what_they_require(stage: Stage) -> None:
    stage.wheel("h2", "4.0")
    stage.wheel(
        "learn", "1.0", "numpy", "h2; extra == 'fast'", extra_metadata="Provides-Extra: fast\nProvides-Extra: none\n"
    )
    proposal = stage.propose(stage.session("s"), "learn[fast]")
    assert names(proposal.extension) == ["h2 4.0"]
    assert proposal.extension is not None
    assert proposal.extension.wheels[0].required_by == ("learn",)


def test_what_a_bound_x_layer_has_is_kept(stage: Stage) -> None:
    """Issue 4.2: resolved under what the session already has."""
    stage.wheel("foo", "2")
    stage.wheel("bar", "1", "foo")
    proposal = stage.propose(stage.session("s", "core", "one"), "bar")
    assert names(proposal.extension) == ["bar 1", "foo 1"]


def test_a_contradiction_to_the_base_has_an_isolated_plan(stage: Stage) -> None:
    """Issue 4.2: contradicts base: ISOLATE or DENY, and the plan keeps what the base was declared with."""
    stage.wheel("numpy", "1.26")
    stage.wheel("old", "1.0", "numpy<2")
    proposal = stage.propose(stage.session("s"), "old")
    assert proposal.extension is None
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.CONTRADICTS_BASE
    assert proposal.problem.pin == "numpy==2.1"
    assert proposal.problem.packages == ("numpy",)
    assert "numpy 2.1" in proposal.problem.message
    assert names(proposal.isolated) == ["learn 1.0", "numpy 1.26", "old 1.0"]
    assert proposal.isolated is not None
    assert proposal.isolated.kind == "iso"
    assert proposal.isolated.note == ""
    found = classify(stage.plane.catalog, proposal, now=NOW)
    assert (found.verdict, found.choices) == (Verdict.PERSON, (Choice.ISOLATE, Choice.DENY))


def test_an_isolated_plan_keeps_the_versions_that_the_session_has(stage: Stage) -> None:
    stage.wheel("numpy", "1.26")
    session = stage.session("s")
    stage.wheel("learn", "1.1", "numpy")  # newer than the base
    plan = stage.propose(session, "numpy<2").isolated
    assert names(plan) == ["learn 1.0", "numpy 1.26"]
    assert plan is not None
    assert plan.note == ""


def test_an_isolated_plan_gives_up_what_the_session_has_where_it_must(stage: Stage) -> None:
    """Where base and request have no common solution, the request alone, and it says so."""
    stage.wheel("numpy", "1.26")
    stage.wheel("learn", "1.0", "numpy>=2")
    session = stage.session("s")
    stage.wheel("old", "1.0", "numpy<2")
    (stage.index.directory / "learn-1.0-py3-none-any.whl").unlink()
    stage.wheel("learn", "1.0", "numpy>=2")
    proposal = stage.propose(session, "old", "numpy<2")
    assert names(proposal.isolated) == ["numpy 1.26", "old 1.0"]
    assert proposal.isolated is not None
    assert "nothing but what was asked for" in proposal.isolated.note


def test_a_contradiction_to_a_bound_x_layer_names_it(stage: Stage) -> None:
    """Issue 4.2: contradicts a bound x layer; the isolated plan takes the x layer's needs along."""
    stage.wheel("foo", "2")
    proposal = stage.propose(stage.session("s", "core", "one"), "foo==2")
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.CONTRADICTS_SESSION
    assert proposal.problem.pin == "foo==1"
    assert proposal.problem.message == "the request needs foo==2, but the session's layer one has foo 1"
    assert names(proposal.isolated) == ["foo 2", "learn 1.0", "numpy 2.1"]


def test_a_contradiction_to_a_bound_x_layer_through_a_dependency_names_it(stage: Stage) -> None:
    """Issue 4.2: contradicts a bound x layer, at one remove."""
    stage.wheel("foo", "2")
    stage.wheel("bar", "1", "foo>=2")
    proposal = stage.propose(stage.session("s", "core", "one"), "bar")
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.CONTRADICTS_SESSION
    assert (proposal.problem.packages, proposal.problem.pin) == (("foo",), "foo==1")
    assert proposal.problem.message == "it comes to foo 2, and the session's layer one has foo 1"
    assert proposal.problem.hint is not None
    # The x layer was declared with foo==1: that cannot be kept, and all else can.
    assert names(proposal.isolated) == ["bar 1", "foo 2", "learn 1.0", "numpy 2.1"]
    assert proposal.isolated is not None
    assert proposal.isolated.note == "It gives up what the session's layers were declared with: foo==1."


def test_a_version_that_nobody_has_is_no_contradiction(stage: Stage) -> None:
    proposal = stage.propose(stage.session("s"), "numpy==99")
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.UNRESOLVABLE
    assert proposal.isolated is None


def test_another_session_may_have_the_other_version(stage: Stage) -> None:
    """Issue 4.5: two sessions with foo==1 and foo==2, the base unchanged."""
    stage.wheel("foo", "2")
    assert names(stage.propose(stage.session("a"), "foo==1").extension) == ["foo 1"]
    assert names(stage.propose(stage.session("b"), "foo==2").extension) == ["foo 2"]


@pytest.mark.parametrize(
    ("wanted", "kind", "words"),
    [
        (["nosuchthing"], ProblemKind.UNRESOLVABLE, "no index knows a package `nosuchthing`"),
        (["sourceonly"], ProblemKind.SDIST_ONLY, "sourceonly has no wheels in the versions that the request allows"),
        (["foo==7"], ProblemKind.UNRESOLVABLE, "no version of foo is what the request asks for"),
        (["gone==1"], ProblemKind.YANKED, "gone 1 is yanked (broken)"),
        (["foo ==="], ProblemKind.INVALID, "'foo ==='"),
        (["foo @ https://example.org/foo.whl"], ProblemKind.INVALID, "names an address"),
        (["foo==1", "foo==2"], ProblemKind.UNRESOLVABLE, "foo"),
    ],
)
def test_what_can_not_be_had_is_a_problem_and_no_error(
    stage: Stage, wanted: list[str], kind: ProblemKind, words: str
) -> None:
    """Issue 4.2: sdist only, unresolvable, yanked, invalid."""
    make_sdist(stage.index.directory, "sourceonly", "1.0")
    gone = stage.wheel("gone", "1")
    stage.index.yanked[gone.name] = "broken"
    proposal = stage.propose(stage.session("s"), *wanted)
    assert proposal.problem is not None
    assert proposal.problem.kind is kind, proposal.problem
    assert words in proposal.problem.message
    assert (proposal.extension, proposal.isolated) == (None, None)
    assert verdict(stage, proposal) is Verdict.REFUSED


def test_an_index_that_can_not_be_asked_is_an_error_and_no_refusal(stage: Stage) -> None:
    session = stage.session("s")
    stage.index.statuses["foo"] = [403]
    with pytest.raises(EnvdslError) as caught:
        stage.propose(session, "foo")
    assert caught.value.code == "lock-index-credentials"


def test_an_uploaded_wheel_is_the_layers_own(stage: Stage) -> None:
    """Issue 4.2: uploaded wheel; a person decides on it, and exactly its bytes are built."""
    stage.wheel("mine", "9.9")  # the index's does not matter
    session = stage.session("s")
    upload = stage.upload("mine", "1.0", "foo")
    proposal = stage.propose(session, uploads=(upload,))
    plan = proposal.extension
    assert names(plan) == ["foo 1", "mine 1.0"]
    assert plan is not None
    assert [wheel.uploaded for wheel in plan.wheels] == [False, True]
    assert f'"../uploads/{upload.sha256}/{upload.filename}"' in plan.lock
    assert verdict(stage, proposal) is Verdict.PERSON
    with stage.project.store.lease():
        layer = extending.realise(stage.plane, plan, "requested-mine", session.foundation, [upload])
    assert {package.sha256 for package in layer.packages} >= {upload.sha256}


def test_of_several_uploaded_wheels_the_one_that_fits_is_taken(stage: Stage) -> None:
    """Issue 4.2: any number of uploaded wheels."""
    other = stage.upload("mine", "1.0", tag="cp38-cp38-manylinux_2_17_x86_64")
    fits = stage.upload("mine", "1.0")
    plan = stage.propose(stage.session("s"), uploads=(other, fits)).extension
    assert plan is not None
    assert [wheel.sha256 for wheel in plan.wheels] == [fits.sha256]
    proposal = stage.propose(stage.session("t"), uploads=(other,))
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.INVALID
    assert "mine has no wheel for" in proposal.problem.message


def test_known_vulnerabilities_are_looked_up(stage: Stage) -> None:
    """Issue 4.7: known vulnerabilities of every wheel."""
    dump = stage.root / "osv"
    dump.mkdir()
    affected = {"package": {"ecosystem": "PyPI", "name": "foo"}, "versions": ["1"]}
    (dump / "x.json").write_text(
        json.dumps({"id": "GHSA-1", "modified": "2026-01-01T00:00:00Z", "affected": [affected]})
    )
    config = stage.project.config
    stage.project.config = replace(config, service=replace(config.service, vulnerabilities=dump))
    plan = stage.propose(stage.session("s"), "foo").extension
    assert plan is not None
    assert [item.id for item in plan.wheels[0].vulnerabilities] == ["GHSA-1"]


def test_an_uploaded_wheel_with_other_bytes_is_a_mismatch(stage: Stage) -> None:
    """Issue 4.2: hash mismatch."""
    upload = stage.upload("mine", "1.0")
    place = stage.project.config.store / "uploads" / upload.sha256 / upload.filename
    place.write_bytes(b"something else")
    proposal = stage.propose(stage.session("s"), uploads=(upload,))
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.HASH_MISMATCH
    assert verdict(stage, proposal) is Verdict.REFUSED


def test_an_uploaded_wheel_of_what_the_base_has_contradicts_it(stage: Stage) -> None:
    """Issue 4.2: it must not silently lose against the base's own wheel."""
    upload = stage.upload("numpy", "3.0")
    proposal = stage.propose(stage.session("s"), uploads=(upload,))
    assert proposal.problem is not None
    assert proposal.problem.kind is ProblemKind.CONTRADICTS_BASE
    assert names(proposal.isolated) == ["learn 1.0", "numpy 3.0"]


def test_an_upload_that_is_bound_already_is_there(stage: Stage) -> None:
    session = stage.session("s")
    wheel = session.foundation.packages[0]
    upload = Upload(wheel.filename, wheel.sha256, 1)
    source = stage.project.store.layout.wheelhouse / wheel.sha256 / wheel.filename
    place = stage.project.config.store / "uploads" / wheel.sha256 / wheel.filename
    place.parent.mkdir(parents=True)
    place.write_bytes(source.read_bytes())
    assert verdict(stage, stage.propose(session, uploads=(upload,))) is Verdict.PRESENT


def test_the_catalog_is_kept_to_where_it_can_be(stage: Stage) -> None:
    """The newest version that needs nobody's leave, not the newest one; a request for more gets more, and is asked."""
    stage.wheel("pandas", "2.9")
    young = stage.wheel("pandas", "3.0")
    stage.wheel("polars", "1.0")
    fresh = stage.wheel("polars", "1.1")
    stage.index.upload_times[fresh.name] = "2026-05-30T00:00:00Z"
    session = stage.session("s")
    stage.catalog('[allow]\npackages = ["pandas<3", "polars"]\n[limits]\nminimum-age = "7 days"\n')
    proposal = stage.propose(session, "pandas", "polars")
    assert names(proposal.extension) == ["pandas 2.9", "polars 1.0"]
    assert verdict(stage, proposal) is Verdict.APPROVED
    proposal = stage.propose(session, "pandas>=3", "polars>1")
    assert names(proposal.extension) == ["pandas 3.0", "polars 1.1"]
    codes = {reason.code for reason in classify(stage.plane.catalog, proposal, now=NOW).reasons}
    assert codes == {"policy-version", "policy-age"}
    assert young.is_file()


def test_a_session_on_an_iso_layer_is_extended_like_any_other(stage: Stage) -> None:
    """Issue 4.2: the foundation may be an iso layer."""
    session = stage.session("s", "alone")
    plan = stage.propose(session, "learn").extension
    assert names(plan) == ["learn 1.0", "numpy 2.1"]
    assert plan is not None
    with stage.project.store.lease():
        layer = extending.realise(stage.plane, plan, "requested-learn", session.foundation)
    assert layer.base == session.foundation.id


def test_a_proposal_is_kept_as_json(stage: Stage) -> None:
    stage.wheel("plot", "1.0", "numpy", extra_metadata="License-Expression: MIT\nSummary: Draws\n")
    proposal = stage.propose(stage.session("s"), "plot")
    assert encoding.from_json(Proposal, json.loads(json.dumps(encoding.to_json(proposal)))) == proposal


def test_the_lock_of_a_plan_can_be_read(stage: Stage) -> None:
    stage.wheel("plot", "1.0", "numpy")
    plan = stage.propose(stage.session("s"), "plot").extension
    assert plan is not None
    lock = parse_lock(plan.lock.encode(), Path("pylock.anything.toml"))
    assert lock.digest == plan.digest
    assert lock.recorded["packages"] == ["plot"]
    assert "constraints" not in lock.recorded

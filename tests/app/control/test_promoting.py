"""A request becomes the project's: what is written gives the layer that the session is bound to."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.app import building, locking
from envdsl.app.control.deciding import decide
from envdsl.app.control.promoting import promote
from envdsl.app.control.uploads import receive
from envdsl.errors import EnvdslError
from envdsl.policy.proposal import Choice
from tests.app.control.bench import ADMIN, LAYERS, Bench, agent, reopened
from tests.wheels import make_wheel


def files(bench: Bench) -> set[str]:
    return {path.relative_to(bench.root).as_posix() for path in bench.root.rglob("*") if "store" not in path.parts}


def check(bench: Bench, name: str, layer: str | None) -> None:
    """The lock is current, and a build gives ``layer``."""
    project = reopened(bench)
    try:
        (outcome,) = [item for item in locking.check(project, [name]) if item.layer == name]
        assert outcome.status == "current"
        (answer,) = building.build(project, [name]).answers
        assert answer.id == layer
    finally:
        project.close()


def test_a_promoted_request_is_a_layer_of_the_project_with_the_same_id(bench: Bench) -> None:
    """Issue 4.7: promote writes the layer text and its lock."""
    bench.session("s")
    record = bench.settled("s", "tool", reason='for ${the} "report"')
    written = promote(bench.plane, ADMIN, record.id, name="reporting")
    assert [path.relative_to(bench.root).as_posix() for path in written] == [
        "layers.d/reporting.layer",
        "layers.d/pylock.reporting.toml",
    ]
    text = written[0].read_text()
    assert 'x reporting on core {\n  packages = [ "tool" ];\n}' in text
    assert record.id in text
    check(bench, "reporting", record.layer)
    assert "request.promoted" in bench.actions(record.id)


def test_an_iso_layer_and_an_uploaded_wheel_are_promoted_too(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    waiting = bench.settled("s", "fresh")
    decide(bench.plane, ADMIN, waiting.id, Choice.ISOLATE, digest=waiting.digest)
    bench.settle()
    promote(bench.plane, ADMIN, waiting.id)
    check(bench, "requested-fresh", bench.get(waiting.id).layer)

    bench.session("t")
    wheel = make_wheel(bench.root / "built", "mine", "3", requires=["foo"])
    with wheel.open("rb") as stream:
        upload, _ = receive(bench.plane, wheel.name, stream)
    asked = bench.settled("t", uploads=[upload])
    decide(bench.plane, ADMIN, asked.id, Choice.APPROVE, digest=asked.digest)
    bench.settle()
    written = promote(bench.plane, ADMIN, asked.id, name="mine")
    assert bench.root / "layers.d" / "wheels" / wheel.name in written
    check(bench, "mine", bench.get(asked.id).layer)


def test_a_second_promotion_says_where_the_first_one_is(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    record = bench.settled("s", "foo")
    promote(bench.plane, ADMIN, record.id, name="first")
    before = files(bench)
    with pytest.raises(EnvdslError, match="`first`") as caught:
        promote(bench.plane, ADMIN, record.id, name="second")
    assert caught.value.code == "app-promoted-already"
    assert caught.value.diagnostics[0].span is not None
    assert files(bench) == before
    for file in ("first.layer", "pylock.first.toml"):  # somebody thought better of it
        (bench.root / "layers.d" / file).unlink()
    promote(bench.plane, ADMIN, record.id, name="second")
    check(bench, "second", record.layer)


def test_a_wheel_of_the_project_is_not_taken_for_another_of_its_name(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    wheel = make_wheel(bench.root / "built", "mine", "3")
    with wheel.open("rb") as stream:
        upload, _ = receive(bench.plane, wheel.name, stream)
    asked = bench.settled("s", uploads=[upload])
    decide(bench.plane, ADMIN, asked.id, Choice.APPROVE, digest=asked.digest)
    bench.settle()
    place = bench.root / "layers.d" / "wheels" / wheel.name
    place.parent.mkdir()
    place.write_bytes(b"another wheel")
    before = files(bench)
    with pytest.raises(EnvdslError) as caught:
        promote(bench.plane, ADMIN, asked.id)
    assert caught.value.code == "app-wheel-exists"
    assert files(bench) == before
    assert place.read_bytes() == b"another wheel"


def test_a_base_for_more_platforms_gets_a_lock_for_all_of_them(light_bench: Bench, tmp_path: Path) -> None:
    bench = light_bench
    text = LAYERS.replace(
        'packages = [ "bar==2" ];',
        'packages = [ "bar==2" ]; platforms = [ "manylinux_2_28_x86_64" "manylinux_2_28_aarch64" ];',
    )
    (bench.root / "layers.d" / "all.layer").write_text(text)
    bench.project.reread()
    locking.lock(bench.project, ["next"])
    building.build(bench.project, ["next"])
    bench.session("s", "next")
    record = bench.settled("s", "tool")
    promote(bench.plane, ADMIN, record.id, name="both")
    check(bench, "both", record.layer)
    assert "aarch64" in (bench.root / "layers.d" / "pylock.both.toml").read_text()


def test_what_cannot_be_promoted_leaves_no_trace(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    waiting, ready = bench.settled("s", "unlisted"), bench.settled("s", "foo")
    before = files(bench)
    cases = [
        (waiting.id, "x1", "app-not-ready"),
        (ready.id, "core", "app-layer-exists"),
        (ready.id, "a b", "app-layer-name"),
    ]
    for request, name, code in cases:
        with pytest.raises(EnvdslError) as caught:
            promote(bench.plane, ADMIN, request, name=name)
        assert caught.value.code == code
    with pytest.raises(EnvdslError) as caught:
        promote(bench.plane, agent("s"), ready.id)
    assert caught.value.code == "app-forbidden"
    text = LAYERS.replace('packages = [ "bar==1" ]', 'packages = [ "bar==1" "spare" ]')
    (bench.root / "layers.d" / "all.layer").write_text(text)
    bench.project.reread()
    locking.lock(bench.project, ["core"])
    with pytest.raises(EnvdslError) as caught:
        promote(bench.plane, ADMIN, ready.id, name="late")
    assert caught.value.code == "app-base-moved-on"
    assert files(bench) == before

"""From asking to importing, through each outcome, in real sandboxes."""

from __future__ import annotations

import subprocess

import pytest

from envdsl.app import building, sessions
from envdsl.app.control.asking import binding_digest
from envdsl.app.control.card import card
from envdsl.app.control.deciding import decide
from envdsl.app.control.uploads import receive
from envdsl.errors import EnvdslError
from envdsl.policy.proposal import Choice
from envdsl.state.records import Status
from tests.app.control.bench import ADMIN, Bench, reopened
from tests.wheels import make_wheel


def test_what_the_catalog_allows_can_be_imported_without_anybody(bench: Bench) -> None:
    """Issue 4.3: approved by rule, built by a worker, bound; the next start sees it."""
    bench.session("s")
    assert bench.run("s", "import foo")[0] == 1
    record = bench.settled("s", "foo==1")
    assert record.status is Status.READY, record
    assert record.decision is not None
    assert record.decision.by == "rule"
    assert record.layer in [str(layer.id) for layer in bench.manifest("s").layers]
    assert bench.run("s", "import foo, bar; print(foo.__version__)") == (0, "1\n")
    assert bench.actions(record.id) == [
        "request.created",
        "request.approved",
        "request.building",
        "binding.request",
        "request.ready",
    ]


def test_what_is_not_listed_waits_for_a_person_and_is_built_as_it_was_shown(bench: Bench) -> None:
    """Issue 4.7: a person decides on a digest, and that digest is built."""
    bench.session("s")
    waiting = bench.settled("s", "unlisted")
    assert waiting.status is Status.PENDING
    assert waiting.classification is not None
    assert waiting.classification["choices"] == ["approve", "deny"]
    decided = decide(bench.plane, ADMIN, waiting.id, Choice.APPROVE, digest=waiting.digest, comment="fine")
    assert decided.status is Status.APPROVED
    bench.settle()
    ready = bench.get(waiting.id)
    assert (ready.status, ready.digest) == (Status.READY, waiting.digest)
    assert bench.manifest("s").layers[-1].lock == waiting.digest
    assert ready.decision is not None
    assert (ready.decision.by, ready.decision.comment) == (ADMIN.name, "fine")
    assert bench.run("s", "import unlisted")[0] == 0


def test_what_is_denied_is_refused_with_the_reason_and_changes_nothing(bench: Bench) -> None:
    """Issue 4.3: refused by rule."""
    before = bench.session("s")
    record = bench.settled("s", "evil")
    assert record.status is Status.REFUSED
    assert "it phones home" in str(record.classification)
    assert bench.manifest("s") == before


def test_a_request_against_the_base_can_become_an_iso_layer_in_its_place(bench: Bench) -> None:
    """Issue 4.5: the session rebinds to the iso layer; the x layers of the old base go, and the difference says so."""
    bench.session("s", "core", "extra")
    waiting = bench.settled("s", "fresh")
    assert waiting.status is Status.PENDING
    assert waiting.classification is not None
    assert waiting.classification["choices"] == ["isolate", "deny"]
    with pytest.raises(EnvdslError) as caught:
        decide(bench.plane, ADMIN, waiting.id, Choice.APPROVE, digest=waiting.digest)
    assert caught.value.code == "app-choice"
    decide(bench.plane, ADMIN, waiting.id, Choice.ISOLATE, digest=waiting.digest)
    bench.settle()
    assert bench.get(waiting.id).status is Status.READY, bench.get(waiting.id).problem
    assert [layer.kind for layer in bench.manifest("s").layers] == ["iso"]
    assert bench.run("s", "import bar, fresh; print(bar.VERSION)") == (0, "2\n")


def test_a_session_on_an_iso_layer_can_ask_for_more(light_bench: Bench) -> None:
    """Issue 4.5: an iso layer is no dead end."""
    bench = light_bench
    bench.session("s")
    waiting = bench.settled("s", "fresh")
    decide(bench.plane, ADMIN, waiting.id, Choice.ISOLATE, digest=waiting.digest)
    bench.settle()
    record = bench.settled("s", "foo==1")
    if record.status is Status.PENDING:
        decide(bench.plane, ADMIN, record.id, Choice(record.classification["choices"][0]), digest=record.digest)
        bench.settle()
    assert bench.get(record.id).status is Status.READY, bench.get(record.id).problem
    assert bench.run("s", "import fresh, foo, bar; print(bar.VERSION, foo.__version__)") == (0, "2 1\n")


def test_two_sessions_with_foo_1_and_foo_2_have_two_x_layers_and_the_base_unchanged(bench: Bench) -> None:
    """Issue 4.5: nobody's environment but that session's changes."""
    base = bench.project.store.lookup(bench.session("a").foundation.key)
    bench.session("b")
    for session, version in (("a", "1"), ("b", "2")):
        assert bench.settled(session, f"foo=={version}").status is Status.READY
    for session, version in (("a", "1"), ("b", "2")):
        assert bench.run(session, "import foo; print(foo.__version__)") == (0, f"{version}\n")
    first, second = (bench.manifest(session) for session in "ab")
    assert first.foundation == second.foundation
    assert first.layers[1].id != second.layers[1].id
    assert bench.project.store.lookup(first.foundation.key) == base


def test_the_same_need_in_two_sessions_is_one_layer(bench: Bench) -> None:
    """Issue 4.3: a layer's key depends on content alone."""
    before = bench.layers("x")
    for session in ("a", "b"):
        bench.session(session)
        assert bench.settled(session, "tool").status is Status.READY
    assert len(set(bench.layers("x")) - set(before)) == 1
    assert bench.manifest("a").layers[1].key == bench.manifest("b").layers[1].key


def test_what_the_session_has_already_is_nothing_to_do(bench: Bench) -> None:
    """Issue 4.2: nothing to do because it is there already."""
    before = bench.session("s")
    record = bench.settled("s", "bar")
    assert (record.status, record.layer) == (Status.READY, None)
    assert bench.manifest("s") == before
    assert bench.env("s").answer(record).status == "present"


def test_an_uploaded_wheel_waits_for_a_person_then_can_be_imported(bench: Bench) -> None:
    """Issue 4.2: uploaded wheels."""
    bench.session("s")
    wheel = make_wheel(bench.root / "built", "mine", "3", requires=["foo"])
    with wheel.open("rb") as stream:
        upload, report = receive(bench.plane, wheel.name, stream)
    assert (report.name, report.version, report.imports, report.requires) == ("mine", "3", ("mine",), ("foo",))
    waiting = bench.settled("s", uploads=[upload])
    assert waiting.status is Status.PENDING, waiting
    assert "mine (uploaded; import mine)" in card(bench.plane, waiting).to_markdown()
    decide(bench.plane, ADMIN, waiting.id, Choice.APPROVE, digest=waiting.digest)
    bench.settle()
    assert bench.get(waiting.id).status is Status.READY, bench.get(waiting.id).problem
    assert bench.run("s", "import mine, foo; print(mine.__version__, foo.__version__)") == (0, "3 2\n")


def test_a_plan_that_does_not_hold_any_more_is_sorted_again_whoever_approved_it(bench: Bench) -> None:
    """Issue 4.3: an approval of another digest does not hold. Here foo 2 came meanwhile, and foo 1 was approved."""
    bench.session("s")
    shown = bench.settled("s", "careful")
    assert bench.settled("s", "tool").status is Status.READY
    decide(bench.plane, ADMIN, shown.id, Choice.APPROVE, digest=shown.digest)
    bench.settle()
    again = bench.get(shown.id)
    assert (again.status, again.decision) == (Status.PENDING, None)
    assert again.digest != shown.digest
    assert "request.pending" in bench.actions(shown.id)
    assert "policy-contradicts-session" in str(again.classification)
    assert bench.run("s", "import foo; print(foo.__version__)") == (0, "2\n")


def test_a_plan_that_still_holds_is_built_although_the_session_changed(bench: Bench) -> None:
    """Issue 4.3: the same digest goes on."""
    bench.session("s")
    shown = bench.settled("s", "unlisted")
    assert bench.settled("s", "foo").status is Status.READY
    decide(bench.plane, ADMIN, shown.id, Choice.APPROVE, digest=shown.digest)
    bench.settle()
    assert bench.get(shown.id).status is Status.READY
    assert [layer.name for layer in bench.manifest("s").layers] == ["core", "requested-foo", "requested-unlisted"]
    assert bench.run("s", "import foo, unlisted")[0] == 0


def test_a_running_sandbox_keeps_what_it_started_with(light_bench: Bench) -> None:
    """Issue 4.5: the next start sees the new layers."""
    bench = light_bench
    bench.session("s")
    script = bench.project.store.layout.sessions / "s" / "run"
    code = (
        "import importlib, sys\n"
        "print('up', flush=True)\n"
        "sys.stdin.readline()\n"
        "importlib.invalidate_caches()\n"
        "try:\n    import foo\nexcept ImportError:\n    print('without')\n"
    )
    running = subprocess.Popen(
        [script, "python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={}, cwd="/"
    )
    assert running.stdin is not None
    assert running.stdout is not None
    assert running.stdout.readline() == "up\n"
    assert bench.settled("s", "foo").status is Status.READY
    assert bench.run("s", "import foo")[0] == 0
    out, _ = running.communicate("go\n", timeout=30)
    assert (out, running.returncode) == ("without\n", 0)


def test_an_x_layer_over_a_base_that_the_project_has_left_behind(light_bench: Bench) -> None:
    """Issue 4.2: resolved under the base that is bound, not under the one that is declared now."""
    bench = light_bench
    bound = bench.session("s").foundation
    (bench.root / "layers.d" / "all.layer").unlink()
    for lock in (bench.root / "layers.d").glob("pylock.*"):
        lock.unlink()
    record = bench.settled("s", "tool")
    assert record.status is Status.READY, record.problem
    manifest = bench.manifest("s")
    assert manifest.foundation == bound
    assert manifest.layers[1].base == bound.id


def test_the_binding_digest_depends_on_layers_alone(light_bench: Bench) -> None:
    first, second = light_bench.session("a"), light_bench.session("b", "core", "extra")
    assert binding_digest(first) != binding_digest(second)
    assert binding_digest(first) == binding_digest(light_bench.session("c", workspace=None))


def test_credentials_in_what_is_asked_for_are_written_nowhere(bench: Bench) -> None:
    """Issue 4.9: no token or credential in logs, answers or the audit log, which keeps for ever what it is given."""
    bench.session("s")
    asked = ["six @ https://user:s3cret@evil.example/six-1-py3-none-any.whl"]
    record = bench.settled("s", *asked, reason="see https://me:s3cret@wiki.example/page")
    assert record.status is Status.REFUSED
    assert record.requirements == ("six @ https://evil.example/six-1-py3-none-any.whl",)
    assert "s3cret" not in f"{bench.get(record.id)} {bench.events()} {bench.env('s').status('s')}"


def test_an_iso_layer_keeps_the_variables_and_sources_of_the_base_whose_place_it_takes(bench: Bench) -> None:
    """Issue 4.5: what changes is the packages; a session's own code and settings stay."""
    (bench.root / "code").mkdir()
    (bench.root / "code" / "ours.py").write_text("VALUE = 7\n")
    layers = bench.root / "layers.d" / "all.layer"
    layers.write_text(
        layers.read_text().replace("base core {", 'base core { env = { FLAVOUR = "x"; }; sources = [ ../code ];')
    )
    project = reopened(bench)
    building.build(project, ["core"])
    sessions.create(project, "own", ["core"], None)
    project.close()
    waiting = bench.settled("own", "fresh")
    decide(bench.plane, ADMIN, waiting.id, Choice.ISOLATE, digest=waiting.digest)
    bench.settle()
    assert bench.get(waiting.id).status is Status.READY, bench.get(waiting.id).problem
    code = "import os, bar, fresh, ours; print(bar.VERSION, ours.VALUE, os.environ['FLAVOUR'])"
    assert bench.run("own", code) == (0, "2 7 x\n")

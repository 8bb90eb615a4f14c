"""History, undo, rebase: what a session had, has, and will have."""

from __future__ import annotations

import shutil

import pytest

from envdsl.app.control import binding
from envdsl.app.control.deciding import decide
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.proposal import Choice
from envdsl.state.records import Status
from tests.app.control.bench import ADMIN, LAYERS, Bench, owner
from tests.wheels import make_wheel


def names(bench: Bench, session: str = "s") -> list[str]:
    return [layer.name for layer in bench.manifest(session).layers]


def test_history_says_what_a_session_had_and_what_led_to_it(bench: Bench) -> None:
    """Issue 4.4: bindings keep history."""
    bench.session("s")
    record = bench.settled("s", "foo==1")
    newest, first = binding.history(bench.plane, "s")
    assert [(row.number, row.cause) for row in (first, newest)] == [(1, "create"), (2, "request")]
    assert (newest.request, newest.actor) == (record.id, "rule")
    assert [layer["name"] for layer in newest.layers] == ["core", "requested-foo"]
    assert newest.layers[1]["request"] == record.id
    assert newest.manifest == binding.digest(bench.manifest("s"))


def test_a_session_that_was_bound_without_a_database_gets_its_history_from_whoever_looks(light_bench: Bench) -> None:
    light_bench.session("s", "core", "extra")
    (only,) = binding.history(light_bench.plane, "s")
    assert (only.number, only.cause) == (1, "create")
    from envdsl.app import sessions

    sessions.rebase(light_bench.project, "s", sessions.Change(drop=("extra",)))
    newest = binding.history(light_bench.plane, "s")[0]
    assert (newest.number, newest.cause, newest.actor) == (2, "rebase", binding.UNRECORDED)


def test_undo_binds_exactly_what_was_there_before_and_can_be_undone(bench: Bench) -> None:
    """Issue 4.5: session undo."""
    before = bench.session("s")
    bench.settled("s", "foo==1")
    with_foo = bench.manifest("s")
    preview = binding.undo(bench.plane, ADMIN, "s", dry_run=True)
    assert bench.manifest("s") == with_foo
    assert len(binding.history(bench.plane, "s")) == 2
    change = binding.undo(bench.plane, ADMIN, "s")
    assert preview == change
    assert change.lines() == [f"- layer requested-foo {with_foo.layers[1].id}", "- foo 1"]
    assert bench.manifest("s") == before
    assert bench.run("s", "import foo")[0] == 1
    binding.undo(bench.plane, ADMIN, "s")
    assert bench.manifest("s") == with_foo
    binding.undo(bench.plane, ADMIN, "s", number=1)
    assert bench.manifest("s") == before
    assert [row.cause for row in binding.history(bench.plane, "s")] == ["undo", "undo", "undo", "request", "create"]
    assert [event.action for event in bench.events() if event.session == "s"].count("binding.undo") == 3


def test_undo_of_what_gc_has_removed_is_refused_and_changes_nothing(light_bench: Bench) -> None:
    from envdsl.app.collecting import collect

    bench = light_bench
    bench.session("s")
    bench.settled("s", "foo==1")
    binding.undo(bench.plane, ADMIN, "s")
    before = bench.manifest("s")
    collect(bench.project, dry_run=False)
    with pytest.raises(EnvdslError) as caught:
        binding.undo(bench.plane, ADMIN, "s")
    assert caught.value.code == "app-layer-collected"
    assert "requested-foo" in str(caught.value)
    assert bench.manifest("s") == before


def test_what_was_denied_since_comes_back_neither_by_undo_nor_by_its_id(light_bench: Bench) -> None:
    """Issue 4.1, 4.5: a layer that stands in the store is no way around a denial."""
    bench = light_bench
    bench.session("s")
    bench.session("t")
    record = bench.settled("s", "foo==1")
    layer = str(record.layer)
    binding.undo(bench.plane, ADMIN, "s")
    before = bench.manifest("s"), bench.manifest("t")
    bench.catalog('[deny]\nfoo = "has a backdoor"\n')
    acts = (
        lambda: binding.undo(bench.plane, ADMIN, "s"),
        lambda: binding.rebase(bench.plane, ADMIN, "t", add=[layer], dry_run=True),
        lambda: binding.rebase(bench.plane, ADMIN, "t", add=[layer]),
    )
    for act in acts:
        with pytest.raises(EnvdslError, match="has a backdoor") as caught:
            act()
        assert (caught.value.code, caught.value.exit_status) == ("app-layer-refused", ExitStatus.REFUSED)
    assert (bench.manifest("s"), bench.manifest("t")) == before


def test_undo_is_the_owners_and_administrators_alone(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    bench.settled("s", "foo")
    with bench.plane.state.transaction() as tx:
        tx.sessions.give(bench.plane.store_id, "s", "alice", actor="test")
    with pytest.raises(EnvdslError) as caught:
        binding.undo(bench.plane, owner("bob"), "s")
    assert (caught.value.code, caught.value.exit_status) == ("app-forbidden", ExitStatus.REFUSED)
    binding.undo(bench.plane, owner("alice"), "s")
    with pytest.raises(EnvdslError) as caught:
        binding.undo(bench.plane, owner("alice"), "s", number=9)
    assert caught.value.code == "app-unknown-binding"


def test_a_rebase_resolves_what_was_asked_for_on_the_new_base(bench: Bench) -> None:
    """Issue 4.5: extensions are resolved again on the new base, and the difference is shown."""
    bench.session("s")
    record = bench.settled("s", "tool")
    old = bench.manifest("s")
    preview = binding.rebase(bench.plane, ADMIN, "s", "next", dry_run=True)
    assert bench.manifest("s") == old
    change = binding.rebase(bench.plane, ADMIN, "s", "next")
    assert change.lines() == preview.lines()
    assert "~ bar 1 -> 2" in change.lines()
    new = bench.manifest("s")
    assert names(bench) == ["next", "requested-tool"]
    assert new.layers[1].base == new.foundation.id
    assert new.layers[1].id != old.layers[1].id
    assert bench.run("s", "import bar, tool, foo; print(bar.VERSION, foo.__version__)") == (0, "2 2\n")
    newest = binding.history(bench.plane, "s")[0]
    assert (newest.cause, newest.layers[1]["request"]) == ("rebase", record.id)
    assert binding.rebase(bench.plane, ADMIN, "s").lines() == []


def test_several_requests_follow_together(light_bench: Bench) -> None:
    """Issue 4.5: each request keeps a layer of its own."""
    bench = light_bench
    bench.catalog('[allow]\npackages = ["foo", "tool", "unlisted"]\n')
    bench.session("s", "core", "extra")
    for need in ("careful", "unlisted", "spare", "tool"):
        bench.catalog(f'[allow]\npackages = ["foo", "{need}"]\n')
        assert bench.settled("s", need).status is Status.READY
    assert names(bench) == ["core", "extra", "requested-careful", "requested-unlisted", "requested-tool"]
    preview = binding.rebase(bench.plane, ADMIN, "s", "next", drop=["extra"], dry_run=True)
    change = binding.rebase(bench.plane, ADMIN, "s", "next", drop=["extra"])
    assert change.packages == preview.packages
    assert names(bench) == ["next", "requested-careful", "requested-unlisted", "requested-tool"]
    assert bench.run("s", "import careful, unlisted, tool, foo; print(foo.__version__)") == (0, "1\n")


def test_a_dry_run_writes_nothing_at_all(light_bench: Bench) -> None:
    """Issue 4.5: --dry-run."""
    bench = light_bench
    bench.session("s")
    bench.settled("s", "tool")
    binding.history(bench.plane, "s")

    def state() -> tuple[list[str], int, int]:
        layout = bench.project.store.layout
        files = [
            str(path) for place in ("layers", "locks", "drv", "sessions") for path in (layout.root / place).rglob("*")
        ]
        return sorted(files), len(bench.events()), len(bench.project.store.paths())

    before = state()
    assert binding.rebase(bench.plane, ADMIN, "s", "next", dry_run=True).lines()
    assert state() == before


def test_a_rebase_that_the_new_base_cannot_serve_changes_nothing(bench: Bench) -> None:
    """Issue 4.5: changes nothing when that fails."""
    bench.catalog('[allow]\npackages = ["foo", "old"]\n')
    make_wheel(bench.root / "wheels", "old", "1", requires=["bar<2"])
    bench.session("s")
    assert bench.settled("s", "old").status is Status.READY
    before = bench.manifest("s")
    for dry_run in (True, False):
        with pytest.raises(EnvdslError) as caught:
            binding.rebase(bench.plane, ADMIN, "s", "next", dry_run=dry_run)
        assert caught.value.code == "app-rebase-conflict"
        assert "(old)" in str(caught.value)
        assert "next" in str(caught.value)
    assert bench.manifest("s") == before
    assert len(binding.history(bench.plane, "s")) == 2
    binding.rebase(bench.plane, ADMIN, "s", "next", drop=["requested-old"])
    assert names(bench) == ["next"]


def test_what_the_catalog_refuses_by_now_does_not_follow(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    bench.settled("s", "tool")
    bench.catalog('[deny]\ntool = "it broke production"\n')
    with pytest.raises(EnvdslError) as caught:
        binding.rebase(bench.plane, ADMIN, "s", "next")
    assert (caught.value.code, caught.value.exit_status) == ("app-rebase-refused", ExitStatus.REFUSED)
    assert "it broke production" in str(caught.value)


def test_what_the_new_base_has_itself_needs_no_layer_any_more(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    bench.settled("s", "foo")
    text = LAYERS.replace('packages = [ "bar==2" ]', 'packages = [ "bar==2" "foo" ]')
    (bench.root / "layers.d" / "all.layer").write_text(text)
    from envdsl.app import building, locking

    bench.project.reread()
    locking.lock(bench.project, ["next"])
    building.build(bench.project, ["next"])
    change = binding.rebase(bench.plane, ADMIN, "s", "next")
    assert names(bench) == ["next"]
    assert not any("foo" in line and line.startswith("-") and "layer" not in line for line in change.lines())
    assert bench.run("s", "import foo")[0] == 0


def test_a_rebase_adds_drops_and_moves_the_workspace(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s", "core", "extra")
    work = bench.root.parent / "work"
    work.mkdir()
    binding.rebase(bench.plane, ADMIN, "s", drop=["extra"], workspace=work)
    assert names(bench) == ["core"]
    workspace = bench.manifest("s").workspace
    assert workspace is not None
    assert workspace.source == str(work)
    binding.rebase(bench.plane, ADMIN, "s", add=["extra"])
    assert names(bench) == ["core", "extra"]
    with pytest.raises(EnvdslError) as caught:
        binding.rebase(bench.plane, ADMIN, "s", drop=["nothing"])
    assert (caught.value.code, caught.value.exit_status) == ("app-not-bound", ExitStatus.USAGE)
    with pytest.raises(EnvdslError) as caught:
        binding.rebase(bench.plane, ADMIN, "s", workspace=work / "absent")
    assert caught.value.code == "session-workspace-missing"


def test_an_iso_layer_gives_way_to_a_base_that_meets_the_need(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    waiting = bench.settled("s", "fresh")
    decide(bench.plane, ADMIN, waiting.id, Choice.ISOLATE, digest=waiting.digest)
    bench.settle()
    assert names(bench) == ["requested-fresh"]
    assert binding.rebase(bench.plane, ADMIN, "s").lines() == []
    binding.rebase(bench.plane, ADMIN, "s", "next")
    assert names(bench) == ["next", "requested-fresh"]
    assert bench.run("s", "import fresh, bar; print(bar.VERSION)") == (0, "2\n")


def test_a_request_on_a_base_that_is_not_built_says_so_in_a_dry_run(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    bench.settled("s", "foo")
    text = LAYERS.replace('packages = [ "bar==2" ]', 'packages = [ "bar==2" "spare" ]')
    (bench.root / "layers.d" / "all.layer").write_text(text)
    from envdsl.app import locking

    bench.project.reread()
    locking.lock(bench.project, ["next"])
    with pytest.raises(EnvdslError) as caught:
        binding.rebase(bench.plane, ADMIN, "s", "next", dry_run=True)
    assert caught.value.code == "app-base-not-built"
    assert "envdsl build next" in str(caught.value.diagnostics[0].hint)
    binding.rebase(bench.plane, ADMIN, "s", "next")
    assert names(bench) == ["next", "requested-foo"]


def test_removing_a_session_ends_its_requests_and_forgets_its_owner(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    binding.created(bench.plane, ADMIN, "s", owner="alice")
    waiting = bench.settled("s", "unlisted")
    from envdsl.app import sessions

    sessions.remove(bench.project, "s")
    binding.removed(bench.plane, ADMIN, "s")
    assert bench.get(waiting.id).status is Status.CANCELLED
    bench.session("s")
    binding.created(bench.plane, ADMIN, "s")
    assert bench.plane.owner_of("s") != "alice"
    assert binding.history(bench.plane, "s")[0].cause == "create"


def test_a_session_that_vanishes_under_its_request_fails_it(light_bench: Bench) -> None:
    bench = light_bench
    bench.session("s")
    record = bench.ask("s", "foo")
    shutil.rmtree(bench.project.store.layout.sessions / "s")
    bench.settle()
    failed = bench.get(record.id)
    assert failed.status is Status.FAILED
    assert failed.problem is not None
    assert failed.problem["code"] == "session-unknown"

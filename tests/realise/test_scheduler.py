"""Realising graphs in a real store."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.graph.compile import Graph
from envdsl.graph.derivation import Layer, SourceTree, WheelFile
from envdsl.model.names import LayerKind, PythonVersion
from envdsl.realise.realisation import Realisation
from envdsl.realise.scheduler import plan, realise
from envdsl.realise.source import tree_hash
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.patience import TWO_SECONDS
from tests.realise.building import Wheels, altered, base_of, graph_of
from tests.wheels import make_wheel

HERE = PythonVersion(sys.version_info.minor)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def built(store: Store, graph: Graph, fetch: Wheels, **arguments: object) -> Realisation:
    settings: dict[str, object] = {
        "fetch": fetch,
        "interpreters": lambda python: Path(sys.executable),
        "project": store.layout.root.parent,
        "reporter": Reporter(),
        "jobs": 2,
    }
    return realise(graph, list(graph.layers), store, **(settings | arguments))  # type: ignore[arg-type]


def wheels_in(directory: Path) -> list[Path]:
    return [
        make_wheel(directory, "one", "1.0", files={"one/__init__.py": "x = 1\n", "one/a.py": "y = {1, 2}\n"}),
        make_wheel(directory, "two", "2.0", entry_points={"two": "two:main"}),
        make_wheel(directory, "big", "1.0", files={f"big/m{n}.py": f"x = {n}\n" * 50 for n in range(300)}),
    ]


def test_a_layer_is_built_whole_and_nothing_is_left_over(tmp_path: Path, store: Store) -> None:
    """Issue 2.9: build what is missing; every output is a valid path that verifies."""
    wheels = wheels_in(tmp_path)
    layer = base_of(wheels, HERE)
    result = built(store, graph_of(office=layer), Wheels(store, *wheels))
    made = result.layers["office"]
    assert (made.id, made.key, made.reused) == (layer.id, layer.key, False)
    assert made.path == store.layout.layers / str(layer.id)
    assert result.built == {"bytecode": 3, "layer": 1, "unpack": 3}
    for path in store.paths():
        if path.kind != "wheel":
            assert scan(store.layout.absolute(path.path)).tree_hash() == path.tree_hash, path
    assert made.tree_hash == scan(made.path).tree_hash()
    assert [path for path in store.layout.tmp.rglob("*") if path.is_dir() and "unpack" in path.name] == []
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import one.a, big.m7; print(one.a.__cached__)"],
        env={"PYTHONPATH": str(made.path / "site-packages")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()).is_file()


def test_building_again_does_nothing(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    graph = graph_of(office=base_of(wheels, HERE))
    built(store, graph, Wheels(store, *wheels))
    fetch = Wheels(store, *wheels)
    assert not plan(graph, ["office"], store)

    def interpreters(python: PythonVersion) -> Path:
        raise AssertionError("no interpreter is needed")

    again = built(store, graph, fetch, interpreters=interpreters)
    assert again.built == {}
    assert again.reused == {"layer": 1}
    assert again.layers["office"].reused
    assert fetch.fetched == []


def test_a_new_layer_of_known_wheels_costs_links_alone(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    built(store, graph_of(office=base_of(wheels, HERE)), Wheels(store, *wheels))
    fetch = Wheels(store)
    result = built(store, graph_of(small=base_of(wheels[:2], HERE)), fetch)
    assert result.built == {"layer": 1}
    assert result.reused == {"bytecode": 2, "unpack": 2}
    assert fetch.fetched == []


def test_a_wheel_is_unpacked_while_others_are_still_fetched(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    layer = base_of(wheels, HERE)

    class Slow(Wheels):
        def __call__(self, wheels: Sequence[WheelFile], *, ready: Callable[[WheelFile], None] | None = None) -> None:
            assert ready is not None
            first, *others = wheels
            super().__call__([first])
            ready(first)
            (unpack,) = (unpack for unpack in layer.unpacks if unpack.wheel == first)
            deadline = time.monotonic() + TWO_SECONDS
            while store.lookup(unpack.key) is None:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            super().__call__(others)

    result = built(store, graph_of(office=layer), Slow(store, *wheels))
    assert result.built == {"bytecode": 3, "layer": 1, "unpack": 3}


def test_two_stores_at_two_places_hold_the_same_trees(tmp_path: Path) -> None:
    """Issue 2.8: bit-identical trees, bytecode included, whatever the place and the number of jobs."""
    wheels = wheels_in(tmp_path)
    hashes = []
    for place, jobs, order in (("a", 1, 1), ("somewhere/else/b", 3, -1)):
        with Store.open(tmp_path / place) as store:
            layer = base_of(wheels[::order], HERE)
            result = built(store, graph_of(**{f"name{jobs}": layer}), Wheels(store, *wheels), jobs=jobs)
            hashes.append([(path.path, path.tree_hash) for path in store.paths()])
            assert result.layers[f"name{jobs}"].tree_hash
    assert hashes[0] == hashes[1]


def test_an_x_layer_stands_on_its_base_with_its_sources(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    (tmp_path / "style").mkdir()
    (tmp_path / "style/house.py").write_text("x = 1\n")
    source = SourceTree(tree_hash(tmp_path / "style"), "style")
    base = base_of(wheels[:1], HERE)
    x = base_of(wheels[1:2], HERE, kind=LayerKind.X, base=base, sources=[source])
    result = built(store, graph_of(x=x), Wheels(store, *wheels))
    assert result.built == {"bytecode": 2, "layer": 2, "source": 1, "unpack": 2}
    facts = json.loads((result.layers["x"].path / "layer.json").read_bytes())
    (named,) = facts["sources"]
    assert (store.layout.root / named["path"] / "house.py").read_text() == "x = 1\n"
    row = store.lookup(x.key)
    assert row is not None
    assert {base.key, source.key, x.unpacks[0].key, x.bytecode[0].key} == set(row.references)


def test_a_collision_with_the_base_names_the_distribution_in_it(tmp_path: Path, store: Store) -> None:
    ground = make_wheel(tmp_path, "ground", "1.0", files={"shared.py": "base"})
    over = make_wheel(tmp_path, "over", "1.0", files={"shared.py": "x"})
    base = base_of([ground])
    x = base_of([over], kind=LayerKind.X, base=base)
    with pytest.raises(EnvdslError, match=r"over and ground both bring site-packages/shared\.py") as caught:
        built(store, graph_of(over=x), Wheels(store, ground, over))
    assert "while linking over (x-" in caught.value.diagnostics[0].trail[-1].message


def test_a_failed_step_names_itself_and_leaves_no_valid_path(tmp_path: Path, store: Store) -> None:
    """Issue 2.9: which step of which derivation failed, and why; what was finished stays, nothing else does."""
    wheels = wheels_in(tmp_path)
    bad = altered(make_wheel(tmp_path, "bad", "1.0", files={"bad.py": "x\n" * 100_000}), {"bad.py": b"changed"})
    layer = base_of([*wheels, bad], HERE)
    with pytest.raises(EnvdslError) as caught:
        built(store, graph_of(office=layer), Wheels(store, *wheels, bad))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "intake-record-mismatch"
    assert "bad-1.0-py3-none-any.whl" in diagnostic.message
    assert "bad.py" in diagnostic.message
    assert "while unpacking bad 1.0 (unpack " in diagnostic.trail[-1].message
    assert diagnostic.details["step"] == "unpack"
    failed = next(unpack for unpack in layer.unpacks if unpack.name == "bad")
    assert diagnostic.details["derivation"] == failed.key
    assert store.lookup(failed.key) is None
    assert store.lookup(layer.key) is None
    assert not list(store.layout.unpacked.glob("*-bad-*"))
    assert not [path for path in store.layout.tmp.rglob("unpack*") if path.is_dir()]
    good = make_wheel(tmp_path / "good", "bad", "1.0")
    result = built(store, graph_of(office=base_of([*wheels, good], HERE)), Wheels(store, *wheels, good))
    assert result.layers["office"].path.is_dir()


def test_all_wheels_that_were_in_work_report_their_faults(tmp_path: Path, store: Store) -> None:
    bad = [altered(make_wheel(tmp_path, f"bad{n}", "1.0"), {f"bad{n}.py": b"changed"}) for n in range(2)]
    with pytest.raises(EnvdslError) as caught:
        built(store, graph_of(office=base_of(bad)), Wheels(store, *bad))
    assert {diagnostic.code for diagnostic in caught.value.diagnostics} == {"intake-record-mismatch"}


def test_a_full_disk_is_told_as_such(tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    wheels = wheels_in(tmp_path)

    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("envdsl.realise.writer._write_all", full)
    with pytest.raises(EnvdslError) as caught:
        built(store, graph_of(office=base_of(wheels)), Wheels(store, *wheels))
    assert caught.value.code == "store-full"
    assert "no space left to unpack " in str(caught.value)
    assert caught.value.exit_status == ExitStatus.ENVIRONMENT
    assert [path.kind for path in store.paths()] == ["wheel"] * 3


def test_the_record_of_how_a_layer_came_to_be_is_kept(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    layer = base_of(wheels, HERE)
    built(store, graph_of(office=layer), Wheels(store, *wheels), locks={"office": b"lock"})
    assert (store.layout.locks / f"{layer.id}.toml").read_bytes() == b"lock"
    assert (store.layout.drv / f"{layer.id.hash}.json").read_bytes() == layer.canonical()
    assert len(list(store.layout.drv.iterdir())) == 1 + 3 * 3


def test_two_processes_build_the_same_layer_once_between_them(tmp_path: Path) -> None:
    """Issue 2.9 and 3.5: the same derivation is built once; the others wait and take it."""
    wheels = wheels_in(tmp_path)
    graph = graph_of(office=base_of(wheels, HERE))
    results: list[Realisation] = []
    gate = threading.Barrier(3)

    def run() -> None:
        with Store.open(tmp_path / "store") as store:
            gate.wait()
            results.append(built(store, graph, Wheels(store, *wheels)))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    made: dict[str, int] = {}
    for result in results:
        for kind, count in result.built.items():
            made[kind] = made.get(kind, 0) + count
    assert made == {"bytecode": 3, "layer": 1, "unpack": 3}
    assert len({result.layers["office"].tree_hash for result in results}) == 1


def test_an_interrupt_leaves_the_store_fit_for_the_next_run(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    graph = graph_of(office=base_of(wheels, HERE))

    class Interrupting(Reporter):
        def __init__(self) -> None:
            self.seen = 0

        def task(self, title: str, total: int | None = None, unit: str = ""):  # type: ignore[no-untyped-def]
            if title == "Compiling":
                raise KeyboardInterrupt
            return super().task(title, total, unit)

    with pytest.raises(KeyboardInterrupt):
        built(store, graph, Wheels(store, *wheels), reporter=Interrupting())
    result = built(store, graph, Wheels(store, *wheels))
    assert result.reused == {"unpack": 3}
    assert result.built == {"bytecode": 3, "layer": 1}


def test_layers_without_bytecode_need_no_interpreter(tmp_path: Path, store: Store) -> None:
    wheels = wheels_in(tmp_path)
    layer: Layer = base_of(wheels)

    def interpreters(python: PythonVersion) -> Path:
        raise AssertionError("no interpreter is needed")

    result = built(store, graph_of(plain=layer), Wheels(store, *wheels), interpreters=interpreters)
    assert not list(result.layers["plain"].path.rglob("*.pyc"))


def test_a_waived_record_has_a_key_of_its_own_and_is_recorded(tmp_path: Path, store: Store) -> None:
    bad = altered(make_wheel(tmp_path, "bad", "1.0"), {"bad.py": b"changed = 1\n"})
    strict, lenient = base_of([bad]), base_of([bad], waived=["bad"])
    result = built(store, graph_of(lenient=lenient), Wheels(store, bad))
    facts = json.loads((result.layers["lenient"].path / "layer.json").read_bytes())
    assert facts["waivers"]["record-mismatch"] == ["bad"]
    with pytest.raises(EnvdslError, match="RECORD"):
        built(store, graph_of(strict=strict), Wheels(store, bad))


def test_a_wheel_that_was_damaged_in_the_wheelhouse_is_noticed(tmp_path: Path, store: Store) -> None:
    """Only what this run has fetched itself is not hashed again."""
    wheel = make_wheel(tmp_path, "one", "1.0")
    layer = base_of([wheel])
    Wheels(store, wheel)([layer.unpacks[0].wheel])
    (kept,) = store.layout.wheelhouse.rglob("*.whl")
    content = bytearray(kept.read_bytes())
    content[40] ^= 1
    kept.chmod(0o644)
    kept.write_bytes(content)
    with pytest.raises(EnvdslError, match="sha256") as caught:
        built(store, graph_of(office=layer), Wheels(store))
    assert caught.value.code == "intake-hash"
    assert "verify --repair" in (caught.value.diagnostics[0].hint or "")

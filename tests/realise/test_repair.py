"""Repair: damaged paths are built again and change places with what is there. Real wheels, real steps."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Derivation, SourceTree, WheelFile
from envdsl.model.digest import store_hash
from envdsl.model.names import LayerKind, PythonVersion
from envdsl.realise.repair import rebuild
from envdsl.realise.scheduler import realise
from envdsl.realise.source import tree_hash
from envdsl.reporter import Reporter
from envdsl.store import replaced
from envdsl.store.gc import collect
from envdsl.store.repair import Repair
from envdsl.store.store import Store, StorePath
from envdsl.store.verify import verify
from tests.realise.building import Wheels, base_of, graph_of
from tests.wheels import make_wheel

PYTHON = PythonVersion(sys.version_info.minor)


class Built:
    """A base and an x layer over three wheels and a source, in a store."""

    def __init__(self, root: Path) -> None:
        wheels = root / "wheels"
        self.wheels = [make_wheel(wheels, name, "1.0") for name in ("one", "two", "three-four")]
        self.project = root / "project"
        (self.project / "src").mkdir(parents=True)
        (self.project / "src" / "mine.py").write_text("X = 1\n")
        source = SourceTree(tree_hash(self.project / "src"), "src")
        self.base = base_of(self.wheels[:2], PYTHON, sources=[source])
        self.x = base_of(self.wheels[2:], PYTHON, kind=LayerKind.X, base=self.base)
        self.store = Store.open(root / "store")
        self.build()

    def build(self) -> None:
        realise(
            graph_of(base=self.base, x=self.x),
            ["base", "x"],
            self.store,
            fetch=Wheels(self.store, *self.wheels),
            interpreters=lambda _: Path(sys.executable),
            project=self.project,
            reporter=Reporter(),
            jobs=2,
        )
        self.store.flush()

    def damaged(self) -> list[StorePath]:
        return self.store.registry.named({finding.key for finding in verify(self.store).findings})

    def repair(
        self, damaged: Sequence[StorePath] | None = None, *, known: Sequence[Derivation] = (), index: bool = True
    ) -> tuple[list[str], dict[str, EnvdslError]]:
        damaged = self.damaged() if damaged is None else damaged

        def unreachable(wheels: Sequence[WheelFile], *, ready: object = None) -> None:
            raise EnvdslError.of("fetch-unreachable", "no network")

        with Repair(self.store.layout, damaged) as repairing, repairing.lease():
            repairing.protect()
            failures = rebuild(
                repairing,
                damaged,
                {item.key: item for item in known},
                fetch=Wheels(repairing, *self.wheels) if index else unreachable,
                interpreters=lambda _: Path(sys.executable),
                project=self.project,
                jobs=2,
                reporter=Reporter(),
            )
            return [path.path for path in repairing.swap()], failures

    def place(self, derivation: Derivation) -> Path:
        path = self.store.lookup(derivation.key)
        assert path is not None
        return self.store.layout.absolute(path.path)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setattr(replaced, "GRACE", 0.0)
    return Built(tmp_path)


def spoil(file: Path, content: str = "spoilt\n") -> None:
    mode = file.stat().st_mode
    file.chmod(0o644)
    file.write_text(content)
    file.chmod(mode)


def test_a_damaged_file_is_made_anew_for_everybody_who_has_a_link_of_it(built: Built) -> None:
    """Issue 3.7: repair rebuilds and swaps by rename, hard-linked twins included."""
    part, linked = built.place(built.base.unpacks[0]), built.place(built.base)
    before = {path.key: path for path in built.store.paths()}
    spoil(part / "site-packages" / "one.py")
    assert (linked / "site-packages" / "one.py").read_text() == "spoilt\n"
    held = (linked / "site-packages" / "one.py").open()
    repaired, failures = built.repair()
    assert failures == {}
    assert sorted(repaired) == sorted(path.relative_to(built.store.layout.root).as_posix() for path in (part, linked))
    assert verify(built.store).findings == ()
    assert {path.key: path for path in built.store.paths()} == before
    assert (part / "site-packages" / "one.py").samefile(linked / "site-packages" / "one.py")
    assert held.read() == "spoilt\n"  # what is open stays as it is: never written in place
    assert not list(built.store.layout.tmp.glob("replaced-*"))


@pytest.mark.parametrize("kind", ["wheel", "unpack", "bytecode", "source", "layer"])
@pytest.mark.parametrize("damage", ["content", "mode", "missing", "extra", "gone"])
def test_every_kind_of_damage_to_every_kind_of_path_is_repaired(built: Built, kind: str, damage: str) -> None:
    derivation: Derivation = {
        "wheel": built.x.unpacks[0].wheel,
        "unpack": built.x.unpacks[0],
        "bytecode": built.x.bytecode[0],
        "source": built.base.sources[0],
        "layer": built.x,
    }[kind]
    place = built.place(derivation)
    file = place if place.is_file() else next(item for item in sorted(place.rglob("*")) if item.is_file())
    match damage:
        case "content":
            spoil(file)
        case "mode":
            file.chmod(0o600)
        case "missing":
            file.unlink()
        case "extra":
            (file.parent / "extra").write_text("")
        case "gone":
            os.rename(place, built.store.layout.root / "away")  # noqa: PTH104
    if kind == "wheel" and damage == "extra":
        assert built.damaged() == []  # a file beside it is rubbish, and gc's
        return
    assert built.damaged()
    assert built.repair(known=[built.base.sources[0]])[1] == {}
    assert verify(built.store).findings == ()
    assert place.exists()


def test_a_wheel_comes_from_the_index_and_everything_else_from_the_wheelhouse(built: Built) -> None:
    """Issue 3.7: repair rebuilds from the wheelhouse, else from the index."""
    spoil(built.place(built.base.unpacks[0]) / "site-packages" / "one.py")
    assert built.repair(index=False)[1] == {}
    spoil(built.place(built.base.unpacks[0]) / "site-packages" / "one.py")
    spoil(built.place(built.base.unpacks[0].wheel))
    damaged = built.damaged()
    repaired, failures = built.repair(index=False)
    assert repaired == []
    assert failures.keys() == {path.key for path in damaged}
    assert {error.code for error in failures.values()} == {"fetch-unreachable"}
    assert built.damaged() == damaged
    assert built.repair()[1] == {}
    assert verify(built.store).findings == ()


def test_what_cannot_be_repaired_keeps_nothing_else_from_it(built: Built) -> None:
    spoil(built.place(built.base.sources[0]) / "mine.py")
    spoil(built.place(built.x.unpacks[0]) / "site-packages" / "three_four.py")
    repaired, failures = built.repair()
    assert len(repaired) == 2
    (failure,) = failures.items()
    assert (failure[0], failure[1].code) == (built.base.sources[0].key, "repair-no-record")
    assert [finding.key for finding in verify(built.store).findings] == [built.base.sources[0].key]


def test_a_source_that_is_not_what_it_was_is_not_put_into_place(built: Built) -> None:
    spoil(built.place(built.base.sources[0]) / "mine.py")
    (built.project / "src" / "mine.py").write_text("X = 2\n")
    repaired, failures = built.repair(known=[built.base.sources[0]])
    assert (repaired, [error.code for error in failures.values()]) == ([], ["source-changed"])


def test_a_record_of_something_else_is_not_believed(built: Built) -> None:
    spoil(built.place(built.base) / "layer.json")
    record = built.store.layout.drv / f"{store_hash(built.base.key)}.json"
    record.write_text(json.dumps({**json.loads(record.read_bytes()), "env": {"LD_PRELOAD": "evil.so"}}))
    _, failures = built.repair()
    assert [error.code for error in failures.values()] == ["repair-no-record"]
    record.unlink()
    assert [error.code for error in built.repair()[1].values()] == ["repair-no-record"]
    assert built.repair(known=[built.base])[1] == {}


def test_a_path_that_is_built_to_something_else_is_refused(built: Built) -> None:
    """The row is the truth: nothing that differs from it takes the place of the path."""
    wheel = built.base.unpacks[0].wheel
    spoil(built.place(wheel))
    built.wheels[0].write_bytes(b"another")
    repaired, failures = built.repair()
    assert (repaired, failures[wheel.key].code) == ([], "store-repair-differs")


def test_a_damaged_listing_is_written_anew(built: Built) -> None:
    with built.store.registry.writing() as connection:
        connection.execute("UPDATE listings SET data = x'00' WHERE key = ?", (built.x.key,))
    (finding,) = verify(built.store).findings
    assert finding.problem == "listing"
    assert built.repair()[1] == {}
    assert verify(built.store).findings == ()


def test_what_is_found_missing_on_the_way_is_built_as_well(built: Built) -> None:
    spoil(built.place(built.x) / "layer.json")
    for derivation in (built.x.unpacks[0], built.x.bytecode[0], built.x.unpacks[0].wheel):
        place = built.place(derivation)
        os.rename(place, built.store.layout.root / place.name)  # noqa: PTH104
    damaged = [built.store.registry.named([built.x.key])[0]]
    assert built.repair(damaged)[1] == {}
    assert verify(built.store).findings == ()


def test_the_caches_of_nothing_to_do_go_first(built: Built) -> None:
    (built.store.layout.cache / "build").write_text("")
    spoil(built.place(built.x) / "layer.json")
    built.repair()
    assert not (built.store.layout.cache / "build").exists()


def test_a_layer_that_a_sandbox_has_mounted_stays_for_it(built: Built) -> None:
    """Issue 3.7: a running sandbox keeps the old files; gc removes them once it has ended."""
    place = built.place(built.x)
    facts = (place / "layer.json").stat()
    sandbox = os.fork()
    if sandbox == 0:
        fcntl.lockf(os.open(place / "layer.json", os.O_RDONLY), fcntl.LOCK_SH)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitpid(sandbox, os.WUNTRACED)
    try:
        spoil(place / "site-packages" / "three_four.py")
        assert built.repair()[1] == {}
        assert verify(built.store).findings == ()
        (old,) = built.store.layout.tmp.glob("replaced-*/layers/*")
        assert (old / "site-packages" / "three_four.py").read_text() == "spoilt\n"
        assert os.path.samestat((old / "layer.json").stat(), facts)
        # What the sandbox runs with lives, though no root names it: the base, too, which was not replaced.
        assert collect(built.store, []).paths == ()
        assert old.exists()
    finally:
        os.kill(sandbox, signal.SIGCONT)
        os.waitpid(sandbox, 0)
    collect(built.store, [built.x.key])
    assert not list(built.store.layout.tmp.glob("replaced-*"))


def test_derivations_come_back_from_their_records(built: Built) -> None:
    """What a build wrote down is enough to repair all it made, but for the sources: without the project at hand."""
    for layer in (built.base, built.x):
        place = built.place(layer)
        for file in (item for item in sorted(place.rglob("*")) if item.is_file()):
            spoil(file)
    assert len(built.damaged()) == 2 + 3 + 3
    assert built.repair()[1] == {}
    assert verify(built.store).findings == ()

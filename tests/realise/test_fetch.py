"""Fetching wheels from a real server that drops connections, lies and refuses."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.graph.derivation import WheelFile
from envdsl.lock.candidates import Candidates
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.source import IndexSource
from envdsl.realise.fetch import Fetcher
from envdsl.reporter import Reporter, Task
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from envdsl.transport import Retries
from tests.lock.index import Index, serve
from tests.wheels import make_wheel, sha256

QUICK = Retries(attempts=3, first_delay=0.001)


class Recorder(Reporter):
    def __init__(self) -> None:
        self.warnings: list[Diagnostic] = []
        self.total = 0
        self.done = 0
        self._guard = threading.Lock()

    def warn(self, diagnostic: Diagnostic) -> None:
        self.warnings.append(diagnostic)

    @contextmanager
    def task(self, title: str, total: int | None = None, unit: str = "") -> Iterator[Task]:
        recorder = self
        recorder.total += total or 0

        class Counter(Task):
            def advance(self, amount: int = 1) -> None:
                assert amount >= 0
                with recorder._guard:
                    recorder.done += amount

        yield Counter()


class Bench:
    """A store, an index, and wheels with enough bytes to break a connection in."""

    def __init__(self, tmp_path: Path, index: Index) -> None:
        self.index = index
        self.store = Store.open(tmp_path / "store")
        self.reporter = Recorder()
        self.environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull}
        self.sources: list[IndexSource] = [IndexSource.of(index.simple, default=True)]
        self.sleeps: list[float] = []

    def wheel(self, name: str, size: int = 0, *, seed: int = 0) -> WheelFile:
        content = bytes((i * 7919 + seed) % 251 for i in range(size))
        path = make_wheel(self.index.directory, name, "1.0", files={f"{name}.bin": content}, compression=0)
        return WheelFile(path.name, sha256(path), path.stat().st_size)

    def fetcher(self, *, offline: bool = False, known: dict[str, Sequence[Path | str]] | None = None) -> Fetcher:
        configuration = IndexConfiguration.discover(self.sources, environment=self.environment)
        retries = Retries(attempts=3, first_delay=0.001, sleep=self.sleeps.append)
        candidates = Candidates(configuration, known=known, offline=offline, retries=retries)
        return Fetcher(self.store, candidates, reporter=self.reporter, offline=offline, retries=retries)

    def fetch(self, *wheels: WheelFile, offline: bool = False) -> None:
        self.fetcher(offline=offline)(wheels)

    def refusal(self, *wheels: WheelFile, offline: bool = False) -> EnvdslError:
        with pytest.raises(EnvdslError) as caught:
            self.fetch(*wheels, offline=offline)
        return caught.value

    def is_there(self, wheel: WheelFile) -> bool:
        found = self.store.lookup(wheel.key)
        if found is None:
            return False
        path = self.store.layout.absolute(found.path)
        assert found.path == f"wheelhouse/{wheel.sha256}/{wheel.filename}"
        assert sha256(path) == wheel.sha256
        assert path.stat().st_mode & 0o777 == 0o444
        assert scan(path).tree_hash() == found.tree_hash
        return True

    def temporaries(self) -> list[Path]:
        return [path for path in self.store.layout.tmp.rglob("*") if "fetch-" in path.name]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with serve(tmp_path / "index") as index:
        made = Bench(tmp_path, index)
        with made.store:
            yield made


def test_wheels_arrive_verified_and_are_fetched_once(bench: Bench) -> None:
    """Issue 2.6: downloads run in parallel, verify, and show progress in bytes."""
    wheels = [bench.wheel(f"w{number}", 1000 * number) for number in range(6)]
    bench.fetch(*wheels, *wheels)
    assert all(bench.is_there(wheel) for wheel in wheels)
    assert bench.reporter.total == bench.reporter.done == sum(wheel.size for wheel in wheels)
    assert sorted(bench.index.downloads()) == sorted(wheel.filename for wheel in wheels)
    bench.index.requests.clear()
    bench.fetch(*wheels)
    assert bench.index.requests == []
    assert bench.temporaries() == []


def test_a_dropped_connection_is_resumed_where_it_broke(bench: Bench) -> None:
    """Issue 2.6: downloads resume."""
    wheel = bench.wheel("big", 2_000_000)
    bench.index.drop_after[wheel.filename] = [700_000, 600_000]
    bench.fetch(wheel)
    assert bench.is_there(wheel)
    ranges = [headers.get("Range") for _, path, headers in bench.index.requests if path.endswith(".whl")]
    assert len(ranges) == 3
    assert ranges[0] is None
    starts = [int(text.removeprefix("bytes=").rstrip("-")) for text in ranges[1:] if text]
    assert 0 < starts[0] <= 700_000 < starts[1] <= 1_300_000
    assert bench.reporter.done == wheel.size


def test_a_server_without_ranges_is_asked_from_the_start(bench: Bench) -> None:
    wheel = bench.wheel("big", 2_000_000)
    bench.index.ranges = False
    bench.index.drop_after[wheel.filename] = [700_000]
    bench.fetch(wheel)
    assert bench.is_there(wheel)
    assert bench.reporter.done == wheel.size


def test_what_a_run_leaves_unfinished_the_next_takes_up(bench: Bench) -> None:
    """Issue 2.6: resume, across runs."""
    wheel = bench.wheel("big", 2_000_000)
    bench.index.drop_after[wheel.filename] = [900_000, 0, 0, 0]
    error = bench.refusal(wheel)
    assert error.code == "fetch-unreachable"
    assert error.exit_status is ExitStatus.ENVIRONMENT
    assert not bench.is_there(wheel)
    bench.index.requests.clear()
    bench.fetch(wheel)
    assert bench.is_there(wheel)
    (start,) = [headers["Range"] for _, path, headers in bench.index.requests if path.endswith(".whl")]
    assert start != "bytes=0-"
    assert not list((bench.store.layout.cache / "downloads").iterdir())


def test_a_damaged_beginning_costs_a_new_start_and_nothing_else(bench: Bench) -> None:
    wheel = bench.wheel("big", 100_000)
    left = bench.store.layout.cache / "downloads" / wheel.sha256
    for content in (b"rubbish" * 100, b"x" * wheel.size, b"x" * (wheel.size + 1)):
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_bytes(content)
        other = Store.open(bench.store.layout.root.with_name(f"store-{len(content)}"))
        with other:
            target = other.layout.cache / "downloads" / wheel.sha256
            target.parent.mkdir(parents=True, exist_ok=True)
            left.rename(target)
            bench.store = other
            bench.fetch(wheel)
            assert bench.is_there(wheel)


def test_servers_in_trouble_are_asked_again_and_retry_after_is_heeded(bench: Bench) -> None:
    wheel = bench.wheel("one", 10)
    bench.index.statuses[wheel.filename] = [503, 429]
    bench.index.retry_after = "7"
    bench.fetch(wheel)
    assert bench.is_there(wheel)
    assert bench.sleeps == [7.0, 7.0]


def test_retries_end(bench: Bench) -> None:
    wheel = bench.wheel("one", 10)
    bench.index.statuses[wheel.filename] = [500] * 50
    error = bench.refusal(wheel)
    assert error.code == "fetch-unreachable"
    assert "HTTP status 500" in str(error)
    assert len(bench.index.downloads()) == 3


def test_wrong_bytes_are_refused_and_named(bench: Bench) -> None:
    """Issue 2.9: a wheel whose bytes differ from the lock is refused and named."""
    wheel, good = bench.wheel("evil", 1000), bench.wheel("good", 1000)
    bench.index.corrupt.add(wheel.filename)
    error = bench.refusal(wheel, good)
    assert error.code == "fetch-hash-mismatch"
    assert wheel.filename in str(error)
    assert wheel.sha256 in str(error)
    assert bench.index.url in str(error)
    assert not bench.is_there(wheel)
    assert bench.is_there(good)
    assert bench.temporaries() == []


def test_an_index_that_offers_other_bytes_under_the_name_is_not_even_downloaded_from(bench: Bench) -> None:
    wheel = bench.wheel("moved", 1000)
    bench.wheel("moved", 1000, seed=1)
    error = bench.refusal(wheel)
    assert error.code == "fetch-hash-mismatch"
    assert bench.index.downloads() == []


def test_more_bytes_than_locked_are_cut_off(bench: Bench) -> None:
    wheel = bench.wheel("long", 500_000)
    bench.index.hashes = bench.index.sizes = False
    lied = WheelFile(wheel.filename, wheel.sha256, 1000)
    assert bench.refusal(lied).code == "fetch-hash-mismatch"


def test_a_mirror_with_the_right_bytes_makes_up_for_one_with_wrong_ones(bench: Bench, tmp_path: Path) -> None:
    wheel = bench.wheel("alpha", 1000)
    with serve(bench.index.directory) as mirror:
        mirror.corrupt.add(wheel.filename)
        bench.sources.insert(0, IndexSource.of(mirror.simple, name="mirror"))
        bench.fetch(wheel)
    assert bench.is_there(wheel)
    assert [warning.code for warning in bench.reporter.warnings] == ["fetch-hash-mismatch"]


def test_local_places_go_before_the_network_and_are_copied(bench: Bench, tmp_path: Path) -> None:
    """Issue 2.6: flat directories, indexes on disk, files of the project."""
    flat, disk, own = bench.wheel("flat", 10), bench.wheel("disk", 20), bench.wheel("own", 30)
    places = {}
    for wheel, place in ((flat, "flat"), (disk, "files"), (own, "vendor")):
        places[wheel] = tmp_path / place / wheel.filename
        places[wheel].parent.mkdir()
        (bench.index.directory / wheel.filename).rename(places[wheel])
    page = tmp_path / "simple" / "disk" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f'<a href="../../files/{disk.filename}#sha256={disk.sha256}">{disk.filename}</a>')
    bench.sources[:0] = [
        IndexSource.of(str(tmp_path / "flat"), flat=True),
        IndexSource.of((tmp_path / "simple").as_uri()),
    ]
    bench.fetcher(known={own.sha256: [places[own]]})([flat, disk, own])
    assert all(bench.is_there(wheel) for wheel in (flat, disk, own))
    assert bench.index.requests == []
    stored = bench.store.layout.absolute(bench.store.lookup(own.key).path)  # type: ignore[union-attr]
    assert stored.stat().st_ino != places[own].stat().st_ino


def test_offline_uses_files_of_this_machine_only(bench: Bench, tmp_path: Path) -> None:
    here, away = bench.wheel("here", 10), bench.wheel("away", 10)
    (tmp_path / "flat").mkdir()
    (bench.index.directory / here.filename).rename(tmp_path / "flat" / here.filename)
    bench.sources.insert(0, IndexSource.of(str(tmp_path / "flat"), flat=True))
    error = bench.refusal(here, away, offline=True)
    assert error.code == "fetch-offline"
    assert away.filename in str(error)
    assert bench.is_there(here)
    assert bench.index.requests == []


def test_a_wheel_that_nobody_offers_is_named(bench: Bench) -> None:
    error = bench.refusal(WheelFile("gone-1.0-py3-none-any.whl", "0" * 64, 10))
    assert error.code == "fetch-not-found"
    assert "gone-1.0-py3-none-any.whl" in str(error)


def test_an_index_that_is_down_is_not_taken_for_one_without_the_wheel(bench: Bench) -> None:
    bench.sources = [IndexSource.of("http://bob:s3cretword@127.0.0.1:9/simple", default=True)]
    error = bench.refusal(WheelFile("gone-1.0-py3-none-any.whl", "0" * 64, 10))
    assert error.code == "fetch-unreachable"
    assert "http://127.0.0.1:9/simple" in str(error)
    assert "s3cretword" not in repr(error.diagnostics)


def test_every_wheel_that_fails_is_reported(bench: Bench) -> None:
    missing = [WheelFile(f"gone{n}-1.0-py3-none-any.whl", str(n) * 64, 10) for n in range(3)]
    assert len(bench.refusal(*missing).diagnostics) == 3


def test_a_yanked_wheel_is_fetched_with_a_warning(bench: Bench) -> None:
    wheel = bench.wheel("old", 10)
    bench.index.yanked[wheel.filename] = "broken on Mondays"
    bench.fetch(wheel)
    assert bench.is_there(wheel)
    (warning,) = bench.reporter.warnings
    assert warning.code == "fetch-yanked"
    assert "broken on Mondays" in warning.message


def test_credentials_go_to_the_index_and_nowhere_else(bench: Bench) -> None:
    """Issue 2.6: credentials."""
    wheel = bench.wheel("private", 1000)
    bench.index.auth = ("bob", "s3cretword")
    bench.sources = [IndexSource.of(bench.index.with_userinfo(bench.index.simple), default=True)]
    bench.index.drop_after[wheel.filename] = [100]
    bench.fetch(wheel)
    assert bench.is_there(wheel)
    for path in bench.store.layout.root.rglob("*"):
        if path.is_file():
            assert b"s3cretword" not in path.read_bytes()


def test_two_fetchers_at_once_download_once(bench: Bench) -> None:
    wheels = [bench.wheel(f"w{n}", 200_000) for n in range(4)]
    fetchers = [bench.fetcher(), bench.fetcher()]
    threads = [threading.Thread(target=fetcher, args=(wheels,)) for fetcher in fetchers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(bench.is_there(wheel) for wheel in wheels)
    assert sorted(bench.index.downloads()) == sorted(wheel.filename for wheel in wheels)

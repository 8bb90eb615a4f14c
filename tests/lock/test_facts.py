"""Issue 4.7: what is known of wheels, and how little is fetched for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from envdsl.lock.facts import FactsReader, WheelFacts
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import LockedWheel
from envdsl.lock.metadata import stated_licence
from envdsl.lock.source import IndexSource
from envdsl.transport import Retries
from tests.lock.index import Index, serve
from tests.wheels import make_wheel, sha256

STATED = "License-Expression: MIT\nSummary: Draws\n things\n"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with serve(tmp_path / "index") as served:
        yield served


def locked(wheel: Path) -> LockedWheel:
    return LockedWheel(wheel.name, sha256(wheel), wheel.stat().st_size)


def _kept(place: Path, wheel: LockedWheel) -> Path | None:
    file = place / "kept" / wheel.filename
    return file if file.is_file() else None


def read(place: Path, source: IndexSource, *wheels: LockedWheel, more: Sequence[IndexSource] = ()) -> list[WheelFacts]:
    configuration = IndexConfiguration.discover([source, *more], environment={})
    reader = FactsReader(configuration, lambda wheel: _kept(place, wheel), retries=Retries(1))
    facts = reader.read(wheels)
    return [facts[wheel.sha256] for wheel in wheels]


def test_an_index_with_metadata_is_asked_for_them_alone(tmp_path: Path, index: Index) -> None:
    """PEP 658, PEP 700, PEP 592."""
    wheel = make_wheel(index.directory, "plot", "1.0", extra_metadata=STATED)
    index.upload_times[wheel.name] = "2026-03-01T10:00:00.5Z"
    index.yanked[wheel.name] = "broken"
    (facts,) = read(tmp_path, IndexSource.of(index.simple, default=True), locked(wheel))
    assert (facts.licence, facts.summary, facts.yanked) == ("MIT", "Draws things", "broken")
    assert facts.released == datetime(2026, 3, 1, 10, 0, 0, 500_000, UTC)
    assert [path for _, path, _ in index.requests] == ["/simple/plot/", f"/files/{wheel.name}.metadata"]


def big(directory: Path) -> Path:
    import random

    noise = random.Random(1).randbytes(1_000_000)
    return make_wheel(directory, "plot", "1.0", files={"plot/data.bin": noise}, extra_metadata=STATED)


def test_without_it_a_few_kilobytes_of_the_wheel_are_read(tmp_path: Path, index: Index) -> None:
    index.json = False
    wheel = big(index.directory)
    (facts,) = read(tmp_path, IndexSource.of(index.simple, default=True), locked(wheel))
    assert (facts.licence, facts.summary, facts.released) == ("MIT", "Draws things", None)
    ranges = [headers["Range"] for _, path, headers in index.requests if path == f"/files/{wheel.name}"]
    assert 1 <= len(ranges) <= 2


def test_a_server_without_ranges_is_read_whole_where_that_is_little(tmp_path: Path, index: Index) -> None:
    index.json, index.ranges = False, False
    wheel = big(index.directory)
    (facts,) = read(tmp_path, IndexSource.of(index.simple, default=True), locked(wheel))
    assert facts.licence == "MIT"
    assert len([path for _, path, _ in index.requests if path.startswith("/files/")]) == 1


def test_a_wheel_at_hand_is_read_and_nothing_fetched(tmp_path: Path, index: Index) -> None:
    wheel = make_wheel(index.directory, "plot", "1.0", extra_metadata=STATED)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / wheel.name).write_bytes(wheel.read_bytes())
    (facts,) = read(tmp_path, IndexSource.of(index.simple, default=True), locked(wheel))
    assert facts.licence == "MIT"
    assert [path for _, path, _ in index.requests] == ["/simple/plot/"]


def test_a_flat_directory_knows_no_dates(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "plot", "1.0", extra_metadata=STATED)
    source = IndexSource.of(str(tmp_path / "wheels"), flat=True, default=True)
    (facts,) = read(tmp_path, source, locked(wheel))
    assert (facts.licence, facts.summary, facts.released, facts.yanked) == ("MIT", "Draws things", None, None)


def test_what_a_directory_does_not_know_another_index_of_the_same_bytes_tells(tmp_path: Path, index: Index) -> None:
    wheel = make_wheel(tmp_path / "wheels", "plot", "1.0", extra_metadata=STATED)
    make_wheel(index.directory, "plot", "1.0", extra_metadata=STATED)
    flat, network = IndexSource.of(str(wheel.parent), flat=True), IndexSource.of(index.simple, default=True)
    (facts,) = read(tmp_path, flat, locked(wheel), more=[network])
    assert (facts.licence, facts.released) == ("MIT", datetime(2020, 1, 1, tzinfo=UTC))
    assert [path for _, path, _ in index.requests] == ["/simple/plot/"]
    (index.directory / wheel.name).write_bytes(b"other bytes")
    index.json = False
    (facts,) = read(tmp_path, flat, locked(wheel), more=[network])
    assert facts.released is None


def test_an_entry_with_other_bytes_says_nothing_about_the_wheel(tmp_path: Path, index: Index) -> None:
    wheel = make_wheel(index.directory, "plot", "1.0", extra_metadata=STATED)
    other = LockedWheel(wheel.name, "0" * 64, wheel.stat().st_size)
    assert read(tmp_path, IndexSource.of(index.simple, default=True), other) == [WheelFacts()]


@pytest.mark.parametrize("trouble", ["metadata", "page", "no wheel"])
def test_what_can_not_be_found_out_is_unknown_and_no_error(tmp_path: Path, index: Index, trouble: str) -> None:
    wheel = make_wheel(index.directory, "plot", "1.0", extra_metadata=STATED)
    wanted = locked(wheel)
    if trouble == "no wheel":
        index.json = False
        wheel.write_bytes(b"no zip")
        wanted = LockedWheel(wheel.name, sha256(wheel), 6)
    else:
        index.statuses["plot" if trouble == "page" else f"{wheel.name}.metadata"] = [500] * 9
    (facts,) = read(tmp_path, IndexSource.of(index.simple, default=True), wanted)
    assert (facts.licence, facts.summary) == (None, "")


@pytest.mark.parametrize(
    ("raw", "stated"),
    [
        ({"license_expression": "Apache-2.0 OR MIT", "license": "whatever"}, "Apache-2.0 OR MIT"),
        ({"license": "mit", "classifiers": ["License :: OSI Approved :: BSD License"]}, "mit"),
        ({"license": "see file", "classifiers": ["License :: OSI Approved :: BSD License"]}, "BSD License"),
        (
            {"classifiers": ["License :: OSI Approved", "License :: OSI Approved :: MIT License", "License :: Other"]},
            "MIT License; Other",
        ),
        ({"license": "Copyright me\nAll rights reserved"}, "Copyright me"),
        ({"license": "x" * 999}, "x" * 199 + "…"),
        ({"license_expression": "MIT\x1b[2J\u202egnp"}, "MIT [2J gnp"),
        ({"license": " ", "classifiers": ["Programming Language :: Python"]}, None),
        ({}, None),
    ],
)
def test_the_clearest_statement_about_the_licence_counts(raw: dict[str, object], stated: str | None) -> None:
    assert stated_licence(raw) == stated

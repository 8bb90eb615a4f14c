"""Issue 4.7: known vulnerabilities, from records in the OSV format."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from envdsl.app.control import vulnerabilities
from envdsl.app.control.vulnerabilities import Vulnerabilities
from envdsl.errors import EnvdslError, ExitStatus


def record(name: str, identifier: str = "GHSA-1", **more: Any) -> dict[str, Any]:
    affected = {"package": {"ecosystem": "PyPI", "name": name}, **more.pop("affected", {})}
    return {"id": identifier, "modified": "2026-05-01T00:00:00Z", "affected": [affected], **more}


def ranges(*events: dict[str, str], kind: str = "ECOSYSTEM") -> dict[str, Any]:
    return {"ranges": [{"type": kind, "events": list(events)}]}


def opened(place: Path, *records: Any) -> Vulnerabilities:
    dump = place / "osv"
    dump.mkdir(exist_ok=True)
    for number, item in enumerate(records):
        (dump / f"{number}.json").write_text(item if isinstance(item, str) else json.dumps(item))
    return Vulnerabilities.open(dump, cache=place / "cache")


FROM_ONE_TO_TWO = ranges({"introduced": "1.0"}, {"fixed": "2.0"})


@pytest.mark.parametrize(
    ("affected", "hit", "missed"),
    [
        ({"versions": ["1.0", "1.1"]}, ["1.0", "1.0.0", "1.1"], ["1.2", "1.0.1"]),
        (FROM_ONE_TO_TWO, ["1.0", "1.9.9", "2.0rc1"], ["0.9", "1.0rc1", "2.0", "2.0.post1", "10"]),
        (ranges({"introduced": "0"}, {"fixed": "1.5"}), ["0.0.1", "1.4", "0.0.dev0"], ["1.5"]),
        (ranges({"introduced": "0"}), ["0.1", "99"], []),
        (ranges({"introduced": "1"}, {"last_affected": "1.5"}), ["1", "1.5"], ["1.5.1", "0.9"]),
        (
            ranges({"introduced": "3"}, {"fixed": "3.2"}, {"introduced": "1"}, {"fixed": "1.4"}),
            ["1.3", "3", "3.1"],
            ["1.4", "2", "3.2"],
        ),
        ({**FROM_ONE_TO_TWO, "versions": ["0.5"]}, ["0.5", "1.5"], ["0.6"]),
        (ranges({"introduced": "0"}, kind="GIT"), [], ["1"]),
        ({"versions": ["not-pep440"]}, ["not-pep440"], ["1.0"]),
        (ranges({"introduced": "nonsense"}, {"fixed": "2"}), [], ["1"]),
        ({}, [], ["1.0"]),
    ],
)
def test_versions_are_meant_as_the_schema_has_it(
    tmp_path: Path, affected: dict[str, Any], hit: list[str], missed: list[str]
) -> None:
    known = opened(tmp_path, record("demo", affected=affected))
    assert [version for version in [*hit, *missed] if known.of("demo", version)] == hit


def test_what_is_told_of_a_vulnerability(tmp_path: Path) -> None:
    known = opened(
        tmp_path,
        record(
            "Demo_Package",
            aliases=["PYSEC-9", "CVE-2"],
            summary="Runs\nanything",
            affected=FROM_ONE_TO_TWO,
            database_specific={"severity": "HIGH"},
            severity=[{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N"}],
        ),
        record(
            "demo-package", "GHSA-0", details="x" * 1000, affected=FROM_ONE_TO_TWO, severity=[{"score": "CVSS:4.0"}]
        ),
    )
    first, second = known.of("demo.package", "1.5")
    assert (first.id, second.id) == ("GHSA-0", "GHSA-1")
    assert (second.aliases, second.summary, second.severity) == (("CVE-2", "PYSEC-9"), "Runs anything", "HIGH")
    assert second.fixed == ("2.0",)
    assert len(first.summary) == 200
    assert first.severity == "CVSS:4.0"


def test_the_date_is_that_of_the_newest_record(tmp_path: Path) -> None:
    known = opened(tmp_path, record("a"), {**record("b", "GHSA-2"), "modified": "2026-05-30T10:00:00.5Z"})
    assert known.date == datetime(2026, 5, 30, 10, 0, 0, 500_000, UTC)
    assert known.count == 2


def test_other_ecosystems_withdrawn_records_and_rubbish_do_not_count(tmp_path: Path) -> None:
    everywhere = {"affected": ranges({"introduced": "0"})}
    other = record("demo", **everywhere)
    other["affected"][0]["package"]["ecosystem"] = "npm"
    known = opened(
        tmp_path,
        other,
        record("demo", "GHSA-2", withdrawn="2026-01-01T00:00:00Z", **everywhere),
        "{ no json",
        [1, 2],
        {"id": 3},
        record("demo", "GHSA-4", **everywhere),
        {"id": "GHSA-5", "affected": [None, {"package": "demo"}, {"package": {"ecosystem": "PyPI"}}]},
    )
    assert [item.id for item in known.of("demo", "1")] == ["GHSA-4"]


def test_a_zip_is_as_good_as_a_directory(tmp_path: Path) -> None:
    dump = tmp_path / "all.zip"
    with zipfile.ZipFile(dump, "w") as archive:
        archive.writestr("GHSA-1.json", json.dumps(record("demo", affected=FROM_ONE_TO_TWO)))
        archive.writestr("README.md", "no record")
    known = Vulnerabilities.open(dump, cache=tmp_path / "cache")
    assert [item.id for item in known.of("demo", "1.5")] == ["GHSA-1"]


def test_the_dump_is_read_once_and_again_when_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up does not parse the world each time."""
    opened(tmp_path, record("demo", affected=FROM_ONE_TO_TWO))
    read = vulnerabilities._records
    monkeypatch.setattr(vulnerabilities, "_records", lambda path: pytest.fail("read again"))
    again = Vulnerabilities.open(tmp_path / "osv", cache=tmp_path / "cache")
    assert again.of("demo", "1.5")
    monkeypatch.setattr(vulnerabilities, "_records", read)
    changed = opened(
        tmp_path, record("demo", affected=FROM_ONE_TO_TWO), record("demo", "GHSA-2", affected=FROM_ONE_TO_TWO)
    )
    assert [item.id for item in changed.of("demo", "1.5")] == ["GHSA-1", "GHSA-2"]


def test_old_indexes_go_when_nobody_looks_there_any_more(tmp_path: Path) -> None:
    opened(tmp_path, record("demo"))
    (old,) = (tmp_path / "cache").glob("osv-*.db")
    os.utime(old, (0, 0))
    opened(tmp_path, record("demo"), record("other"))
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_what_is_no_dump_is_an_error_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.zip").write_bytes(b"PK no")
    for name, code in (("nowhere", "missing"), ("empty", "damaged"), ("bad.zip", "damaged")):
        with pytest.raises(EnvdslError) as caught:
            Vulnerabilities.open(tmp_path / name, cache=tmp_path / "cache")
        assert caught.value.code == f"app-vulnerabilities-{code}"
        assert caught.value.exit_status is ExitStatus.ENVIRONMENT
    assert not list((tmp_path / "cache").iterdir())


def test_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    opened(tmp_path, record("demo", affected=FROM_ONE_TO_TWO))
    (index,) = (tmp_path / "cache").glob("osv-*.db")
    index.write_bytes(b"no database")
    with pytest.raises(EnvdslError, match="damaged index"):
        Vulnerabilities.open(tmp_path / "osv", cache=tmp_path / "cache")
    assert Vulnerabilities.open(tmp_path / "osv", cache=tmp_path / "cache").of("demo", "1.5")

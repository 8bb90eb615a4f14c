"""Known vulnerabilities, from a dump of OSV records (https://ossf.github.io/osv-schema/) on this machine.

A dump is a directory of JSON files, or a zip of them as osv.dev offers it for an ecosystem. It has tens of thousands
of records, of which a request asks about a handful: so an index is made once for each state of the dump, an SQLite
file with the records by package name, and a look-up reads what stands under that name. Which versions a record
means follows from its ``versions`` and its ``ECOSYSTEM`` ranges, compared as PEP 440 orders them.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.policy.proposal import Vulnerability

if TYPE_CHECKING:
    from packaging.version import Version

_ECOSYSTEM = "PyPI"
_FORMAT = 2  # of the index
_LARGEST = 8 << 20  # bytes of one record
_SUMMARY = 200  # characters
_KEPT = 86400.0  # seconds that the index of an older dump stays for those who still look there


class Vulnerabilities:
    """The records of one dump, of which ``unreadable`` could not be read. May be used from several threads."""

    def __init__(self, index: Path, date: datetime, count: int, unreadable: int) -> None:
        self._index = index
        self.date = date
        self.count = count
        self.unreadable = unreadable

    @classmethod
    def open(cls, path: Path, *, cache: Path) -> Vulnerabilities:
        """The dump at ``path``, a directory or a zip; its index is kept in the directory ``cache``, and made anew
        when the dump changed.

        Raises EnvdslError (exit status ENVIRONMENT): ``app-vulnerabilities-missing``, ``app-vulnerabilities-damaged``
        for something that is no such dump.
        """
        try:
            index = cache / f"osv-{_state(path)}.db"
        except OSError as error:
            raise _error("missing", path, f"cannot be read: {error.strerror}") from error
        if not index.is_file():
            _make_index(path, index)
        try:
            with closing(_connect(index)) as connection:
                facts = dict(connection.execute("SELECT name, value FROM facts"))
                count, unreadable = int(facts["count"]), int(facts["unreadable"])
                return cls(index, datetime.fromisoformat(facts["date"]), count, unreadable)
        except (sqlite3.Error, KeyError, ValueError) as error:
            index.unlink(missing_ok=True)
            raise _error("damaged", path, f"has a damaged index ({error}); it is made anew next time") from error

    def of(self, name: str, version: str) -> tuple[Vulnerability, ...]:
        """What is known of this version of a distribution (any spelling of its name), sorted by id.

        A version that PEP 440 does not know is meant only where a record names it.
        """
        from packaging.utils import canonicalize_name

        with closing(_connect(self._index)) as connection:
            rows = connection.execute(
                "SELECT record FROM records WHERE name = ?", (canonicalize_name(name),)
            ).fetchall()
        found = [_vulnerability(record) for (text,) in rows if _affects(record := json.loads(text), version)]
        return tuple(sorted(found, key=lambda vulnerability: vulnerability.id))

    def of_all(self, pins: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[Vulnerability, ...]]:
        """What is known of each name and version; those of which nothing is known are left out."""
        return {pin: found for pin in pins if (found := self.of(*pin))}


def vulnerability_of(record: Mapping[str, Any], name: str) -> Vulnerability:
    """What an OSV record says of the distribution ``name`` (normalised). Raises KeyError for a record of others."""
    return _vulnerability(_by_name(record)[name])


def _state(path: Path) -> str:
    """What changes when the dump does: names, sizes and times of its files."""
    files = [path] if path.is_file() else sorted(path.rglob("*.json"))
    if not path.is_file() and not path.is_dir():
        path.stat()  # says why
    entries = [
        [str(file.relative_to(path.parent)), (status := file.stat()).st_size, status.st_mtime_ns] for file in files
    ]
    return blake3_hex(canonical_json([_FORMAT, str(path.absolute()), entries]))[:32]


def _make_index(path: Path, index: Path) -> None:
    index.parent.mkdir(parents=True, exist_ok=True)
    temporary = index.with_name(f".{index.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(temporary)) as connection:
            connection.execute("CREATE TABLE records (name TEXT NOT NULL, record TEXT NOT NULL)")
            connection.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
            latest, count, unreadable = datetime.fromtimestamp(0, UTC), 0, 0
            for record in _records(path):
                if record is None:
                    unreadable += 1
                    continue
                count += 1
                if (modified := _moment(record.get("modified"))) is not None:
                    latest = max(latest, modified)
                for name, part in _by_name(record).items():
                    connection.execute("INSERT INTO records VALUES (?, ?)", (name, json.dumps(part)))
            if count == 0:
                raise _error(
                    "damaged",
                    path,
                    "holds no OSV record" + (f" that can be read, and {unreadable} that cannot" if unreadable else ""),
                )
            connection.execute("CREATE INDEX by_name ON records (name)")
            facts = {"date": latest.isoformat(), "count": str(count), "unreadable": str(unreadable)}
            connection.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
            connection.commit()
        temporary.replace(index)
    except (zipfile.BadZipFile, OSError) as error:
        raise _error("damaged", path, f"cannot be read: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    for old in index.parent.glob("osv-*.db"):
        if old != index and old.stat().st_mtime < time.time() - _KEPT:
            old.unlink(missing_ok=True)


def _records(path: Path) -> Iterator[Mapping[str, Any] | None]:
    """The records of the dump, None for one that is too large or no JSON. What is no OSV record, or was withdrawn, is
    passed over."""
    for data in _files(path):
        try:
            record = json.loads(data) if data is not None else None
        except (ValueError, RecursionError):
            record = None
        if record is None:
            yield None
        elif isinstance(record, dict) and isinstance(record.get("id"), str) and not record.get("withdrawn"):
            yield record


def _files(path: Path) -> Iterator[bytes | None]:
    """The contents of the files of a dump; None for one that is too large."""
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            yield file.read_bytes() if file.stat().st_size <= _LARGEST else None
        return
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".json"):
                yield archive.read(member) if member.file_size <= _LARGEST else None


def _by_name(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a look-up needs of a record, for each distribution that it is about."""
    from packaging.utils import canonicalize_name

    parts: dict[str, dict[str, Any]] = {}
    for affected in _dicts(record.get("affected")):
        package = affected.get("package")
        if not isinstance(package, dict) or str(package.get("ecosystem", "")).partition(":")[0] != _ECOSYSTEM:
            continue
        part = parts.setdefault(
            canonicalize_name(str(package.get("name", ""))),
            {
                "id": record["id"],
                "aliases": [str(alias) for alias in record.get("aliases") or ()],
                "summary": str(record.get("summary") or record.get("details") or "")[: 4 * _SUMMARY],
                "severity": _severity(record, affected),
                "versions": [],
                "ranges": [],
            },
        )
        part["versions"] += [str(version) for version in affected.get("versions") or ()]
        part["ranges"] += [
            [{key: str(value) for key, value in event.items()} for event in _dicts(item.get("events"))]
            for item in _dicts(affected.get("ranges"))
            if item.get("type") == "ECOSYSTEM"
        ]
    return parts


def _severity(record: Mapping[str, Any], affected: Mapping[str, Any]) -> str | None:
    """The word of the database that has one (``HIGH``), else the CVSS vector."""
    for place in (affected, record):
        for key in ("database_specific", "ecosystem_specific"):
            specific = place.get(key)
            if isinstance(specific, dict) and isinstance(word := specific.get("severity"), str):
                return word
    scores = [str(item.get("score")) for item in _dicts(affected.get("severity")) or _dicts(record.get("severity"))]
    return scores[-1] if scores else None


def _affects(record: Mapping[str, Any], version: str) -> bool:
    wanted = _version(version)
    if version in record["versions"] or (wanted and any(_version(item) == wanted for item in record["versions"])):
        return True
    return wanted is not None and any(_in_range(events, wanted) for events in record["ranges"])


def _in_range(events: Iterable[Mapping[str, str]], version: Version) -> bool:
    """The evaluation algorithm of the OSV schema: the events in order, each of which turns "affected" on or off."""
    ordered: list[tuple[Version | None, int, str]] = []
    for event in events:
        for rank, kind in enumerate(("introduced", "fixed", "last_affected")):
            if kind in event:
                at = None if event[kind] == "0" else _version(event[kind])
                if at is not None or event[kind] == "0":
                    ordered.append((at, rank, kind))
    affected = False
    for at, _, kind in sorted(ordered, key=lambda item: (item[0] is not None, item[0] or version, item[1])):
        if kind == "introduced" and (at is None or version >= at):
            affected = True
        elif (kind == "fixed" and at is not None and version >= at) or (
            kind == "last_affected" and at is not None and version > at
        ):
            affected = False
    return affected


def _vulnerability(record: Mapping[str, Any]) -> Vulnerability:
    fixed = {event["fixed"] for events in record["ranges"] for event in events if "fixed" in event}
    summary = " ".join(record["summary"].split())
    return Vulnerability(
        id=record["id"],
        aliases=tuple(sorted(record["aliases"])),
        summary=summary if len(summary) <= _SUMMARY else f"{summary[: _SUMMARY - 1]}…",
        severity=record["severity"],
        fixed=tuple(sorted(fixed, key=lambda text: (_version(text) is None, _version(text) or text))),
    )


@lru_cache(maxsize=8192)
def _version(text: str) -> Version | None:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion:
        return None


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _moment(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _connect(index: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True)


def _error(what: str, path: Path, problem: str) -> EnvdslError:
    return EnvdslError.of(
        f"app-vulnerabilities-{what}",
        f"{path}, where known vulnerabilities are looked up, {problem}",
        hint="`service.vulnerabilities` in envdsl.toml names a directory or zip of OSV records of Python packages",
        exit_status=ExitStatus.ENVIRONMENT,
    )

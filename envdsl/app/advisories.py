"""``envdsl audit``: what is known to be wrong with locked packages.

Known vulnerabilities come from OSV records: a dump on this machine, or an OSV API. What indexes withdrew (yanked files,
quarantined projects) comes from the indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from envdsl.app import locking, packages
from envdsl.app.control.vulnerabilities import Vulnerabilities, vulnerability_of
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.proposal import Vulnerability
from envdsl.redaction import public_url
from envdsl.transport import CONNECT_TIMEOUT, READ_TIMEOUT, Retries, new_session, reason

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.config import IgnoredVulnerability
    from envdsl.lock.lock import Lock, LockedPackage

_BATCH = 1000  # queries that an OSV API takes at once
_TIMEOUT = (CONNECT_TIMEOUT, READ_TIMEOUT)


class Records(Protocol):
    """Where OSV records are: a dump, or an API. ``unreadable`` is how many nobody can look at."""

    @property
    def date(self) -> datetime: ...
    @property
    def unreadable(self) -> int: ...
    def of_all(self, pins: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[Vulnerability, ...]]: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a package. ``kind`` is ``vulnerability``, ``yanked`` or ``quarantined``.

    ``ignored`` says why it does not count, and until when; ``locks`` are the files that pin the package, relative to
    the project, with the line.
    """

    kind: str
    name: str
    version: str
    layers: tuple[str, ...]
    locks: tuple[tuple[str, int], ...]
    id: str
    message: str
    aliases: tuple[str, ...] = ()
    severity: str | None = None
    fixed: tuple[str, ...] = ()
    ignored: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """The outcome. ``sources`` say where records came from and of when they are; ``expired`` are ignores that count no
    more; ``packages`` is how many were looked at; ``unreadable`` how many records could not be."""

    findings: tuple[Finding, ...]
    sources: tuple[str, ...]
    expired: tuple[str, ...]
    packages: int
    unreadable: int

    @property
    def counting(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.ignored is None)


def audit(
    project: Project,
    layers: Sequence[str] = (),
    *,
    database: Path | None = None,
    offline: bool = False,
    today: date | None = None,
) -> Audit:
    """Look at the locked packages of ``layers`` (of all without names).

    ``database`` goes before the configured dump. ``offline``: no API and no index of the network is asked. Raises
    EnvdslError ``app-audit-no-records`` where nothing is configured; ``app-audit-endpoint``, ``app-vulnerabilities-…``.
    """
    locks = [packages.require_lock(project, layer) for layer in project.select_families(layers)]
    pins: dict[tuple[str, str], list[Lock]] = {}
    for lock in locks:
        for package in lock.packages:
            pins.setdefault((package.name, package.version), []).append(lock)
    sources = _records(project, database, offline=offline)
    known: dict[tuple[str, str], dict[str, Vulnerability]] = {}
    for _, records in sources:
        for pin, found in records.of_all(pins).items():
            known.setdefault(pin, {}).update({item.id: item for item in found})
    places = _Places(project)
    today = today or datetime.now(UTC).date()
    ignores = project.config.audit.ignore
    findings = [
        _of_vulnerability(item, pin, pins[pin], places, _ignored(item, ignores, today))
        for pin in sorted(known)
        for item in known[pin].values()
    ]
    if not offline:
        findings += _withdrawn(project, locks, pins, places)
    expired = tuple(f"{item.id} since {item.expires}: {item.reason}" for item in ignores if item.expires <= today)
    said = tuple(f"{label} of {records.date:%Y-%m-%d}" for label, records in sources)
    ordered = tuple(sorted(findings, key=lambda item: (item.name, item.kind, item.id)))
    return Audit(ordered, said, expired, len(pins), sum(records.unreadable for _, records in sources))


def _records(project: Project, database: Path | None, *, offline: bool) -> list[tuple[str, Records]]:
    chosen = database or project.config.service.vulnerabilities
    found: list[tuple[str, Records]] = []
    if chosen is not None:
        found.append((str(chosen.name), Vulnerabilities.open(chosen, cache=project.store.layout.cache)))
    endpoint = project.config.audit.endpoint
    if endpoint is not None and not offline and database is None:
        found.append((public_url(endpoint), OsvApi(endpoint)))
    if not found:
        raise EnvdslError.of(
            "app-audit-no-records",
            "no records of vulnerabilities are configured" + (" that need no network" if endpoint else ""),
            hint="name a directory or zip of OSV records with --database or `service.vulnerabilities` in envdsl.toml, "
            "or an OSV API with `audit.endpoint`",
            exit_status=ExitStatus.USAGE,
        )
    return found


class OsvApi:
    """An OSV API (https://google.github.io/osv.dev/api/), asked for many packages at once."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self.date = datetime.now(UTC)
        self.unreadable = 0

    def of_all(self, pins: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[Vulnerability, ...]]:
        """Raises EnvdslError ``app-audit-endpoint``."""
        import requests

        try:
            return self._ask(sorted(pins))
        except (requests.RequestException, KeyError, TypeError, ValueError) as error:
            why = (
                reason(error) if isinstance(error, requests.RequestException) else f"its answer has no sense ({error})"
            )
            raise EnvdslError.of(
                "app-audit-endpoint",
                f"{public_url(self._endpoint)}: {why}",
                hint="check `audit.endpoint` in envdsl.toml; --offline looks at local records alone",
                exit_status=ExitStatus.ENVIRONMENT,
            ) from error

    def _ask(self, pins: Sequence[tuple[str, str]]) -> dict[tuple[str, str], tuple[Vulnerability, ...]]:
        ids: dict[tuple[str, str], list[str]] = {}
        for start in range(0, len(pins), _BATCH):
            batch = [(pin, "") for pin in pins[start : start + _BATCH]]
            while batch:  # an answer that is too long comes in pages, each package's of its own
                answers = self._post([self._query(pin, page) for pin, page in batch])
                following = []
                for (pin, _), answer in zip(batch, answers, strict=True):
                    ids.setdefault(pin, []).extend(item["id"] for item in answer.get("vulns", ()))
                    if page := answer.get("next_page_token"):
                        following.append((pin, page))
                batch = following
        records = {name: self._get(name) for name in sorted({item for found in ids.values() for item in found})}
        found: dict[tuple[str, str], tuple[Vulnerability, ...]] = {}
        for pin, names in ids.items():
            meant = [records[name] for name in names if not records[name].get("withdrawn")]
            if meant:
                found[pin] = tuple(vulnerability_of(record, pin[0]) for record in meant)
        return found

    @staticmethod
    def _query(pin: tuple[str, str], page: str) -> dict[str, Any]:
        query: dict[str, Any] = {"package": {"name": pin[0], "ecosystem": "PyPI"}, "version": pin[1]}
        return {**query, "page_token": page} if page else query

    def _post(self, queries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        url = f"{self._endpoint}/v1/querybatch"
        with new_session() as session:
            answer = Retries().call(lambda: _checked(session.post(url, json={"queries": queries}, timeout=_TIMEOUT)))
        results: list[dict[str, Any]] = answer["results"]
        return results

    def _get(self, name: str) -> dict[str, Any]:
        from urllib.parse import quote

        url = f"{self._endpoint}/v1/vulns/{quote(name, safe='')}"
        with new_session() as session:
            return Retries().call(lambda: _checked(session.get(url, timeout=_TIMEOUT)))


def _checked(response: Any) -> dict[str, Any]:
    response.raise_for_status()
    found: dict[str, Any] = response.json()
    return found


def _ignored(item: Vulnerability, ignores: Iterable[IgnoredVulnerability], today: date) -> str | None:
    names = {item.id, *item.aliases}
    for ignore in ignores:
        if ignore.id in names and today < ignore.expires:
            return f"{ignore.reason} (until {ignore.expires})"
    return None


class _Places:
    """Where packages stand in lock files, for whoever annotates a change."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._lines: dict[str, dict[str, int]] = {}

    def of(self, name: str, locks: Iterable[Lock]) -> tuple[tuple[str, int], ...]:
        return tuple((self._path(lock.layer), self._line(lock.layer, name)) for lock in locks)

    def _path(self, layer: str) -> str:
        return self._project.config.lock_path(layer).relative_to(self._project.config.root).as_posix()

    def _line(self, layer: str, name: str) -> int:
        if layer not in self._lines:
            lines = self._project.config.lock_path(layer).read_text(encoding="utf-8").splitlines()
            self._lines[layer] = {
                line.split('"')[1]: number for number, line in enumerate(lines, 1) if line.startswith('name = "')
            }
        return self._lines[layer].get(name, 1)


def _of_vulnerability(
    item: Vulnerability, pin: tuple[str, str], locks: Sequence[Lock], places: _Places, ignored: str | None
) -> Finding:
    return Finding(
        "vulnerability",
        *pin,
        tuple(lock.layer for lock in locks),
        places.of(pin[0], locks),
        item.id,
        item.summary or item.id,
        item.aliases,
        item.severity,
        item.fixed,
        ignored,
    )


def _withdrawn(
    project: Project, locks: Sequence[Lock], pins: Mapping[tuple[str, str], Sequence[Lock]], places: _Places
) -> list[Finding]:
    """Yanked files, and quarantined projects, as the indexes say now. An index that does not answer says nothing."""
    from contextlib import suppress

    from envdsl.lock.pages import Pages

    configuration = locking.index_configuration(project)
    pages = Pages(configuration, Retries(attempts=2))
    by_pin = {(package.name, package.version): package for lock in locks for package in lock.packages}
    found: list[Finding] = []
    for pin, package in sorted(by_pin.items()):
        layers = tuple(lock.layer for lock in pins[pin])
        for source in configuration.sources_for(package.name):
            with suppress(EnvdslError):
                status = pages.status(source, package.name)
                if status is not None and status.status == "quarantined":
                    message = status.reason or "the index holds the project back as unsafe"
                    found.append(
                        Finding("quarantined", *pin, layers, places.of(pin[0], pins[pin]), "quarantined", message)
                    )
                    break
                if (why := _yanked(pages, source, package)) is not None:
                    found.append(Finding("yanked", *pin, layers, places.of(pin[0], pins[pin]), "yanked", why))
                    break
    return found


def _yanked(pages: Any, source: Any, package: LockedPackage) -> str | None:
    for _, wheel in package.platforms:
        file = pages.find(source, package.name, wheel.filename)
        if file is not None and file.yanked is not None and file.sha256 in (None, wheel.sha256):
            why: str = file.yanked
            return why
    return None

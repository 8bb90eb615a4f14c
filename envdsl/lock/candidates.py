"""Where the wheel of a given name and hash can be had, nearest first.

A lock names no host, so the answer is made here, from configuration: files of the project, flat
directories, indexes on disk, then indexes of the network through the simple API (PEP 503, PEP 691).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import Lock
from envdsl.lock.source import IndexSource
from envdsl.redaction import public_url
from envdsl.transport import CONNECT_TIMEOUT, READ_TIMEOUT, Retries, new_session, reason

if TYPE_CHECKING:
    import requests
    from pypi_simple import DistributionPackage

_TIMEOUT = (CONNECT_TIMEOUT, READ_TIMEOUT)


class WantedWheel(Protocol):
    """A wheel by content: ``graph.derivation.WheelFile`` is one, ``lock.LockedWheel`` too."""

    @property
    def filename(self) -> str: ...
    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be the wanted one: ``path`` on this machine, or else ``url``, which holds no credentials.

    ``sha256`` and ``size`` are what the source says, None where it says nothing; ``yanked`` is the reason if the
    index has withdrawn the file (PEP 592).
    """

    path: Path | None = None
    url: str | None = None
    sha256: str | None = None
    size: int | None = None
    yanked: str | None = None
    auth: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The place as a message may show it."""
        return str(self.path) if self.path is not None else public_url(self.url or "")


class Candidates:
    """Finds candidates; call it with a wheel. Answers of indexes are kept, so it serves for one run.

    ``known`` holds places that are known already, by sha256 (a wheel of the project, a URL that a lock names or
    that resolving has just seen). May be called from several threads.
    """

    def __init__(
        self,
        configuration: IndexConfiguration,
        *,
        known: Mapping[str, Sequence[Path | str]] | None = None,
        offline: bool = False,
        retries: Retries | None = None,
    ) -> None:
        self._configuration = configuration
        self._known = known or {}
        self._offline = offline
        self._retries = retries or Retries()
        self._pages: dict[tuple[IndexSource, str], Mapping[str, DistributionPackage]] = {}
        self._page_guards: dict[tuple[IndexSource, str], threading.Lock] = {}
        self._guard = threading.Lock()
        self._threads = threading.local()

    def __call__(self, wheel: WantedWheel) -> Iterator[Candidate]:
        """Candidates for ``wheel``; a network index is asked only once the nearer ones are used up.

        Ends with an EnvdslError (``lock-index-unreachable``) if an index could not be asked, since it may
        have been the one.
        """
        for place in self._known.get(wheel.sha256, ()):
            if isinstance(place, Path):
                yield Candidate(path=place)
            elif not self._offline:
                yield Candidate(url=place, auth=auth_for(place, self._configuration))
        unreachable: list[EnvdslError] = []
        local_first = sorted(self._configuration.sources, key=lambda source: source.directory is None)
        for source in local_first:
            if source.directory is None and self._offline:
                continue
            try:
                package = self._page(source, wheel.filename).get(wheel.filename)
            except EnvdslError as error:
                unreachable.append(error)
                continue
            if package is not None:
                yield self._candidate(source, package)
        if unreachable:
            raise EnvdslError.all(unreachable)

    def _candidate(self, source: IndexSource, package: DistributionPackage) -> Candidate:
        yanked = (package.yanked_reason or "no reason given") if package.is_yanked else None
        sha256 = package.digests.get("sha256")
        parts = urlsplit(package.url)
        if parts.scheme == "file":
            return Candidate(path=Path(url2pathname(str(parts.path))), sha256=sha256, size=package.size, yanked=yanked)
        same_place = (parts.scheme, parts.netloc) == source.origin
        auth = self._configuration.credentials(source) if same_place else None
        return Candidate(url=package.url, sha256=sha256, size=package.size, yanked=yanked, auth=auth)

    def _page(self, source: IndexSource, filename: str) -> Mapping[str, DistributionPackage]:
        from packaging.utils import InvalidWheelFilename, parse_wheel_filename

        if source.flat:
            project = ""
        else:
            try:
                project = parse_wheel_filename(filename)[0]
            except InvalidWheelFilename:
                return {}
        key = source, project
        with self._guard:
            guard = self._page_guards.setdefault(key, threading.Lock())
        with guard:
            if key not in self._pages:
                if source.directory is not None:
                    packages = _read_page(source.directory, project, flat=source.flat)
                else:
                    packages = self._fetch_page(source, project)
                self._pages[key] = {package.filename: package for package in reversed(packages)}
            return self._pages[key]

    def _fetch_page(self, source: IndexSource, project: str) -> list[DistributionPackage]:
        import requests
        from pypi_simple import NoSuchProjectError, PyPISimple, RepositoryPage, UnsupportedContentTypeError

        auth = self._configuration.credentials(source)

        def fetch() -> list[DistributionPackage]:
            if source.flat:
                answer = self._session().get(source.url, auth=auth, timeout=_TIMEOUT)
                answer.raise_for_status()
                return _links(RepositoryPage.from_html(answer.content, answer.url))
            session = self._session()
            session.auth = auth
            try:
                return PyPISimple(source.url, session=session).get_project_page(project, timeout=_TIMEOUT).packages
            finally:
                session.auth = None

        try:
            return self._retries.call(fetch)
        except NoSuchProjectError:
            return []
        except (UnsupportedContentTypeError, ValueError) as error:
            raise _unreachable(source, "it answers with something that is no index page") from error
        except requests.RequestException as error:
            raise _unreachable(source, reason(error), status=_status(error)) from error

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._threads, "session", None)
        if session is None:
            session = self._threads.session = new_session()
        return session


def auth_for(url: str, configuration: IndexConfiguration) -> tuple[str, str] | None:
    """The credentials for a URL of the same scheme, host and port as a source; None for any other place."""
    parts = urlsplit(url)
    for source in configuration.sources:
        if source.origin == (parts.scheme, parts.netloc):
            return configuration.credentials(source)
    return None


def known_places(lock: Lock, directory: Path) -> dict[str, tuple[Path | str, ...]]:
    """The places that a lock in ``directory`` names itself, by sha256: wheels of the project, and URLs."""
    places: dict[str, tuple[Path | str, ...]] = {}
    for package in lock.packages:
        for _, wheel in package.platforms:
            if wheel.path is not None:
                places[wheel.sha256] = (directory / wheel.path,)
            elif wheel.url is not None:
                parts = urlsplit(wheel.url)
                places[wheel.sha256] = (Path(url2pathname(str(parts.path))) if parts.scheme == "file" else wheel.url,)
    return places


def _read_page(place: Path, project: str, *, flat: bool) -> list[DistributionPackage]:
    """The wheels of a flat directory or page, or of one project in an index on disk; none where there is nothing."""
    from pypi_simple import DistributionPackage, ProjectPage, RepositoryPage

    if flat and place.is_dir():
        return [
            DistributionPackage(path.name, path.absolute().as_uri(), None, None, "wheel", {}, None, None)
            for path in place.glob("*.whl")
        ]
    page = place if flat else place / project / "index.html"
    if not page.is_file():
        return []
    if flat:
        return _links(RepositoryPage.from_html(page.read_bytes(), page.as_uri()))
    return ProjectPage.from_html(project, page.read_bytes(), page.as_uri()).packages


def _links(page: object) -> list[DistributionPackage]:
    from pypi_simple import DistributionPackage, RepositoryPage

    assert isinstance(page, RepositoryPage)
    return [DistributionPackage.from_link(link) for link in page.links]


def _status(error: Exception) -> int | None:
    status: int | None = getattr(getattr(error, "response", None), "status_code", None)
    return status


def _unreachable(source: IndexSource, why: str, *, status: int | None = None) -> EnvdslError:
    place = public_url(source.url)
    if status in (401, 403):
        return EnvdslError.of(
            "lock-index-credentials",
            f"the index {place} refuses our credentials, or wants some ({why})",
            hint="give them by netrc, a keyring, or UV_INDEX_<NAME>_USERNAME and _PASSWORD for an index with a name",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return EnvdslError.of(
        "lock-index-unreachable",
        f"the index {place} cannot be asked: {why}",
        hint="check the network and the index's address, or work with --offline from what is there",
        exit_status=ExitStatus.ENVIRONMENT,
    )

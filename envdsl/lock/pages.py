"""What an index says about the files of a project: the simple API (PEP 503, PEP 691), and pages of links.

A page of a popular project lists thousands of files, of which one is wanted. Its JSON form is therefore kept
as it is and read entry by entry; ``pypi-simple`` reads the HTML forms.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.source import IndexSource
from envdsl.transport import CONNECT_TIMEOUT, READ_TIMEOUT, Retries, new_session, reason

if TYPE_CHECKING:
    import requests
    from pypi_simple import DistributionPackage

JSON = "application/vnd.pypi.simple.v1+json"
_ACCEPT = f"{JSON}, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_TIMEOUT = (CONNECT_TIMEOUT, READ_TIMEOUT)


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One file of a page. ``sha256`` and ``size`` are None where the page does not tell; ``yanked`` is a reason.

    ``uploaded`` is when the index got it (PEP 700: RFC 3339, UTC). ``metadata`` says that its METADATA can be had at
    the URL with ``.metadata`` after it (PEP 658, PEP 714). ``requires_python`` is a version specifier.
    """

    url: str
    sha256: str | None = None
    size: int | None = None
    yanked: str | None = None
    uploaded: str | None = None
    metadata: bool = False
    requires_python: str | None = None


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """What an index says of a whole project (PEP 792): ``active``, ``archived``, ``deprecated`` or ``quarantined``."""

    status: str = "active"
    reason: str | None = None


class Pages:
    """The pages of a configuration's indexes, each asked for once. May be called from several threads."""

    def __init__(self, configuration: IndexConfiguration, retries: Retries | None = None) -> None:
        self._configuration = configuration
        self._retries = retries or Retries()
        self._pages: dict[tuple[IndexSource, str], _Page] = {}
        self._guards: dict[tuple[IndexSource, str], threading.Lock] = {}
        self._guard = threading.Lock()
        self._threads = threading.local()

    def find(self, source: IndexSource, project: str, filename: str) -> IndexedFile | None:
        """The file of that name in a normalised project, None where ``source`` has none.

        Raises EnvdslError ``lock-index-unreachable``, ``lock-index-credentials`` (exit status ENVIRONMENT).
        """
        if source.flat and source.directory is not None and source.directory.is_dir():
            path = source.directory / filename
            return IndexedFile(path.absolute().as_uri()) if path.is_file() else None
        key = source, "" if source.flat else project
        with self._guard:
            guard = self._guards.setdefault(key, threading.Lock())
        with guard:
            if key not in self._pages:
                self._pages[key] = self._page(source, project)
            return self._pages[key].find(filename)

    def filenames(self, source: IndexSource, project: str) -> tuple[str, ...]:
        """The names of the files that ``source`` has of a normalised project; of a flat one, those of all projects.

        Raises as :meth:`find`.
        """
        if source.flat and source.directory is not None and source.directory.is_dir():
            return tuple(sorted(path.name for path in source.directory.iterdir()))
        self.find(source, project, "")
        return tuple(self._pages[source, "" if source.flat else project].filenames)

    def entries(self, source: IndexSource, project: str) -> list[dict[str, Any]] | None:
        """What ``source`` says of the files of a normalised project, in the form of PEP 691 with absolute URLs; None
        where it has no such project. Raises as :meth:`find`."""
        if source.flat:
            names = [name for name in self.filenames(source, project) if _project_of(name) == project]
            files = [(name, self.find(source, project, name)) for name in names]
            return [_flat_entry(name, file) for name, file in files if file is not None] or None
        return self._pages[source, project].entries() if self.status(source, project) is not None else None

    def status(self, source: IndexSource, project: str) -> ProjectStatus | None:
        """What ``source`` says of a normalised project; None where it has no page of it. Raises as :meth:`find`."""
        if source.flat:
            return None
        self.find(source, project, "")
        return self._pages[source, project].status

    def _page(self, source: IndexSource, project: str) -> _Page:
        if source.directory is not None:
            return _read(source.directory, project, flat=source.flat)
        import requests

        try:
            return self._retries.call(lambda: self._fetch(source, project))
        except requests.JSONDecodeError as error:
            raise _no_page(source) from error
        except requests.RequestException as error:
            raise _unreachable(source, error) from error
        except (ValueError, TypeError, KeyError) as error:
            raise _no_page(source) from error

    def _fetch(self, source: IndexSource, project: str) -> _Page:
        url = source.url if source.flat else f"{source.url.rstrip('/')}/{project}/"
        answer = self._session().get(
            url, auth=self._configuration.credentials(source), timeout=_TIMEOUT, headers={"Accept": _ACCEPT}
        )
        if answer.status_code == 404 and not source.flat:
            return _Page({}, url)
        answer.raise_for_status()
        kind = answer.headers.get("Content-Type", "text/html").partition(";")[0].strip().lower()
        if kind == JSON:
            page = answer.json()
            files = {entry["filename"]: entry for entry in reversed(page["files"])}
            said = page.get("project-status") or {}
            return _Page(files, answer.url, ProjectStatus(said.get("status", "active"), said.get("reason")))
        if kind not in ("text/html", "application/vnd.pypi.simple.v1+html"):
            raise ValueError(kind)
        return _of_html(answer.content, answer.url, project, flat=source.flat)

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._threads, "session", None)
        if session is None:
            session = self._threads.session = new_session()
        return session


class _Page:
    """Entries in the form of PEP 691, by file name, as they came from ``url``. ``status`` is None where there is no
    such project."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]], url: str, status: ProjectStatus | None = None) -> None:
        self._entries = entries
        self._url = url
        self.status = status

    @property
    def filenames(self) -> Iterable[str]:
        return self._entries.keys()

    def entries(self) -> list[dict[str, Any]]:
        return [{**entry, "url": urljoin(self._url, str(entry["url"]))} for entry in self._entries.values()]

    def find(self, filename: str) -> IndexedFile | None:
        entry = self._entries.get(filename)
        if entry is None:
            return None
        yanked = entry.get("yanked", False)
        size, uploaded, python = entry.get("size"), entry.get("upload-time"), entry.get("requires-python")
        return IndexedFile(
            url=urljoin(self._url, str(entry["url"])).partition("#")[0],
            sha256=entry.get("hashes", {}).get("sha256"),
            size=size if isinstance(size, int) else None,
            yanked=None if yanked is False else (yanked if isinstance(yanked, str) and yanked else "no reason given"),
            uploaded=uploaded if isinstance(uploaded, str) else None,
            metadata=bool(entry.get("core-metadata", entry.get("dist-info-metadata", False))),
            requires_python=python if isinstance(python, str) else None,
        )


def _read(place: Path, project: str, *, flat: bool) -> _Page:
    """A page of links, or the page of one project in an index on disk; empty where there is none."""
    page = place if flat else place / project / "index.html"
    return _of_html(page.read_bytes(), page.as_uri(), project, flat=flat) if page.is_file() else _Page({}, "")


def _of_html(content: bytes, url: str, project: str, *, flat: bool) -> _Page:
    from pypi_simple import DistributionPackage, ProjectPage, RepositoryPage

    status = ProjectStatus()
    if flat:
        links = RepositoryPage.from_html(content, url).links
        packages = [DistributionPackage.from_link(link) for link in links]
    else:
        page = ProjectPage.from_html(project, content, url)
        packages = page.packages
        status = ProjectStatus(str(page.status or "active"), page.status_reason)
    return _Page({package.filename: _entry(package) for package in reversed(packages)}, url, status)


def _entry(package: DistributionPackage) -> dict[str, Any]:
    yanked = (package.yanked_reason or True) if package.is_yanked else False
    return {
        "filename": package.filename,
        "url": package.url,
        "hashes": package.digests,
        "size": package.size,
        "yanked": yanked,
        "core-metadata": package.metadata_digests or bool(package.has_metadata),
        "requires-python": package.requires_python,
    }


def _flat_entry(filename: str, file: IndexedFile) -> dict[str, Any]:
    return {
        "filename": filename,
        "url": file.url,
        "hashes": {"sha256": file.sha256} if file.sha256 else {},
        "yanked": file.yanked or False,
    }


def _project_of(filename: str) -> str | None:
    """The normalised project that a distribution belongs to by its name; None for any other file."""
    from packaging.utils import InvalidSdistFilename, canonicalize_name, parse_sdist_filename

    if filename.endswith(".whl"):
        return canonicalize_name(filename.split("-")[0])
    try:
        return parse_sdist_filename(filename)[0]
    except InvalidSdistFilename:
        return None


def _no_page(source: IndexSource) -> EnvdslError:
    return _error(source, "it answers with something that is no index page")


def _unreachable(source: IndexSource, error: requests.RequestException) -> EnvdslError:
    if error.response is not None and error.response.status_code in (401, 403):
        return EnvdslError.of(
            "lock-index-credentials",
            f"the index {source.label} refuses our credentials, or wants some ({reason(error)})",
            hint="give them by netrc, a keyring, or UV_INDEX_<NAME>_USERNAME and _PASSWORD for an index with a name",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return _error(source, reason(error))


def _error(source: IndexSource, why: str) -> EnvdslError:
    return EnvdslError.of(
        "lock-index-unreachable",
        f"the index {source.label} cannot be asked: {why}",
        hint="check the network and the index's address, or work with --offline from what is there",
        exit_status=ExitStatus.ENVIRONMENT,
    )

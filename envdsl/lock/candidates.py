"""Where the wheel of a given name and hash can be had, nearest first.

A lock names no host, so the answer is made here, from configuration: files of the project, flat directories,
indexes on disk, then indexes of the network. A name that belongs to one index is asked of that one alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from envdsl.errors import EnvdslError
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import Lock
from envdsl.lock.pages import IndexedFile, Pages
from envdsl.lock.source import IndexSource
from envdsl.redaction import public_url
from envdsl.transport import Retries


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
        self._pages = Pages(configuration, retries)

    def __call__(self, wheel: WantedWheel) -> Iterator[Candidate]:
        """Candidates for ``wheel``; a network index is asked only once the nearer ones are used up.

        Ends with an EnvdslError (``lock-index-unreachable``) if an index could not be asked, since it may
        have been the one.
        """
        from packaging.utils import InvalidWheelFilename, parse_wheel_filename

        for place in self._known.get(wheel.sha256, ()):
            if isinstance(place, Path):
                yield Candidate(path=place)
            elif not self._offline:
                yield Candidate(url=place, auth=auth_for(place, self._configuration))
        try:
            project = parse_wheel_filename(wheel.filename)[0]
        except InvalidWheelFilename:
            return
        unreachable: list[EnvdslError] = []
        for source in sorted(self._configuration.sources_for(project), key=lambda source: source.directory is None):
            if source.directory is None and self._offline:
                continue
            try:
                if not self._offline:
                    source.check_directory()
                file = self._pages.find(source, project, wheel.filename)
            except EnvdslError as error:
                unreachable.append(error)
                continue
            if file is not None:
                yield self._candidate(source, file)
        if unreachable:
            raise EnvdslError.all(unreachable)

    def _candidate(self, source: IndexSource, file: IndexedFile) -> Candidate:
        if (path := local_path(file.url)) is not None:
            return Candidate(path=path, sha256=file.sha256, size=file.size, yanked=file.yanked)
        auth = auth_for(file.url, self._configuration, [source])
        return Candidate(url=file.url, sha256=file.sha256, size=file.size, yanked=file.yanked, auth=auth)


def auth_for(
    url: str, configuration: IndexConfiguration, sources: Sequence[IndexSource] | None = None
) -> tuple[str, str] | None:
    """The credentials for a URL of the same scheme, host and port as one of ``sources`` (by default any of the
    configuration's); None for any other place, which they do not concern."""
    parts = urlsplit(url)
    for source in configuration.reachable if sources is None else sources:
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
                places[wheel.sha256] = (local_path(wheel.url) or wheel.url,)
    return places


def local_path(url: str) -> Path | None:
    """The file that a ``file:`` URL names; None for any other URL."""
    parts = urlsplit(url)
    return Path(unquote(str(parts.path))) if parts.scheme == "file" else None

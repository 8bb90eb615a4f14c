"""One place where wheels may come from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.redaction import public_url

_NAMED = re.compile(r"([A-Za-z0-9_.-]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class IndexSource:
    """An index (PEP 503, PEP 691), or with ``flat`` a directory or page that lists wheels.

    ``url`` (http, https or file) never holds credentials; those that its author wrote into it stand in
    ``userinfo``, which no representation shows. ``default`` marks the index that is asked last and that
    replaces the public one. ``explicit`` ones serve only the layers that name them. ``packages`` are patterns of the
    names that belong to this source alone (``corp-*``); an explicit one serves these, too.
    """

    url: str
    name: str | None = None
    flat: bool = False
    default: bool = False
    explicit: bool = False
    packages: tuple[str, ...] = ()
    userinfo: tuple[str, str] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        location: str,
        *,
        name: str | None = None,
        flat: bool = False,
        default: bool = False,
        explicit: bool = False,
        packages: tuple[str, ...] = (),
        directory: Path | None = None,
    ) -> IndexSource:
        """A source from a URL or a path (a relative one is taken from ``directory``, or else where we are)."""
        if "://" not in location:
            path = Path(location.removeprefix("file:")).expanduser()
            location = ((directory or Path.cwd()) / path).absolute().as_uri()
        parts = urlsplit(location)
        userinfo, found, host = parts.netloc.rpartition("@")
        username, _, password = userinfo.partition(":")
        return cls(
            urlunsplit((parts.scheme, host, parts.path, parts.query, "")),
            name,
            flat,
            default,
            explicit,
            packages,
            (unquote(username), unquote(password)) if found else None,
        )

    @classmethod
    def named(cls, text: str, *, default: bool = False, directory: Path | None = None) -> IndexSource:
        """A source in uv's spelling: a location, or ``name=location``."""
        match = _NAMED.fullmatch(text)
        name, location = (match[1], match[2]) if match else (None, text)
        return cls.of(location, name=name, default=default, directory=directory)

    def owns(self, project: str) -> bool:
        """Whether a pattern of ``packages`` matches ``project``, a normalised name."""
        return any(fnmatchcase(project, normalised_pattern(pattern)) for pattern in self.packages)

    @property
    def label(self) -> str:
        """The source as a message may show it: by its name, if it has one, and its URL."""
        url = public_url(self.url)
        return f"`{self.name}` ({url})" if self.name else url

    @property
    def directory(self) -> Path | None:
        """The directory (or page) of a ``file:`` source, None for one that the network serves."""
        parts = urlsplit(self.url)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @property
    def origin(self) -> tuple[str, str]:
        """Scheme, and host with port: credentials of a source are sent to no other place."""
        parts = urlsplit(self.url)
        return parts.scheme, parts.netloc

    def check_directory(self) -> None:
        """Raise EnvdslError ``lock-index-missing`` for a source on this machine that is not there."""
        if self.directory is not None and not self.directory.exists():
            raise EnvdslError.of(
                "lock-index-missing",
                f"the index {self.name or self.url} is a directory that is not there: {self.directory}",
                hint="make it, or correct `url` of that [[index]] in envdsl.toml",
                exit_status=ExitStatus.ENVIRONMENT,
            )


def normalised_pattern(pattern: str) -> str:
    """A pattern in the form of normalised names (PEP 503), so that ``Corp_*`` matches ``corp-tools``."""
    return re.sub(r"[-_.]+", "-", pattern).lower()

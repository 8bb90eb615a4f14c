"""A question to the resolver as data, and its answer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from envdsl.model.names import Platform, PythonVersion

_VIA = re.compile(r"# +(?:via +)?(?:-[cr] .*|--\w+ .*|(?P<name>[\w.-]+))?$")
_YANKED = re.compile(r"`(?P<name>[\w.-]+)==(?P<version>[^`]+)` is yanked(?: \(reason: \"(?P<reason>.*)\"\))?")


@dataclass(frozen=True, slots=True)
class Distribution:
    """A wheel that uv found: its place (``path`` on this machine or ``url``) and what is known of its bytes."""

    filename: str
    url: str | None = None
    path: Path | None = None
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Pinned:
    """One package of an answer, with the wheels of that version that uv thinks fit."""

    version: str
    wheels: tuple[Distribution, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A resolution for one platform. ``yanked`` gives the reason for each yanked package in it."""

    packages: Mapping[str, Pinned]
    yanked: Mapping[str, str]

    @property
    def pins(self) -> dict[str, str]:
        return {name: package.version for name, package in self.packages.items()}


@dataclass(frozen=True, slots=True)
class Question:
    """What to resolve for one platform.

    ``preferences`` are pins to keep where they fit; ``constraints`` hold in any case. ``exempt`` names packages
    that ``exclude_newer`` (an RFC 3339 time) does not concern. ``refresh``: ask the indexes anew about these
    packages (about all for ``True``).
    """

    python: PythonVersion
    platform: Platform
    requirements: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    preferences: Mapping[str, str] = field(default_factory=dict)
    prereleases: bool = False
    exclude_newer: str | None = None
    exempt: tuple[str, ...] = ()
    find_links: tuple[Path, ...] = ()
    refresh: bool | tuple[str, ...] = False


def parse_packages(text: str, directory: Path) -> dict[str, Pinned]:
    """The packages of uv's ``pylock.toml`` (a ``text`` that stood in ``directory``)."""
    data: dict[str, Any] = tomllib.loads(text)
    packages = {}
    for entry in data.get("packages", ()):
        files = [*entry.get("wheels", ()), *([entry["archive"]] if "archive" in entry else ())]
        packages[entry["name"]] = Pinned(entry["version"], tuple(_distribution(file, directory) for file in files))
    return packages


def _distribution(file: Mapping[str, Any], directory: Path) -> Distribution:
    url, path = file.get("url"), file.get("path")
    if url is not None and urlsplit(url).scheme == "file":
        url, path = None, unquote(str(urlsplit(url).path))
    place = directory / path if path is not None else None  # not resolved: the name of a link is the wheel's
    last = place.name if place is not None else unquote(urlsplit(url or "").path.rpartition("/")[2])
    return Distribution(
        filename=file.get("name") or last,
        url=url,
        path=place,
        sha256=file.get("hashes", {}).get("sha256"),
        size=file.get("size"),
    )


def parse_yanked(message: str) -> dict[str, str]:
    """The packages that uv warned of as yanked, with the reasons."""
    return {match["name"]: match["reason"] or "" for match in _YANKED.finditer(message)}


def parse_dependents(text: str) -> dict[str, set[str]]:
    """The packages that require each package, from the ``# via`` annotations of a compiled requirements file."""
    dependents: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in text.splitlines():
        if line and not line.startswith((" ", "#")):
            name = re.split(r"[\s\[=@;]", line, maxsplit=1)[0]
            current = dependents.setdefault(name, set())
        elif (match := _VIA.fullmatch(line.strip())) and match["name"]:
            current.add(match["name"])
    return dependents

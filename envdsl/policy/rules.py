"""What a catalog says, as data: entries for names, and the rules that hold for all sessions or for some."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from envdsl.model.span import Span

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

UNLIMITED = 2**63 - 1  # bytes; what "none" means for a limit


class Treatment(StrEnum):
    """What follows from a finding."""

    ALLOW = "allow"
    ASK = "ask"  # a person decides
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in ``[allow]``, in a group or in ``[deny]``.

    ``specifier`` is PEP 440's (empty: every version), ``reason`` why it is denied, ``group`` the group that it stands
    in. ``span`` is its place in the catalog.
    """

    name: str
    specifier: str = ""
    reason: str | None = None
    group: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)

    def covers(self, version: str) -> bool:
        """Whether ``version`` is meant. Pre-releases are like any other version here: a rule hides nothing."""
        return not self.specifier or _specifiers(self.specifier).contains(version, prereleases=True)

    def denies(self, version: str) -> bool:
        """Whether ``version`` is meant by an entry of ``[deny]``, which has no gap beside its bounds: to PEP 440 alone
        2.32rc1 is not ``<2.32`` and 1.0.post1 not ``>1.0``, so that whoever wanted the denied code could ask for that.

        A version that PEP 440 does not know cannot be compared, and is meant.
        """
        return not self.specifier or _reaches(self.specifier, version)

    def __str__(self) -> str:
        return f"{self.name}{self.specifier}"


@lru_cache(maxsize=4096)
def _specifiers(text: str) -> SpecifierSet:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(text)


@lru_cache(maxsize=4096)
def _reaches(specifier: str, version: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        found = Version(version)
    except InvalidVersion:
        return True
    bounds = {"<": lambda limit: found < limit, ">": lambda limit: found > limit}
    return all(
        part.contains(version, prereleases=True)
        or (part.operator in bounds and bounds[part.operator](Version(part.version)))
        for part in _specifiers(specifier)
    )


@dataclass(frozen=True, slots=True)
class Rules:
    """The tables ``allow``, ``deny``, ``limits``, ``licences`` and ``vulnerabilities``, of the whole catalog or of a
    ``[[session]]``. None: nothing is said. Sizes in bytes.

    ``groups`` are the names of the groups that are allowed. ``ignored`` are ids of vulnerabilities that do not count.
    """

    allow: tuple[Entry, ...] = ()
    groups: tuple[str, ...] = ()
    dependencies: bool | None = None
    unlisted: Treatment | None = None
    deny: tuple[Entry, ...] = ()
    max_wheel_size: int | None = None
    max_closure_size: int | None = None
    minimum_age: timedelta | None = None
    unknown_age: Treatment | None = None
    allowed_licences: tuple[str, ...] = ()
    denied_licences: tuple[str, ...] = ()
    unlisted_licence: Treatment | None = None
    unknown_licence: Treatment | None = None
    known_vulnerability: Treatment | None = None
    ignored: tuple[str, ...] = ()

    def under(self, other: Rules) -> Rules:
        """These rules with ``other`` laid over them: lists add up, a value replaces."""
        merged: dict[str, Any] = {}
        for item in fields(self):
            mine, theirs = getattr(self, item.name), getattr(other, item.name)
            if isinstance(mine, tuple):
                merged[item.name] = mine + tuple(entry for entry in theirs if entry not in mine)
            else:
                merged[item.name] = mine if theirs is None else theirs
        return Rules(**merged)

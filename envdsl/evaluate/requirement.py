"""PEP 508 requirements and names of wheels, parsed by ``packaging`` once for each distinct text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

PACKAGE_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """``text`` is the normalised form; requirements that mean the same have equal ``identity``."""

    text: str
    name: str
    extras: tuple[str, ...]
    url: bool
    identity: tuple[object, ...]


@lru_cache(maxsize=20_000)
def parse_requirement(text: str) -> Parsed | str:
    """The parsed requirement, or what is wrong with it in a few words."""
    from packaging.requirements import InvalidRequirement, Requirement

    if len(text) > _LONGEST:
        return f"it is longer than {_LONGEST:,} characters"
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        # packaging draws the text and a marker below it; the faces show the place themselves.
        reason = str(error).partition("\n")[0]
        return reason[:1].lower() + reason[1:]
    extras = tuple(sorted(canonical_name(extra) for extra in requirement.extras))
    identity = (canonical_name(requirement.name), extras, requirement.specifier, str(requirement.marker or ""))
    return Parsed(str(requirement), requirement.name, extras, requirement.url is not None, identity)


@lru_cache(maxsize=20_000)
def canonical_name(name: str) -> str:
    from packaging.utils import canonicalize_name

    return canonicalize_name(name)


def check_wheel_name(name: str) -> str | None:
    """What is wrong with the name of a wheel file, or None."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        parse_wheel_filename(name)
    except InvalidWheelFilename as error:
        return str(error)
    return None

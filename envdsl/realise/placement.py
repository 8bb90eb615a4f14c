"""Where the files of a wheel go: the schemes of the wheel specification, mapped to an output of the store.

purelib, platlib   site-packages/          scripts   bin/ (executable; ``#!python`` rewritten)
headers            include/<name>/         data      the output itself (share/, etc/, ...)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from envdsl.realise.intake import Intake, check_not_interpreter, check_script_name
from envdsl.realise.refusal import refusal
from envdsl.realise.zipreader import Member

_SITE_PACKAGES = re.compile(
    r"(?:lib(?:32|64)?/)?(?:(?:python|pypy)[0-9.]*t?/)?(?:site|dist)-packages(?:/|$)|lib/python[0-9.]*(?:/|$)",
    re.IGNORECASE,
)
_OURS = frozenset({"layer.json", "pyvenv.cfg", "startup"})
# Ours to write: a wheel that brings an INSTALLER tells of an installation that never was.
GENERATED = ("RECORD", "INSTALLER")
_OTHER_DIST_INFO = re.compile(r"site-packages/[^/]*\.dist-info", re.IGNORECASE)
_SCHEMES = ("purelib", "platlib", "headers", "scripts", "data")


class Placed(NamedTuple):
    """A member and its path in the output."""

    member: Member
    path: str
    executable: bool
    script: bool


def place(intake: Intake) -> list[Placed]:
    """Every member's place, but RECORD's (written anew) and those in ``__pycache__`` (made here, never taken over).

    Raises EnvdslError ``intake-…`` for a scheme that does not exist, a data file that would land in site-packages or
    over the interpreter, and two members with one place.
    """
    placed = list(_place_all(intake))
    info = f"site-packages/{intake.dist_info}"
    taken = {f"bin/{point.name}": f"the entry point {point.name}" for point in intake.entry_points}
    taken |= {f"{info}/{name}": f"the new {name}" for name in GENERATED}
    directories = {"", "site-packages", info}
    for member, path, _, _ in placed:
        other = taken.setdefault(path, member.name)
        if other is not member.name:
            raise refusal(intake.filename, "place-twice", f"and {other} both go to {path}", member=member.name)
        directory = path.rpartition("/")[0]
        while directory not in directories:
            directories.add(directory)
            if _OTHER_DIST_INFO.fullmatch(directory):
                reason = f"is metadata of a second distribution, besides {intake.dist_info}"
                raise refusal(intake.filename, "dist-info-ambiguous", reason, member=member.name)
            directory = directory.rpartition("/")[0]
    if both := sorted(directories & taken.keys()):
        reason = f"and others make {both[0]} both a file and a directory"
        raise refusal(intake.filename, "place-twice", reason, member=taken[both[0]])
    return placed


def _place_all(intake: Intake) -> Iterable[Placed]:
    generated = {f"{intake.dist_info}/{name}" for name in GENERATED}
    prefix = f"{intake.data_directory}/" if intake.data_directory else None
    for member in intake.members:
        name = member.name
        if name in generated or "/__pycache__/" in f"/{name}":
            continue
        if prefix is None or not name.startswith(prefix):
            yield Placed(member, f"site-packages/{name}", member.executable, False)
        else:
            yield _place_data(member, name[len(prefix) :], intake)


def _place_data(member: Member, name: str, intake: Intake) -> Placed:
    scheme, _, path = name.partition("/")
    if scheme not in _SCHEMES or not path:
        schemes = ", ".join(_SCHEMES)
        raise refusal(
            intake.filename, "scheme", f"is in no scheme of the data directory ({schemes})", member=member.name
        )
    match scheme:
        case "purelib" | "platlib":
            return Placed(member, f"site-packages/{path}", member.executable, False)
        case "headers":
            return Placed(member, f"include/{intake.name}/{path}", member.executable, False)
        case "scripts":
            check_script_name(path, intake.filename)
            return Placed(member, f"bin/{path}", True, True)
    first, _, rest = path.partition("/")
    if _SITE_PACKAGES.match(path):
        raise refusal(intake.filename, "data-in-site-packages", "is a data file in site-packages", member=member.name)
    if first in _OURS:
        raise refusal(
            intake.filename, "data-place", f"is a data file at {path!r}, which is envdsl's", member=member.name
        )
    if first == "bin":
        check_not_interpreter(rest, intake.filename)
    return Placed(member, path, member.executable, False)

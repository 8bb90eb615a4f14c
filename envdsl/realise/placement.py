"""Where the files of a wheel go: the schemes of the wheel specification, mapped to an output of the store.

purelib, platlib   site-packages/          scripts   bin/ (executable; ``#!python`` rewritten)
headers            include/<name>/         data      the output itself (share/, etc/, ...)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from envdsl.realise.intake import Intake, check_script_name
from envdsl.realise.refusal import refusal
from envdsl.realise.zipreader import Member

_SITE_PACKAGES = re.compile(
    r"(?:lib(?:32|64)?/(?:python|pypy)[0-9.]*t?/)?(?:site|dist)-packages(?:/|$)|lib/python[0-9.]*(?:/|$)", re.IGNORECASE
)
_OURS = frozenset({"layer.json", "pyvenv.cfg", "startup"})
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
    taken = {f"bin/{point.name}": f"the entry point {point.name}" for point in intake.entry_points}
    for member, path, _, _ in placed:
        other = taken.setdefault(path, member.name)
        if other is not member.name:
            raise refusal(intake.filename, "place-twice", f"and {other} both go to {path}", member=member.name)
    return placed


def _place_all(intake: Intake) -> Iterable[Placed]:
    record = f"{intake.dist_info}/RECORD"
    # Ours to write; a wheel that brings one tells of an installation that never was.
    installer = f"{intake.dist_info}/INSTALLER"
    prefix = f"{intake.data_directory}/" if intake.data_directory else None
    for member in intake.members:
        name = member.name
        if name in (record, installer) or "/__pycache__/" in f"/{name}":
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
        check_script_name(rest, intake.filename)
    return Placed(member, path, member.executable, False)

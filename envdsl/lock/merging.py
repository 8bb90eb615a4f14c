"""A three-way merge of locks, package by package, for git. Pure.

What git merges line by line is right where two branches touch different packages, and a conflict wherever they touch
neighbours: both digests at the top, always. Here a package that one side changed is taken from that side; of one that
both changed, the newer version. No resolver has seen the outcome together, so it says so: it reads as
``lock-inconsistent`` until ``envdsl lock`` has been run, which keeps these pins as far as they fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from envdsl.lock.lock import Lock, LockedPackage
from envdsl.lock.pylock import render

_PINS_DIGEST = re.compile(r'^pins-digest = "[0-9a-f]+"$', re.MULTILINE)
_UNRESOLVED = "0" * 64


@dataclass(frozen=True, slots=True)
class Merged:
    """``text`` is the file's. ``conflicts`` name packages that both sides changed, each with what was taken."""

    text: str
    conflicts: tuple[str, ...]


def merge(base: Lock | None, ours: Lock, theirs: Lock) -> Merged:
    """Merge ``theirs`` into ``ours``; ``base`` is what both come from, None where there was none."""
    conflicts: list[str] = []
    packages = tuple(_packages(base, ours, theirs, conflicts))
    # What was asked for is the layer file's to say; of two sides that changed it, either is wrong.
    asked = theirs if base is not None and ours.inputs == base.inputs else ours
    text = render(replace(asked, packages=packages))
    return Merged(_PINS_DIGEST.sub(f'pins-digest = "{_UNRESOLVED}"', text, count=1), tuple(conflicts))


def _packages(base: Lock | None, ours: Lock, theirs: Lock, conflicts: list[str]) -> Iterator[LockedPackage]:
    old, one, other = (
        {package.name: package for package in lock.packages} if lock else {} for lock in (base, ours, theirs)
    )
    for name in sorted(one.keys() | other.keys()):
        before, mine, yours = old.get(name), one.get(name), other.get(name)
        if mine == yours or yours == before:
            chosen = mine
        elif mine == before:
            chosen = yours
        else:
            chosen = _newer(mine, yours)
            conflicts.append(f"{name}: {_version(mine)} here, {_version(yours)} there; took {_version(chosen)}")
        if chosen is not None:
            yield chosen


def _newer(mine: LockedPackage | None, yours: LockedPackage | None) -> LockedPackage | None:
    from packaging.version import Version

    if mine is None or yours is None:
        return mine or yours  # a package too many is dropped by the next `envdsl lock`
    return yours if Version(yours.version) > Version(mine.version) else mine


def _version(package: LockedPackage | None) -> str:
    return package.version if package is not None else "not"

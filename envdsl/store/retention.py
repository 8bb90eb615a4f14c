"""Which garbage goes when not all of it has to: the longest unused first, and whole.

A path was *used* when it was registered, held by a lease (a build, a new session), a root by name (until it was one
no more), or found alive by gc; and whenever what references it was. So a part is never older than the garbage that
stands on it, and goes after it: what stays is whole, and hard links go before the file that they lead to, whose bytes
come back with the last of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from envdsl.store.census import Census
from envdsl.store.roots import MISSING_AGE
from envdsl.store.store import StorePath


@dataclass(frozen=True, slots=True)
class Policy:
    """What of the garbage goes: everything, unless something is said.

    ``free``: no more than is needed to free that many bytes of disk. ``unused_since``: only what was not used since
    then (seconds since 1970). ``keep_last``: the last so many layers that a project had under one name are no garbage.
    ``missing_age``: after so many seconds the layers of a project whose directory is missing are.
    """

    free: int | None = None
    unused_since: int | None = None
    keep_last: int = 0
    missing_age: float = MISSING_AGE

    @property
    def everything(self) -> bool:
        return self.free is None and self.unused_since is None


def in_order(census: Census, dead: Iterable[StorePath], ended: Mapping[str, int]) -> Iterator[tuple[StorePath, int]]:
    """The paths ``dead`` with the time of their last use: longest unused first, each after all that references it.

    ``dead`` has to be closed: what references one of them is one of them. ``ended`` is what
    :func:`envdsl.store.roots.ended` returns. Linear, but for the sorting (Kahn 1962, with a heap).
    """
    paths = {path.key: path for path in dead}
    used = {key: max(path.used, ended.get(key, 0), ended.get(path.path, 0)) for key, path in paths.items()}
    waiting = {key: len(referrers) for key, referrers in census.referrers(used).items()}
    ready = [(when, paths[key].path, key) for key, when in used.items() if not waiting.get(key)]
    heapq.heapify(ready)
    while ready:
        when, _, key = heapq.heappop(ready)
        yield paths[key], when
        for reference in census.references(key):
            if reference in used:
                used[reference] = max(used[reference], when)
                waiting[reference] -= 1
                if not waiting[reference]:
                    heapq.heappush(ready, (used[reference], paths[reference].path, reference))

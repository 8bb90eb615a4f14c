"""Token buckets, one a key. Used by one thread: the event loop's."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable

from envdsl.web.settings import Rate

_MOST = 10_000  # keys; the longest unused one is forgotten, which at worst gives it a full bucket again


class Buckets:
    """How much each key may still do. ``clock`` gives seconds that never go back."""

    def __init__(self, rate: Rate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._levels: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()  # key -> level, when

    def wait(self, key: Hashable) -> int:
        """Whole seconds until ``key`` may take one; 0 for now. Takes nothing."""
        level = self._level(key)
        return 0 if level >= 1 else max(1, math.ceil((1 - level) / self._rate.per_second))

    def take(self, key: Hashable) -> int:
        """Take one if there is one (0), else say for how many seconds to wait."""
        level = self._level(key)
        if level < 1:
            return self.wait(key)
        self._levels[key] = (level - 1, self._clock())
        self._levels.move_to_end(key)
        while len(self._levels) > _MOST:
            self._levels.popitem(last=False)
        return 0

    def _level(self, key: Hashable) -> float:
        now = self._clock()
        level, then = self._levels.get(key, (float(self._rate.burst), now))
        return min(self._rate.burst, level + (now - then) * self._rate.per_second)

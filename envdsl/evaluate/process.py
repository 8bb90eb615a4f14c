"""What an evaluation asks of the Python process that it runs in."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.machine import too_deep

# Python frames that one unit of depth takes at most in ordinary code; beyond it Python's own RecursionError
# is the bound, and reported in the same way.
_FRAMES = 24

_lock = threading.Lock()
_running = 0
_before = (0, False)  # the recursion limit and whether the collector ran, before the first of those running


@contextmanager
def evaluating(limits: Limits) -> Iterator[None]:
    """Let Python recurse as deep as ``limits`` allow, and turn what it cannot into an EvaluationError.

    Meanwhile the cyclic garbage collector rests: an evaluation makes many small objects that live to its end,
    which it would visit again and again, in time that grows faster than the project does; ``limits`` bound
    what can be left lying around. Both settings are the whole process's, so the first of several evaluations in
    threads changes them, and the last one puts them back.
    """
    global _running, _before
    with _lock:
        if not _running:
            _before = sys.getrecursionlimit(), gc.isenabled()
        _running += 1
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 2_000 + limits.depth * _FRAMES))
        gc.disable()
    try:
        yield
    except RecursionError:
        raise too_deep(limits) from None
    except MemoryError:
        raise EvaluationError("eval-too-large", "the evaluation needs more memory than there is") from None
    finally:
        with _lock:
            _running -= 1
            if not _running:
                limit, collecting = _before
                sys.setrecursionlimit(limit)
                if collecting:
                    gc.enable()

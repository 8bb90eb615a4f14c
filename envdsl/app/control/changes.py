"""Who waits for a change in this process hears of it at once; the database tells the others, who look again.

Processes that belong together (a service and its workers) pass on to each other what they tell (:func:`pass_on`).

A subject is the id of a request, or :data:`WORK`: there may be something for a worker to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WORK = "work"

_lock = threading.Lock()
_waiting: dict[str, set[threading.Event]] = {}
_listeners: list[Callable[[tuple[str, ...]], None]] = []


@contextmanager
def watching(subject: str) -> Iterator[threading.Event]:
    """An event that :func:`tell` sets; clear it before looking at what may have changed, then wait for it."""
    event = threading.Event()
    with _lock:
        _waiting.setdefault(subject, set()).add(event)
    try:
        yield event
    finally:
        with _lock:
            events = _waiting[subject]
            events.discard(event)
            if not events:
                del _waiting[subject]


def tell(*subjects: str) -> None:
    """Something changed, and its transaction is over."""
    hear(*subjects)
    for listener in tuple(_listeners):
        listener(subjects)


def hear(*subjects: str) -> None:
    """What another process told: who waits here hears of it, and nobody else."""
    with _lock:
        for subject in subjects:
            for event in _waiting.get(subject, ()):
                event.set()


@contextmanager
def pass_on(listener: Callable[[tuple[str, ...]], None]) -> Iterator[None]:
    """In the block, ``listener`` is called with the subjects of each :func:`tell`, in the thread that tells."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)

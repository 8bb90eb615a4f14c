"""Manifests of sessions, parsed once for as long as their files are the same.

A manifest is only ever replaced by a rename, so inode, size and time of change tell whether it is still that file.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envdsl.session.manifest import Manifest
    from envdsl.store.layout import Layout

_KEPT = 512  # sessions


@dataclass(frozen=True, slots=True)
class Parsed:
    """A manifest; ``stamp`` is another one for every other file."""

    stamp: tuple[str, int, int, int]
    manifest: Manifest


_lock = threading.Lock()
_known: dict[str, Parsed] = {}


def read(layout: Layout, session: str) -> Parsed:
    """The manifest of ``session``. Raises as :func:`envdsl.session.bindings.show` does."""
    from envdsl.model.names import SESSION_NAME
    from envdsl.session import bindings

    place = layout.sessions / session / bindings.MANIFEST
    file = str(place)
    stamp = (file, 0, 0, 0)
    if SESSION_NAME.fullmatch(session) is not None:
        with suppress(OSError):  # `show` says what there is
            status = place.stat()
            stamp = (file, status.st_mtime_ns, status.st_size, status.st_ino)
    known = _known.get(file)
    if known is not None and known.stamp == stamp:
        return known
    parsed = Parsed(stamp, bindings.show(layout, session).manifest)
    with _lock:
        if len(_known) >= _KEPT:
            _known.pop(next(iter(_known)))
        _known[file] = parsed
    return parsed

"""Space that is set aside: on a full disk, gc needs some to free more.

Deleting a row writes to the database first. So a new store keeps a file of a few megabytes that gc removes before it
begins, and makes again at its end (as Nix does, ``gc-reserved-space``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from envdsl.store.layout import Layout

SIZE = 4 << 20


def fill(layout: Layout) -> None:
    """Set the space aside where it is not. On a file system without room for it there will be none."""
    with suppress(OSError):
        descriptor = os.open(layout.reserved, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < SIZE:
                os.posix_fallocate(descriptor, 0, SIZE)
        finally:
            os.close(descriptor)


@contextmanager
def released(layout: Layout) -> Iterator[None]:
    """The space is free while the block runs."""
    with suppress(OSError):
        layout.reserved.unlink()
    try:
        yield
    finally:
        fill(layout)

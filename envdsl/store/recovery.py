"""After the machine went down: which of the paths that were never flushed are on the disk as they should be.

Their rows name an earlier boot. Each has a listing, so they are compared, not forgotten: what the kernel had written
by itself stays, and so does a store that was copied to another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from envdsl.model.digest import blake3_hex, store_hash
from envdsl.store import rubbish
from envdsl.store.layout import Layout
from envdsl.store.store import Store, StorePath
from envdsl.store.verify import verify

_THREADS = 2


def find_lost(store: Store, unflushed: Sequence[StorePath]) -> set[str]:
    """The keys of those of ``unflushed`` that are not whole, or were made from one that is not.

    With them goes what would answer for them: the no-op caches, and ``current`` where it leads to one. A record in
    ``drv/`` that is torn is removed, and all these layers count as lost: linking them again writes it again.
    """
    lost = {finding.key for finding in verify(store, paths=unflushed, jobs=_THREADS).findings}
    if _remove_torn_records(store.layout):
        lost |= {path.key for path in unflushed if path.kind == "layer"}
    lost = _with_dependents(lost, unflushed, store.registry.references())
    if lost:
        rubbish.drop_caches(store.layout)
        places = {path.path for path in unflushed if path.key in lost}
        with suppress(OSError):
            if str(store.layout.current.readlink()) in places:
                store.layout.current.unlink()
    return lost


def _with_dependents(lost: set[str], unflushed: Sequence[StorePath], references: Mapping[str, str]) -> set[str]:
    """``lost`` and those of ``unflushed`` that reference any of them, directly or not."""
    found: set[str] = set()
    while lost - found:
        found |= lost
        lost = {path.key for path in unflushed if not found.isdisjoint(references.get(path.key, "").split())}
    return found


def _remove_torn_records(layout: Layout) -> bool:
    """Whether there was a derivation whose file is not what its name says."""
    torn = [
        layout.drv / name
        for name in rubbish.members(layout.drv)
        if name.endswith(".json") and store_hash(blake3_hex((layout.drv / name).read_bytes())) != name[: -len(".json")]
    ]
    for place in torn:
        place.unlink(missing_ok=True)
    return bool(torn)

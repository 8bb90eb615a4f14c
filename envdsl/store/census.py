"""Who lives: every valid path, what it references, and what roots hold it.

Alive is what a root names and, in turn, whatever a living path references: a layer keeps the unpacked trees
and wheels that a repair of it would need. Roots are

- what the caller gives (a project's locked layers, sessions),
- ``current`` and ``gcroots/*`` (:mod:`envdsl.store.roots`),
- leases of living processes, and paths registered since a collection began,
- layers whose ``layer.json`` a running sandbox has locked (bwrap's ``--lock-file``),
- interpreters, which are removed by name only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from envdsl.store.layout import Layout
from envdsl.store.locks import is_locked_by_sandbox
from envdsl.store.process import leased_keys
from envdsl.store.roots import MISSING_AGE, Root, written
from envdsl.store.store import Store

Given: TypeAlias = Iterable[str | Root] | Callable[[], Iterable[str | Root]]


class Census:
    """The valid paths by key, and their references, as they are when it is made.

    Plain strings, and as little as possible done for each of them in Python: there may be a hundred thousand.
    """

    def __init__(self, store: Store) -> None:
        self.layout = store.layout
        self.paths = store.registry.places()
        self._references = store.registry.references()

    def references(self, key: str) -> list[str]:
        """The valid paths that ``key`` references. What the store never had is left out: a layer can arrive
        without its parts."""
        return [reference for reference in self._references.get(key, "").split() if reference in self.paths]

    def closure(self, keys: Iterable[str]) -> set[str]:
        """``keys`` and all that they reference, however indirectly; of valid paths."""
        found: set[str] = set()
        next_ones = set(keys)
        while next_ones := (next_ones - found) & self.paths.keys():
            found |= next_ones
            next_ones = set(" ".join([self._references.get(key, "") for key in next_ones]).split())
        return found

    def referrers(self, among: Iterable[str]) -> dict[str, list[str]]:
        """By key, who of ``among`` references it."""
        found: dict[str, list[str]] = {}
        for key in among:
            for reference in self.references(key):
                found.setdefault(reference, []).append(key)
        return found

    def dependents(self, keys: Iterable[str]) -> set[str]:
        """``keys`` and all that references them, however indirectly."""
        referrers = self.referrers(self.paths)
        found: set[str] = set()
        pending = list(keys)
        while pending:
            key = pending.pop()
            if key not in found:
                found.add(key)
                pending += referrers.get(key, ())
        return found

    def resolve(self, targets: Iterable[Root]) -> list[Root]:
        """The roots with keys for targets; those that lead to no valid path are left out."""
        by_path: dict[str, str] | None = None
        found = []
        for root in targets:
            if root.target in self.paths:
                found.append(root)
            elif path := self.layout.store_path_of(root.target):
                by_path = by_path or dict(zip(self.paths.values(), self.paths.keys(), strict=True))
                if path in by_path:
                    found.append(Root(root.name, by_path[path]))
        return found


def in_sandbox(layout: Layout, path: str) -> bool:
    """Whether a running sandbox holds the layer at ``path``."""
    return is_locked_by_sandbox(layout.absolute(path) / "layer.json")


def roots(
    store: Store, census: Census, given: Given, *, keep_last: int = 0, missing_age: float = MISSING_AGE
) -> list[Root]:
    """All roots but sandboxes, of which :mod:`envdsl.store.replaced` knows. To be called with the gate held alone.

    Leases come first: whoever makes a root (a session, a list of a project's layers) holds one until it is there, so
    what is not leased any more is a root by then.
    """
    found = [Root("a running build or command", key) for key in leased_keys(store.layout.tmp) if key in census.paths]
    found += census.resolve(written(store.layout, keep_last=keep_last, missing_age=missing_age))
    named = given() if callable(given) else given
    found += census.resolve(root if isinstance(root, Root) else Root("given", root) for root in named)
    found += [Root("an interpreter", key) for key, path in census.paths.items() if path.startswith("python/")]
    return found

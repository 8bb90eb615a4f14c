"""Garbage collection: what no root needs goes, while builds and sandboxes run.

What lives is :mod:`envdsl.store.census`'s to say, which part of the rest goes :mod:`envdsl.store.retention`'s.

The decision and its execution are one step for everybody else: with the gate held alone, the no-op caches are
dropped, then the rows are deleted (on disk before any file goes), then the paths are renamed away. The files
are deleted after that, at leisure. Killed at any point, this leaves rubbish without a row for the next run.

Where not all garbage goes, what each path would free is measured first, without the gate; under it, only what was
chosen then and is garbage still goes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from envdsl.reporter import Reporter
from envdsl.store import replaced, reserve, rubbish
from envdsl.store.census import Census, Given, roots
from envdsl.store.failures import failures
from envdsl.store.layout import Layout
from envdsl.store.locks import remove_stale_locks
from envdsl.store.retention import Policy, in_order
from envdsl.store.roots import ended
from envdsl.store.store import Store, StorePath
from envdsl.store.tree import Account, disk_usage, move, remove_tree

_USED_RESOLUTION = 24 * 3600  # seconds


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed, or would remove (``dry_run``).

    ``paths`` were valid; ``rubbish`` are paths in the store without a row and what dead processes left, relative to
    the store. ``freed`` is in bytes of disk: a file that another path still has a hard link to frees nothing.
    ``alive`` counts the valid paths that roots hold, ``kept`` the garbage that the policy left.
    """

    paths: tuple[StorePath, ...]
    rubbish: tuple[str, ...]
    freed: int
    alive: int
    dry_run: bool
    kept: int = 0


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What is to be done, in keys: the garbage is ``dead``, and goes where it is ``doomed``. ``places`` is all that
    goes from the disk."""

    census: Census
    alive: set[str]
    dead: set[str]
    doomed: set[str]
    rubbish: list[Path]

    @property
    def places(self) -> Iterator[Path]:
        layout, paths = self.census.layout, self.census.paths
        yield from self.rubbish
        yield from rubbish.records(layout, ((key, paths[key]) for key in self.doomed))
        yield from map(layout.absolute, sorted(paths[key] for key in self.doomed))

    def collected(self, paths: Sequence[StorePath], freed: int, *, dry_run: bool) -> Collected:
        root = self.census.layout.root
        names = sorted(place.relative_to(root).as_posix() for place in self.rubbish)
        kept = len(self.dead) - len(self.doomed)
        return Collected(tuple(paths), tuple(names), freed, len(self.alive), dry_run, kept)


_EVERYTHING = Policy()


def collect(
    store: Store,
    given: Given,
    *,
    policy: Policy = _EVERYTHING,
    dry_run: bool = False,
    reporter: Reporter | None = None,
) -> Collected:
    """Remove what is not alive, or what of it ``policy`` names. ``given`` are roots: keys or store paths (or paths
    below one); unknown ones are ignored.

    Roots that may appear at any time (a session that is being created under a lease) are given as a function:
    it is called when no lease can end unseen and nothing can be registered, and must not use the store itself.
    Raises EnvdslError ``store-permission``, ``store-io``.
    """
    # Even opening the database takes space.
    with reserve.released(store.layout) if not dry_run else nullcontext():
        return _Collection(store, given, policy, reporter or Reporter()).run(dry_run)


class _Collection:
    def __init__(self, store: Store, given: Given, policy: Policy, reporter: Reporter) -> None:
        self._store = store
        self._given = given
        self._policy = policy
        self._reporter = reporter
        self._newest = store.registry.newest()

    def run(self, dry_run: bool) -> Collected:
        store, layout = self._store, self._store.layout
        with failures("collect garbage", layout.root):
            chosen: set[str] | None = None
            if not self._policy.everything:
                with store.gate(shared=False):
                    verdict = self._judge(set())
                chosen = self._choose(verdict)
            if dry_run:
                with store.gate(shared=False):
                    verdict = self._judge(chosen)
                return verdict.collected(store.registry.named(verdict.doomed), disk_usage(verdict.places), dry_run=True)
            garbage = store.temporary("garbage")
            with store.gate(shared=False):
                verdict = self._judge(chosen)
                doomed = store.registry.named(verdict.doomed)
                if doomed:
                    rubbish.drop_caches(layout)
                    store.registry.delete(verdict.doomed)
                moved = _move(layout, verdict.places, garbage)
                remove_stale_locks(layout.tmp / "locks")
                self._note_use(verdict)
            freed = self._delete(garbage, moved)
        return verdict.collected(doomed, freed, dry_run=False)

    def _judge(self, chosen: set[str] | None) -> _Verdict:
        """Who lives now, and what goes: all else, or those of it that are ``chosen``. With the gate held alone."""
        store = self._store
        census = Census(store)
        policy = self._policy
        found = roots(store, census, self._given, keep_last=policy.keep_last, missing_age=policy.missing_age)
        alive = census.closure({root.target for root in found} | store.registry.newer_than(self._newest))
        dead = census.paths.keys() - alive
        if dead:
            bound = census.closure(root.target for root in replaced.sandboxes(store, census, dead))
            alive |= bound
            dead -= bound
        doomed = dead if chosen is None else dead & chosen
        return _Verdict(census, alive, dead, doomed, rubbish.find(store, census))

    def _choose(self, verdict: _Verdict) -> set[str]:
        """What of the garbage the policy lets go."""
        layout, policy = self._store.layout, self._policy
        account = Account()
        chosen: set[str] = set()
        with self._reporter.task("Measuring", total=len(verdict.dead), unit="paths") as task:
            freed = sum(account.remove(place) for place in verdict.rubbish) if policy.free is not None else 0
            dead = self._store.registry.named(verdict.dead)
            for path, used in in_order(verdict.census, dead, ended(layout)):
                if policy.unused_since is not None and used > policy.unused_since:
                    break
                if policy.free is not None:
                    if freed >= policy.free:
                        break
                    freed += account.remove(layout.absolute(path.path))
                chosen.add(path.key)
                task.advance()
        return chosen

    def _note_use(self, verdict: _Verdict) -> None:
        now = int(time.time())
        self._store.registry.touch(self._store.registry.unused_since(now - _USED_RESOLUTION) & verdict.alive, now)

    def _delete(self, garbage: Path, count: int) -> int:
        freed = 0
        with self._reporter.task("Deleting", total=count, unit="paths") as task:
            for number in range(count):
                freed += remove_tree(garbage / str(number))
                task.advance()
        remove_tree(garbage)
        return freed


def _move(layout: Layout, places: Iterator[Path], garbage: Path) -> int:
    """Move ``places`` to ``garbage/0``, ``garbage/1``…; how many there were."""
    count = 0
    for place in places:
        try:
            move(place, garbage / str(count))
        except FileNotFoundError:  # a process that ends removes its own directory
            continue
        if place.parent.parent == layout.wheelhouse:
            rubbish.remove_if_empty(place.parent)
        count += 1
    return count

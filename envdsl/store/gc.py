"""Garbage collection: what no root needs goes, while builds and sandboxes run.

Alive is what a root names and, in turn, whatever a living path references: a layer keeps the unpacked trees
and wheels that a repair of it would need. Roots are

- what the caller gives (the project's locked layers, its sessions),
- ``current`` and ``gcroots/*``,
- leases of living processes, and paths registered since the collection began,
- layers whose ``layer.json`` a running sandbox has locked (bwrap's ``--lock-file``),
- interpreters, which are removed by name only.

The decision and its execution are one step for everybody else: with the gate held alone, the no-op caches are
dropped, then the rows are deleted (on disk before any file goes), then the paths are renamed away. The files
are deleted after that, at leisure. Killed at any point, this leaves rubbish without a row for the next run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from envdsl.model.digest import store_hash
from envdsl.reporter import Reporter
from envdsl.store.failures import failures
from envdsl.store.layout import Layout
from envdsl.store.locks import is_locked_by_sandbox, remove_stale_locks
from envdsl.store.process import dead_directories, leased_keys
from envdsl.store.store import Store, StorePath
from envdsl.store.tree import disk_usage, move, remove_tree


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed, or would remove (``dry_run``).

    ``paths`` were valid; ``rubbish`` are paths in the store without a row and what dead processes left in
    ``tmp/``, relative to the store. ``freed`` is in bytes of disk: a file that another path still has a hard
    link to frees nothing. ``alive`` counts the valid paths that stay.
    """

    paths: tuple[StorePath, ...]
    rubbish: tuple[str, ...]
    freed: int
    alive: int
    dry_run: bool


Roots: TypeAlias = Iterable[str] | Callable[[], Iterable[str]]


def collect(store: Store, roots: Roots, *, dry_run: bool = False, reporter: Reporter | None = None) -> Collected:
    """Remove what is not alive. ``roots`` are keys or store paths (or paths below one); unknown ones are ignored.

    Roots that may appear at any time (a session that is being created under a lease) are given as a function:
    it is called when no lease can end unseen and nothing can be registered, and must not use the store itself.
    Raises EnvdslError ``store-permission``, ``store-io``.
    """
    reporter = reporter or Reporter()
    layout = store.layout
    newest = store.registry.newest()
    with failures("collect garbage", layout.root):
        if dry_run:
            with store.gate(shared=False):
                alive, dead = _sorted_out(store, roots, newest)
                rubbish = _rubbish(layout, alive)
            freed = disk_usage(rubbish)
        else:
            garbage = store.temporary("garbage")
            with store.gate(shared=False):
                alive, dead = _sorted_out(store, roots, newest)
                if dead:
                    _drop_caches(layout)
                    store.registry.delete(path.key for path in dead)
                    _forget(layout, dead)
                rubbish = _rubbish(layout, alive)
                moved = list(_moved(rubbish, garbage))
                remove_stale_locks(layout.tmp / "locks")
            freed = _deleted(moved, reporter)
            remove_tree(garbage)
    names = {place.relative_to(layout.root).as_posix() for place in rubbish} - {path.path for path in dead}
    return Collected(tuple(dead), tuple(sorted(names)), freed, len(alive), dry_run)


def _sorted_out(store: Store, given: Roots, newest: int) -> tuple[set[str], list[StorePath]]:
    """The store paths that live, and the dead paths sorted by path."""
    paths = store.paths()
    by_key = {path.key: path for path in paths}
    by_path = {path.path: path.key for path in paths}
    roots = leased_keys(store.layout.tmp) | store.registry.newer_than(newest)
    roots.update(path.key for path in paths if path.kind == "python")
    for root in [*(given() if callable(given) else given), *_links(store.layout)]:
        key = root if root in by_key else by_path.get(store.layout.store_path_of(root) or "")
        if key is not None:
            roots.add(key)
    alive = _closure(roots, by_key)
    bound = {
        path.key
        for path in paths
        if path.kind == "layer"
        and path.key not in alive
        and is_locked_by_sandbox(store.layout.absolute(path.path) / "layer.json")
    }
    alive |= _closure(bound, by_key)
    return {by_key[key].path for key in alive}, [path for path in paths if path.key not in alive]


def _closure(roots: Iterable[str], by_key: dict[str, StorePath]) -> set[str]:
    closure: set[str] = set()
    pending = [key for key in roots if key in by_key]
    while pending:
        key = pending.pop()
        if key not in closure:
            closure.add(key)
            # A reference may name what this store never had: a layer can arrive without its parts.
            pending += [reference for reference in by_key[key].references if reference in by_key]
    return closure


def _links(layout: Layout) -> Iterator[str]:
    """What ``current`` and ``gcroots`` name: a link leads into the store, directly or by way of links outside
    of it; a file holds one key or store path a line."""
    root = layout.root.resolve()
    for place in [layout.current, *sorted(layout.gcroots.glob("*"))]:
        if place.is_symlink():
            target = Path(os.path.realpath(place))
            if target.is_relative_to(root):
                yield target.relative_to(root).as_posix()
        elif place.is_file():
            yield from place.read_text("utf-8", "replace").split()


def _rubbish(layout: Layout, alive: set[str]) -> list[Path]:
    """What stands in the place of a store path and is none that lives, and what dead processes left."""
    found = dead_directories(layout.tmp)
    for name, depth in layout.OUTPUTS.items():
        if name == "python":  # uv keeps its own files there
            continue
        places = [name]
        for _ in range(depth - 1):
            places = [f"{place}/{member}" for place in places for member in _members(layout.absolute(place))]
        found += [layout.absolute(place) for place in places if place not in alive]
    return found


def _members(directory: Path) -> list[str]:
    try:
        return sorted(member.name for member in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _moved(rubbish: list[Path], garbage: Path) -> Iterator[Path]:
    for number, place in enumerate(rubbish):
        destination = garbage / str(number)
        try:
            move(place, destination)
        except FileNotFoundError:  # a process that ends removes its own directory
            continue
        if place.parent.parent.name == "wheelhouse" and not _members(place.parent):
            place.parent.rmdir()
        yield destination


def _deleted(places: list[Path], reporter: Reporter) -> int:
    freed = 0
    with reporter.task("Deleting", total=len(places), unit="paths") as task:
        for place in places:
            freed += remove_tree(place)
            task.advance()
    return freed


def _drop_caches(layout: Layout) -> None:
    """The caches of "nothing to do" answer without asking the database: none may outlive what it promises."""
    for member in _members(layout.cache):
        remove_tree(layout.cache / member)


def _forget(layout: Layout, dead: list[StorePath]) -> None:
    """Remove what is written beside a path: its derivation, a layer's lock."""
    for path in dead:
        (layout.drv / f"{store_hash(path.key)}.json").unlink(missing_ok=True)
        if path.kind == "layer":
            (layout.locks / f"{Path(path.path).name}.toml").unlink(missing_ok=True)

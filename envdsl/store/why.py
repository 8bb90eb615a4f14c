"""Why a path lives: the roots that hold it, each with the shortest chain of references that leads to it."""

from __future__ import annotations

import os
from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.digest import store_hash
from envdsl.store.census import Census, Given, roots
from envdsl.store.failures import failures
from envdsl.store.replaced import sandboxes
from envdsl.store.store import Store

_SHORTEST = 4  # characters of a key or id that may stand for it


@dataclass(frozen=True, slots=True, order=True)
class Chain:
    """``root`` says what the root is; ``paths`` are store paths, from the one that it names to the one in question,
    each referencing the next."""

    root: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why the valid path ``path`` lives: shortest chains first, one for each root. Without any it is garbage."""

    path: str
    key: str
    chains: tuple[Chain, ...]


def why_alive(store: Store, wanted: str, given: Given) -> Reasons:
    """Who holds ``wanted``: a key, a store path, a place on disk in one, or the beginning of a key or of the hash in a
    store path. ``given`` are roots as for gc, by name.

    Raises EnvdslError ``store-unknown-path`` for what is no valid path.
    """
    gate = store.gate(shared=False) if store.writable else nullcontext()
    with failures("look for roots", store.layout.root), gate:
        census = Census(store)
        key = _find(store, census, wanted)
        found = roots(store, census, given)
        towards = _towards(census, key)
        found += sandboxes(store, census, towards)
    chains = {
        Chain(root.name, tuple(census.paths[item] for item in _follow(towards, root.target)))
        for root in found
        if root.target in towards
    }
    return Reasons(census.paths[key], key, tuple(sorted(chains, key=lambda chain: (len(chain.paths), chain))))


def _find(store: Store, census: Census, wanted: str) -> str:
    if wanted in census.paths:
        return wanted
    layout, root = store.layout, store.layout.root.resolve()
    place = Path(os.path.realpath(wanted))
    spellings = [wanted, *([place.relative_to(root).as_posix()] if place.is_relative_to(root) else [])]
    paths = [path for spelling in spellings if (path := layout.store_path_of(spelling)) is not None]
    for key, path in census.paths.items():
        if path in paths:
            return key
    begin = [key for key, path in census.paths.items() if _begins(key, path, wanted)]
    if len(begin) == 1:
        return begin[0]
    if begin:
        raise EnvdslError.of(
            "store-unknown-path",
            f"{len(begin)} paths of the store {layout.root} have a key or id that begins with {wanted}",
            hint="name more of it",
            exit_status=ExitStatus.USAGE,
        )
    rubbish = any(os.path.lexists(layout.absolute(path)) for path in paths)
    raise EnvdslError.of(
        "store-unknown-path",
        f"{wanted} is rubbish: it stands in the store {layout.root}, and no row makes it valid"
        if rubbish
        else f"{wanted} is no valid path of the store {layout.root}",
        hint="`envdsl gc` removes it" if rubbish else "name a store path, a place in one, a layer or a key",
        exit_status=ExitStatus.USAGE,
    )


def _begins(key: str, path: str, wanted: str) -> bool:
    if len(wanted) < _SHORTEST:
        return False
    if key.startswith(wanted) or path.partition("/")[2].startswith(wanted):
        return True
    return path.startswith(("layers/", "wheelhouse/")) and store_hash(key).startswith(wanted)


def _towards(census: Census, key: str) -> dict[str, str | None]:
    """By each key that leads to ``key``: the next on the shortest way there."""
    referrers = census.referrers(census.paths)
    towards: dict[str, str | None] = {key: None}
    pending = deque([key])
    while pending:
        item = pending.popleft()
        for referrer in referrers.get(item, ()):
            if referrer not in towards:
                towards[referrer] = item
                pending.append(referrer)
    return towards


def _follow(towards: dict[str, str | None], start: str) -> list[str]:
    chain = []
    item: str | None = start
    while item is not None:
        chain.append(item)
        item = towards[item]
    return chain

"""Shared libraries that an x layer finds in its base.

Wheels that are built against each other find each other's libraries by a path relative to themselves
(``$ORIGIN/../other.libs``), which takes for granted that both stand in one site-packages. An x layer is a tree of
its own. So it borrows: it gets hard links of those libraries of its base that the dynamic linker would look for at
the same place in it. Being the same inode as the base's, such a library is mapped once, and is one library, in a
process that loads it by both paths.

The linker's rules (ld.so(8), gABI chapter 5) are followed from every ELF file of the layer's own: the names of
DT_NEEDED are looked for in the directories of DT_RUNPATH, or without one in those of DT_RPATH and of the RPATHs of
whoever loaded the file. What is found in the layer itself is followed, what is found in the base is borrowed and
followed, what is found in neither is the system's. A library that loads others at run time (by ``dlopen``) has them
beside itself; so all libraries of a directory are borrowed once one of them is.

All of it follows from the files of the layer and its base, and both are in the layer's key.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, normpath

from envdsl.realise.dynamic import Dynamic
from envdsl.store.treehash import Entry

_SHARED = re.compile(r"[^/]+\.so(?:\.[0-9A-Za-z_.-]+)?")
_LIBRARY = re.compile(r"lib[^/]*\.so(?:\.[0-9A-Za-z_.-]+)?")
_ORIGIN = re.compile(r"\$(?:ORIGIN|\{ORIGIN\})(?=/|$)")


def is_shared(path: str) -> bool:
    """Whether a file has the name of a shared object: an extension module or a library."""
    return _SHARED.fullmatch(path[path.rfind("/") + 1 :]) is not None


def borrow(
    own: Mapping[str, Entry], base: Iterable[Entry], read: Callable[[str, bool], Dynamic | None]
) -> dict[str, Entry]:
    """The entries of ``base`` that a layer with the files ``own`` has to have as well, by path.

    ``read(path, borrowed)`` gives the dynamic section of a file of the layer's own or of the base, None for one that
    has none. It is not called where the layer or its base has no shared objects.
    """
    roots = sorted(
        path for path, entry in own.items() if entry.type == "file" and (entry.executable or is_shared(path))
    )
    if not roots:
        return {}
    below = {entry.path: entry for entry in base if entry.type == "file" and is_shared(entry.path)}
    return _Search(own, below, read).from_all(roots) if below else {}


class _Search:
    """A file is looked at again when another that loads it adds directories to look in, and never for less."""

    def __init__(
        self, own: Mapping[str, Entry], base: Mapping[str, Entry], read: Callable[[str, bool], Dynamic | None]
    ) -> None:
        self._own = own
        self._base = base
        self._read = read
        self._dynamic: dict[str, Dynamic | None] = {}
        self._inherited: dict[str, dict[str, None]] = {}
        self._borrowed: dict[str, Entry] = {}
        self._pending: deque[str] = deque()

    def from_all(self, roots: Iterable[str]) -> dict[str, Entry]:
        for path in roots:
            self._visit(path, ())
        while self._pending:
            self._follow(self._pending.popleft())
        return dict(sorted(self._borrowed.items()))

    def _visit(self, path: str, inherited: Iterable[str]) -> None:
        known = self._inherited.get(path)
        if known is None:
            self._inherited[path] = dict.fromkeys(inherited)
        else:
            before = len(known)
            known.update(dict.fromkeys(inherited))
            if len(known) == before:
                return
        self._pending.append(path)

    def _follow(self, path: str) -> None:
        if path not in self._dynamic:
            self._dynamic[path] = self._read(path, path in self._borrowed)
        dynamic = self._dynamic[path]
        if dynamic is None:
            return
        passed_on: tuple[str, ...] = ()
        if dynamic.runpath:
            directories = tuple(_resolved(dynamic.runpath, path))
        else:
            directories = passed_on = tuple(dict.fromkeys([*_resolved(dynamic.rpath, path), *self._inherited[path]]))
        for name in dynamic.needed:
            if "/" in name:
                candidates = list(_resolved([name], path))
            else:
                candidates = [f"{directory}/{name}" if directory else name for directory in directories]
            for candidate in candidates:
                if candidate in self._own:
                    self._visit(candidate, passed_on)
                    break
                if candidate in self._base:
                    self._take(candidate, passed_on)
                    break

    def _take(self, path: str, inherited: Iterable[str]) -> None:
        if path not in self._borrowed:
            directory = dirname(path)
            for other, entry in self._base.items():
                beside = dirname(other) == directory and _LIBRARY.fullmatch(other[len(directory) :].lstrip("/"))
                if (other == path or beside) and other not in self._own and other not in self._borrowed:
                    self._borrowed[other] = entry
                    self._visit(other, ())
        self._visit(path, inherited)


def _resolved(entries: Iterable[str], path: str) -> Iterator[str]:
    """Those of the linker's paths that begin at ``path``'s own directory and stay in the layer; relative to it."""
    for entry in entries:
        match = _ORIGIN.match(entry)
        if match is None or "$" in entry[match.end() :]:
            continue
        place = normpath(f"{dirname(path) or '.'}/{entry[match.end() :]}")
        if place != ".." and not place.startswith("../"):
            yield "" if place == "." else place

"""Who owns which path of a layer, and where two distributions want the same one.

Two distributions collide where they have different content at one path, or paths that differ only in case or in
Unicode normal form (which are one file on some systems, and one import too many on all). The same rules hold
between a base and the x layers on it. Identical content is no collision. Neither are the ``__init__.py`` files by
which legacy namespace packages declare themselves: each of them does what all the others do.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.store.treehash import Entry, Listing

if TYPE_CHECKING:
    import ast

MAX_REPORTED = 20
_MAX_NAMESPACE_INIT = 16 << 10
_NAMESPACE_CALLS = frozenset({"declare_namespace", "extend_path", "__import__"})


@dataclass(frozen=True)
class Owner:
    """One distribution: its name (for messages and waivers), its tree and the tree's listing.

    A base is one owner for all its distributions; ``name_of`` says which of them has a path.
    """

    name: str
    tree: Path
    listing: Listing
    name_of: Callable[[str], str] | None = None

    def named(self, path: str) -> str:
        return self.name_of(path) if self.name_of else self.name


@dataclass(frozen=True)
class Waived:
    """A collision that the layer allows; ``kept`` is the distribution whose file counts: in a layer the only one that
    is there, between a base and an x layer that of the base."""

    path: str
    kept: str
    other: str


@dataclass(frozen=True)
class Ownership:
    """``files``: every path that is no directory, with its entry and the index of its owner."""

    files: Mapping[str, tuple[Entry, int]]
    waived: tuple[Waived, ...]


def claim(owners: Sequence[Owner], waivers: Sequence[str], *, layer: str, below: Owner | None = None) -> Ownership:
    """Divide the paths of a layer among ``owners``, of whom the first that has a path keeps it.

    ``below`` owns the paths of the base. ``waivers`` are names of distributions or patterns of paths
    (``tests/*``, relative to the layer or to its site-packages). ``layer`` is the name for messages.
    Raises EnvdslError ``layer-collision`` and ``layer-collision-case`` for all collisions that are not waived.
    """
    claims = _Claims([*owners, below] if below else owners, len(owners), waivers)
    for index, owner in enumerate(claims.owners):
        for entry in owner.listing:
            claims.add(entry, index)
    if claims.found:
        raise _error(claims.found, layer)
    return Ownership(claims.files, tuple(claims.waived))


class _Claims:
    def __init__(self, owners: Sequence[Owner], own: int, waivers: Sequence[str]) -> None:
        self.owners = owners
        self.files: dict[str, tuple[Entry, int]] = {}
        self.directories: dict[str, int] = {}
        self.waived: list[Waived] = []
        self.found: list[Diagnostic] = []
        self._own = own
        self._waivers = waivers
        self._folded: dict[str, tuple[str, int]] = {}

    def add(self, entry: Entry, index: int) -> None:
        path = entry.path
        own = index < self._own
        present = self.files.get(path)
        if entry.type == "directory":
            if present is not None:
                self._collide(path, present[1], index, waivable=False)
            elif path not in self.directories:
                self._fold(path, index)
                if own:
                    self.directories[path] = index
        elif present is not None:
            if present[0] != entry and not self._both_namespace(present, entry, index):
                self._collide(path, present[1], index)
        elif path in self.directories:
            self._collide(path, self.directories[path], index, waivable=False)
        else:
            self._fold(path, index)
            if own:
                self.files[path] = (entry, index)

    def _fold(self, path: str, index: int) -> None:
        folded = path.lower() if path.isascii() else unicodedata.normalize("NFC", path.casefold())
        other, first = self._folded.setdefault(folded, (path, index))
        if other == path or first == index:
            return
        above = path.rpartition("/")[0]
        if above and not other.startswith(f"{above}/"):
            return  # the directory above is reported
        one, two = self.owners[first].named(other), self.owners[index].named(path)
        if not self._allowed(path, one, two):
            message = f"{one} has {other}, and {two} has {path}: one name on some systems"
            self.found.append(_collision("layer-collision-case", path, one, two, message, kept=one))
        else:
            self.waived.append(Waived(path, one, two))

    def _collide(self, path: str, first: int, second: int, *, waivable: bool = True) -> None:
        one, two = self.owners[first].named(path), self.owners[second].named(path)
        # A base comes before its x layers on every path on which a file is looked for.
        kept, other = (two, one) if second >= self._own else (one, two)
        if waivable and self._allowed(path, one, two):
            self.waived.append(Waived(path, kept, other))
            return
        what = "with different content" if waivable else "one as a file, the other as a directory"
        message = f"{one} and {two} both bring {path}, {what}"
        self.found.append(_collision("layer-collision", path, one, two, message, kept=kept, waivable=waivable))

    def _allowed(self, path: str, *names: str) -> bool:
        short = path.removeprefix("site-packages/")
        return any(
            waiver in names or fnmatchcase(path, waiver) or fnmatchcase(short, waiver) for waiver in self._waivers
        )

    def _both_namespace(self, present: tuple[Entry, int], entry: Entry, index: int) -> bool:
        if not entry.path.endswith("/__init__.py"):
            return False
        trees = (self.owners[present[1]].tree, self.owners[index].tree)
        return all(is_namespace_declaration(tree / entry.path) for tree in trees)


def is_namespace_declaration(path: Path) -> bool:
    """Whether an ``__init__.py`` only declares a legacy namespace package (by ``pkg_resources`` or ``pkgutil``)."""
    import ast

    if path.stat().st_size > _MAX_NAMESPACE_INIT:
        return False
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return _declares(body) and all(_is_harmless(statement) for statement in body)


def _declares(body: Sequence[ast.stmt]) -> bool:
    import ast

    return any(
        isinstance(node, ast.Call) and _called(node) in ("declare_namespace", "extend_path")
        for statement in body
        for node in ast.walk(statement)
    )


def _is_harmless(statement: ast.stmt) -> bool:
    import ast

    match statement:
        case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return True
        case (
            ast.Expr(value=ast.Call() as call) | ast.Assign(targets=[ast.Name(id="__path__")], value=ast.Call() as call)
        ):
            return _called(call) in _NAMESPACE_CALLS
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
            inner = [*body, *orelse, *final, *(step for handler in handlers for step in handler.body)]
            return all(_is_harmless(step) for step in inner)
    return False


def _called(call: ast.Call) -> str:
    import ast

    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _collision(
    code: str, path: str, one: str, two: str, message: str, *, kept: str, waivable: bool = True
) -> Diagnostic:
    short = path.removeprefix("site-packages/")
    waiver = f', or keep the file of {kept}: `allow = {{ collisions = [ "{short}" ]; }};`'
    return Diagnostic(
        code,
        message,
        hint="leave one of them out" + (waiver if waivable else ""),
        details={"path": path, "distributions": [one, two]},
    )


def _error(found: Iterable[Diagnostic], layer: str) -> EnvdslError:
    diagnostics = list(found)
    rest = len(diagnostics) - MAX_REPORTED
    if rest > 0:
        del diagnostics[MAX_REPORTED:]
        diagnostics.append(
            Diagnostic("layer-collision", f"{layer}: {rest} more collisions", hint="the first ones are listed above")
        )
    return EnvdslError(*diagnostics)

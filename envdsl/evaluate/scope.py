"""Static scopes: where each variable lives, known before anything runs.

The language has no ``with``, so every name can be resolved when a file is compiled: a frame at run time is
a list of its enclosing frame and one slot a variable, and a variable is "so many frames up, this slot".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from envdsl.evaluate.values import Value


@dataclass(frozen=True, slots=True)
class Local:
    """A variable ``depth`` frames up, at ``index`` of that frame."""

    depth: int
    index: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A name of the language itself: a builtin, ``true``, ``false``, ``null``."""

    value: Value


class Scope:
    """The names of one frame, inside ``parent``."""

    def __init__(
        self, names: Iterable[str], parent: Scope | None = None, constants: Mapping[str, Value] | None = None
    ) -> None:
        self.parent = parent
        self._constants = constants or {}
        # Index 0 of a frame is the enclosing frame.
        self._indices = {name: index for index, name in enumerate(names, start=1)}

    def lookup(self, name: str) -> Local | Constant | None:
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            index = scope._indices.get(name)
            if index is not None:
                return Local(depth, index)
            if name in scope._constants:
                return Constant(scope._constants[name])
            scope = scope.parent
            depth += 1
        return None

    def visible(self) -> Iterator[str]:
        """All names that can be used here, for "did you mean"."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope._indices
            yield from scope._constants
            scope = scope.parent

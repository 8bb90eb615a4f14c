"""Why a package is in a layer: the graph of requirements of a lock and of its base's. Pure.

Edges are the lock's, which uv wrote down when it resolved; the words of a requirement (``numpy>=1.22; …``) come from
the metadata of wheels, where those are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from envdsl.lock.lock import Lock

_MOST_PATHS = 20_000  # looked at side by side; there are exponentially many in the worst case


@dataclass(frozen=True, slots=True)
class Node:
    """A distribution at the version that the layer has. ``layer`` is the one that holds it."""

    name: str
    version: str
    layer: str


@dataclass(frozen=True, slots=True)
class Step:
    """One requirement and what it led to. ``requirement`` is its PEP 508 text, the bare name where nobody knows it."""

    requirement: str
    node: Node


Chain = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """``roots`` are what the layers ask for, by layer; ``edges`` what each distribution requires, by name."""

    nodes: Mapping[str, Node]
    roots: Mapping[str, tuple[Step, ...]]
    edges: Mapping[str, tuple[Step, ...]]

    def chains(self, name: str) -> Iterator[tuple[str, Chain]]:
        """The ways from a requirement of a layer to ``name``, with the layer; the shortest first, without cycles.

        There can be exponentially many: whoever prints them stops somewhere, and beyond some thousands none follow.
        """
        parents: dict[str, list[tuple[str, Step]]] = {}
        for parent, steps in self.edges.items():
            for step in steps:
                parents.setdefault(step.node.name, []).append((parent, step))
        asked: dict[str, list[tuple[str, Step]]] = {}
        for layer, steps in self.roots.items():
            for step in steps:
                asked.setdefault(step.node.name, []).append((layer, step))
        # Breadth first, upwards: each state is a path from some distribution down to `name`.
        pending: list[tuple[str, Chain]] = [(name, ())]
        while pending:
            following: list[tuple[str, Chain]] = []
            for top, below in pending:
                yield from ((layer, (step, *below)) for layer, step in asked.get(top, ()))
                seen = {step.node.name for step in below} | {top}
                for parent, step in parents.get(top, ()):
                    if parent not in seen:
                        following.append((parent, (step, *below)))
            pending = following[:_MOST_PATHS]

    def reachable(self, names: Iterable[str]) -> set[str]:
        """``names`` and all that they bring in."""
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found and name in self.nodes:
                found.add(name)
                pending += (step.node.name for step in self.edges.get(name, ()))
        return found


def dependency_graph(lock: Lock, base: Lock | None, requires: Mapping[str, Iterable[str]]) -> DependencyGraph:
    """The graph of a layer and of its base. ``requires`` are the requirements that each distribution's metadata has, as
    far as known, by normalised name."""
    from packaging.utils import canonicalize_name

    locks = [base, lock] if base is not None else [lock]
    nodes = {item.name: Node(item.name, item.version, part.layer) for part in locks for item in part.packages}
    roots: dict[str, tuple[Step, ...]] = {}
    for part in locks:
        recorded = part.recorded.get("packages", [])
        assert isinstance(recorded, list)
        named = [(str(text), canonicalize_name(_name(str(text)))) for text in recorded]
        roots[part.layer] = tuple(Step(text, nodes[name]) for text, name in named if name in nodes)
    edges = {
        item.name: tuple(
            Step(_words(name, requires.get(item.name, ())), nodes[name]) for name in item.dependencies if name in nodes
        )
        for part in locks
        for item in part.packages
    }
    return DependencyGraph(nodes, roots, edges)


def _name(requirement: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(requirement).name
    except InvalidRequirement:
        return requirement


def _words(name: str, requires: Iterable[str]) -> str:
    """The requirements on ``name``, without markers: that they hold here is what the edge says. One that only an extra
    has is meant where there is no other."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    plain: dict[str, None] = {}
    of_extras: dict[str, None] = {}
    for text in requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) == name:
            found = of_extras if "extra" in str(requirement.marker or "") else plain
            requirement.marker = None
            found[str(requirement)] = None
    return " or ".join(plain or of_extras) or name

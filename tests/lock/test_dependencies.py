"""Why a package is there: chains of requirements over a lock and its base."""

from __future__ import annotations

from itertools import islice

from envdsl.lock.dependencies import DependencyGraph, dependency_graph
from envdsl.lock.lock import BaseReference, Lock, LockedPackage, LockedWheel
from envdsl.model.names import LayerKind, Platform, PythonVersion

X86 = Platform.parse("manylinux_2_28_x86_64")


def lock(layer: str, asked: list[str], base: str | None = None, **packages: list[str]) -> Lock:
    made = tuple(
        LockedPackage(name, "1", ((X86, LockedWheel(f"{name}-1-py3-none-any.whl", "0" * 64, 1)),), tuple(requires))
        for name, requires in packages.items()
    )
    reference = BaseReference(base, "d") if base else None
    kind = LayerKind.X if base else LayerKind.BASE
    return Lock(layer, kind, PythonVersion.parse("3.12"), (X86,), "i", reference, made, "d", {"packages": asked})


def spelled(graph: DependencyGraph, name: str) -> list[str]:
    return [f"{layer}: " + " > ".join(step.requirement for step in chain) for layer, chain in graph.chains(name)]


def test_every_chain_across_base_and_extension_the_shortest_first() -> None:
    """Issue 5.3: every chain of requirements that brings it in, across base and x."""
    base = lock("core", ["a>=1", "c"], a=["b"], b=["c"], c=[])
    above = lock("more", ["d"], "core", d=["b", "c"])
    graph = dependency_graph(above, base, {"a": ["b<3"], "b": ["c ~= 1.0 ; python_version > '3'"]})
    assert spelled(graph, "c") == [
        "core: c",
        "more: d > c",
        "core: a>=1 > b<3 > c~=1.0",
        "more: d > b > c~=1.0",
    ]
    assert {graph.nodes[name].layer for name in "abc"} == {"core"}
    assert graph.nodes["d"].layer == "more"


def test_a_requirement_of_an_extra_is_told_only_where_there_is_no_other() -> None:
    graph = dependency_graph(
        lock("l", ["a"], a=["b", "c"], b=[], c=[]), None, {"a": ["b>1", 'b>2; extra == "x"', 'c>3; extra == "x"']}
    )
    assert spelled(graph, "b") == ["l: a > b>1"]
    assert spelled(graph, "c") == ["l: a > c>3"]


def test_cycles_end() -> None:
    graph = dependency_graph(lock("l", ["a"], a=["b"], b=["a", "c"], c=["b"]), None, {})
    assert spelled(graph, "a") == ["l: a"]
    assert spelled(graph, "c") == ["l: a > b > c"]


def test_what_nobody_asks_for_has_no_chain() -> None:
    assert spelled(dependency_graph(lock("l", ["a"], a=[], orphan=[]), None, {}), "orphan") == []


def test_exponentially_many_chains_come_one_by_one_and_end() -> None:
    """Forty levels of two each: 2 to the 40th chains."""
    names = [f"{letter}{level}" for level in range(40) for letter in "xy"]
    requires = {name: [f"{letter}{int(name[1:]) + 1}" for letter in "xy" if int(name[1:]) < 39] for name in names}
    graph = dependency_graph(lock("l", ["x0", "y0"], **requires), None, {})
    assert len(list(islice(graph.chains("x9"), 100))) == 100
    assert sum(1 for _ in graph.chains("x39")) < 100_000

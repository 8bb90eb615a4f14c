"""Compile layers and their locks into derivations. Pure: what has to be read or hashed is passed in.

A graph is for one host. A layer is declared for platforms ("glibc 2.28 on x86_64"); the host realises the one
of its own machine and libc, see :func:`choose_platform`. Parts that layers share are one object, so that their
keys are computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.spec import LayerSpec, Spec
from envdsl.graph.derivation import (
    MAGIC_NUMBERS,
    Bytecode,
    Derivation,
    Layer,
    SourceTree,
    Unpack,
    WheelFile,
)
from envdsl.lock.lock import Lock, LockedWheel
from envdsl.model.names import Platform, PythonVersion

_STAGES = {"wheel": 0, "unpack": 1, "bytecode": 2, "source": 3, "layer": 4}


@dataclass(frozen=True)
class Graph:
    """What is to be realised on one host.

    ``layers``: the layers by their declared name (several names may have one derivation), sorted by name.
    ``derivations``: everything that they consist of by key, each after what it depends on; the order depends on
    content alone. ``skipped``: the declared layers that no platform of this host is declared for.
    """

    platform: Platform
    layers: Mapping[str, Layer]
    derivations: Mapping[str, Derivation]
    skipped: tuple[str, ...] = ()


def choose_platform(declared: Iterable[Platform], host: Platform) -> Platform | None:
    """The platform for which ``host`` realises a layer: the newest declared one that it satisfies (the same
    machine and libc, no newer libc than its own). Where the host is too old for all, the oldest of its
    machine: whoever runs the layer compares it with the host. None where none is for its machine and libc.
    """
    candidates = sorted(item for item in declared if (item.machine, item.libc) == (host.machine, host.libc))
    fitting = [item for item in candidates if item <= host]
    return fitting[-1] if fitting else candidates[0] if candidates else None


def compile_graph(
    spec: Spec,
    locks: Mapping[str, Lock],
    platform: Platform,
    source_trees: Mapping[str, str],
    *,
    layers: Iterable[str] | None = None,
    bases: Mapping[str, Layer] | None = None,
) -> Graph:
    """The graph of ``layers`` (default: all of ``spec``) and the bases that they stand on, for the host ``platform``.

    ``locks`` by layer name; ``source_trees`` the tree hash of each directory that a layer names under
    ``sources``, by its path. ``bases`` are bases by name that stand already, whatever ``spec`` declares today: layers
    that name one stand on that very derivation. Layers for other machines are left out and named in
    :attr:`Graph.skipped`.

    Raises EnvdslError with every ``graph-unknown-layer``, ``graph-no-lock``, ``graph-lock-platform`` (the lock
    lacks the platform) and ``graph-python-unknown`` (no bytecode for this release) there is.
    """
    compiler = _Compiler(spec, locks, platform, source_trees, bases or {})
    found: list[Diagnostic] = []
    for name in sorted(spec.layers if layers is None else set(layers)):
        try:
            compiler.layer(name)
        except EnvdslError as error:
            # What is wrong with a base comes back from each layer that stands on it.
            found += [diagnostic for diagnostic in error.diagnostics if diagnostic not in found]
    if found:
        raise EnvdslError(*found)
    return compiler.graph()


class _Compiler:
    def __init__(
        self,
        spec: Spec,
        locks: Mapping[str, Lock],
        host: Platform,
        source_trees: Mapping[str, str],
        bases: Mapping[str, Layer],
    ) -> None:
        self._spec = spec
        self._locks = locks
        self._host = host
        self._source_trees = source_trees
        self._layers: dict[str, Layer] = dict(bases)
        self._skipped: set[str] = set()
        self._unpacks: dict[tuple[str, str, bool], Unpack] = {}
        self._bytecode: dict[tuple[str, PythonVersion], Bytecode] = {}
        self._sources: dict[str, SourceTree] = {}

    def layer(self, name: str) -> Layer | None:
        """The derivation of a layer; None where it is not for this host."""
        if name in self._layers or name in self._skipped:
            return self._layers.get(name)
        spec = self._spec.layers.get(name)
        if spec is None:
            raise EnvdslError.of(
                "graph-unknown-layer", f"there is no layer `{name}`", hint=_did_you_mean(name, self._spec)
            )
        base = self.layer(spec.base) if spec.base is not None else None
        platform = choose_platform(spec.platforms, self._host)
        if platform is None or (base is None and spec.base is not None):
            self._skipped.add(name)
            return None
        lock = self._lock(spec, platform)
        unpacks = self._packages(spec, lock, platform)
        layer = Layer(
            layer_kind=spec.kind,
            python=spec.python,
            platform=platform,
            unpacks=unpacks,
            bytecode=tuple(self._compiled(unpack, spec) for unpack in unpacks) if spec.bytecode else (),
            sources=self._trees(spec),
            base=base,
            env=tuple(sorted(spec.env)),
            collisions=tuple(sorted(set(spec.allow.collisions))),
        )
        self._layers[name] = layer
        return layer

    def graph(self) -> Graph:
        found: dict[str, Derivation] = {}
        pending: list[Derivation] = list(self._layers.values())
        while pending:
            derivation = pending.pop()
            if derivation.key not in found:
                found[derivation.key] = derivation
                pending += derivation.dependencies()
        order = sorted(
            found.values(), key=lambda derivation: (_STAGES[derivation.kind], _depth(derivation), derivation.key)
        )
        return Graph(
            platform=self._host,
            layers=dict(sorted(self._layers.items())),
            derivations={derivation.key: derivation for derivation in order},
            skipped=tuple(sorted(self._skipped)),
        )

    def _lock(self, spec: LayerSpec, platform: Platform) -> Lock:
        lock = self._locks.get(spec.name)
        if lock is None:
            raise EnvdslError.of(
                "graph-no-lock",
                f"layer {spec.name} has no lock",
                span=spec.span,
                hint=f"run `envdsl lock {spec.name}`",
            )
        if platform not in lock.platforms:
            raise EnvdslError.of(
                "graph-lock-platform",
                f"the lock of layer {spec.name} is not for {platform}, but for {', '.join(map(str, lock.platforms))}",
                span=spec.span,
                hint=f"run `envdsl lock {spec.name}`",
            )
        return lock

    def _packages(self, spec: LayerSpec, lock: Lock, platform: Platform) -> tuple[Unpack, ...]:
        waived = {_normalised(name) for name in spec.allow.record_mismatch}
        return tuple(
            self._unpacked(package.name, package.version, wheel, bool(waived) and _normalised(package.name) in waived)
            for package in lock.packages
            if (wheel := package.wheel(platform)) is not None
        )

    def _unpacked(self, name: str, version: str, wheel: LockedWheel, waived: bool) -> Unpack:
        identity = (wheel.sha256, wheel.filename, waived)
        if identity not in self._unpacks:
            file = WheelFile(filename=wheel.filename, sha256=wheel.sha256, size=wheel.size)
            self._unpacks[identity] = Unpack(name=name, version=version, wheel=file, record_mismatch=waived)
        return self._unpacks[identity]

    def _compiled(self, unpack: Unpack, spec: LayerSpec) -> Bytecode:
        if spec.python.minor not in MAGIC_NUMBERS:
            raise EnvdslError.of(
                "graph-python-unknown",
                f"layer {spec.name}: the bytecode of Python {spec.python} is not known to this envdsl",
                span=spec.span,
                hint="update envdsl, or set `bytecode = false;` in the layer",
            )
        identity = (unpack.key, spec.python)
        if identity not in self._bytecode:
            self._bytecode[identity] = Bytecode(unpack=unpack, python=spec.python)
        return self._bytecode[identity]

    def _trees(self, spec: LayerSpec) -> tuple[SourceTree, ...]:
        """The sources in the order of the file, which is that of PYTHONPATH; the same content is there once."""
        trees: dict[str, SourceTree] = {}
        for source in spec.sources:
            tree = self._sources.setdefault(source.path, SourceTree(self._source_trees[source.path], source.path))
            trees.setdefault(tree.key, tree)
        return tuple(trees.values())


def _depth(derivation: Derivation) -> int:
    """How many bases a layer stands on."""
    depth = 0
    while isinstance(derivation, Layer) and derivation.base is not None:
        derivation, depth = derivation.base, depth + 1
    return depth


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _did_you_mean(name: str, spec: Spec) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, spec.layers, n=1)
    return f"did you mean `{near[0]}`?" if near else "`envdsl ls` lists the layers"

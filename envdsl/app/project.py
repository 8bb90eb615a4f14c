"""A project that is open: its configuration, and its specification, locks and store when asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl import config as configuration
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import Platform
from envdsl.reporter import Reporter

if TYPE_CHECKING:
    from envdsl.evaluate.spec import LayerSpec, Spec
    from envdsl.lock.lock import Lock
    from envdsl.store.store import Store


class Project:
    """What every command works on.

    Nothing is read before it is needed: opening one costs a look for ``envdsl.toml``.
    """

    def __init__(self, config: configuration.Config, reporter: Reporter) -> None:
        self.config = config
        self.reporter = reporter
        # Whether these are the layers that travel with envdsl, because the user is in no project.
        self.is_curated = False
        self._locks: dict[str, Lock | None] = {}
        # Whether this run changes nothing: it makes no store where there is none, either.
        self.looks_only = False
        # Whether an interpreter could not be downloaded in this run.
        self.downloads_failed = False
        # Where wheels were seen while locking, by sha256: a build in the same process need not ask again.
        self.seen_at: dict[str, tuple[Path | str, ...]] = {}

    @classmethod
    def find(cls, start: Path, *, store: Path | None, reporter: Reporter) -> Project:
        """The project that ``start`` lies in, or the curated layers that ship with envdsl where it lies in none."""
        root = configuration.find_root(start.absolute())
        if root is not None:
            return cls(configuration.load(root, store=store), reporter)
        from envdsl.app.curated import curated

        project = cls(curated(store), reporter)
        project.is_curated = True
        return project

    @cached_property
    def layer_files(self) -> tuple[str, ...]:
        """POSIX paths of the project's layer files relative to its root, sorted."""
        root = self.config.root
        found = {path.relative_to(root).as_posix() for pattern in self.config.layers for path in root.glob(pattern)}
        return tuple(sorted(path for path in found if (root / path).is_file()))

    @cached_property
    def spec(self) -> Spec:
        """All declared layers. Raises :class:`EnvdslError` with every error of every file."""
        return self.evaluate(self.layer_files)

    def evaluate(self, files: Sequence[str]) -> Spec:
        """The layers that ``files`` (relative to the root) declare."""
        from envdsl.evaluate.project import evaluate
        from envdsl.evaluate.reader import DirectoryReader

        reader = DirectoryReader(self.config.root)
        return evaluate(files, reader, default_platforms=self.config.platforms, trace=self.reporter.trace)

    def lock(self, name: str) -> Lock | None:
        """The lock of a layer, or None where there is none. Raises :class:`EnvdslError` for a damaged one."""
        if name not in self._locks:
            from envdsl.lock.pylock import read_lock

            path = self.config.lock_path(name)
            self._locks[name] = read_lock(path) if path.exists() else None
        return self._locks[name]

    def forget_lock(self, name: str) -> None:
        """Read the lock of ``name`` anew when it is asked for next: its file was written."""
        self._locks.pop(name, None)

    def reread(self) -> None:
        """Forget layers and locks: whoever lives long looks at the files as they are now."""
        for name in ("layer_files", "spec"):
            self.__dict__.pop(name, None)
        self._locks.clear()

    @cached_property
    def store(self) -> Store:
        from envdsl.store.store import Store

        return Store.open(self.config.store, create=not self.looks_only)

    def close(self) -> None:
        """Let go of the store, if it was opened."""
        if "store" in self.__dict__:
            self.store.close()

    @cached_property
    def platform(self) -> Platform:
        """The platform of this machine."""
        from envdsl.app.host import host_platform

        return host_platform()

    def select(self, names: Iterable[str]) -> tuple[LayerSpec, ...]:
        """The layers of these names, bases before what stands on them, each once; all layers for no names.

        The name of a family stands for the variant that suits this machine best (:meth:`layer`).
        """
        return self._with_bases([self.layer(name) for name in names] or self.spec.layers.values())

    def select_families(self, names: Iterable[str]) -> tuple[LayerSpec, ...]:
        """The same with all variants of a family: what holds for every machine, such as locking."""
        found = [layer for name in names for layer in self._variants(name) or [self.layer(name)]]
        return self._with_bases(found or self.spec.layers.values())

    def _with_bases(self, layers: Iterable[LayerSpec]) -> tuple[LayerSpec, ...]:
        chosen: dict[str, LayerSpec] = {}
        for layer in layers:
            if layer.base is not None:
                chosen.setdefault(layer.base, self.spec.layers[layer.base])
            chosen[layer.name] = layer
        return tuple(sorted(chosen.values(), key=lambda layer: layer.base is not None))

    def layer(self, name: str) -> LayerSpec:
        """The layer of this name. ``office`` stands for the variant of ``office-py311``, ``office-py312`` … whose
        interpreter this machine has, or can get most easily."""
        if name in self.spec.layers:
            return self.spec.layers[name]
        if variants := self._variants(name):
            from envdsl.app.interpreters import preference

            return max(variants, key=lambda layer: preference(self, layer.python))
        families = {family(layer) for layer in self.spec.layers.values()}
        raise unknown_layer(name, {*self.spec.layers, *families})

    def _variants(self, name: str) -> list[LayerSpec]:
        if name in self.spec.layers:
            return []
        return [layer for layer in self.spec.layers.values() if family(layer) == name]


def family(layer: LayerSpec) -> str:
    """``office`` of a layer for Python 3.12 that is called ``office-py312``; the name of any other layer."""
    return layer.name.removesuffix(f"-py3{layer.python.minor}")


def unknown_layer(name: str, known: Iterable[str]) -> EnvdslError:
    import difflib

    close = difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean `{close[0]}`?" if close else "`envdsl ls` lists the layers of the project"
    return EnvdslError.of(
        "app-unknown-layer", f"no layer `{name}` is declared", hint=hint, exit_status=ExitStatus.USAGE
    )

"""The curated base layer ``office`` as both sides of a comparison: its wheels, projects, stores, virtual environments.

The wheels are those of the lock for this machine and for the Python that ``office`` stands for here. They are taken
from the wheelhouse of the repository's store, fetched into it where they are missing, and copied to a flat directory
on the fresh file system, which is the only index that either side has.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.harness import command
from benchmarks.scratch import ENVDSL, UV, Scratch
from envdsl.app.building import fetcher
from envdsl.app.compiling import compile_layers
from envdsl.app.project import Project
from envdsl.evaluate.spec import LayerSpec
from envdsl.graph.derivation import Unpack
from envdsl.reporter import Reporter

REPOSITORY = Path(__file__).parent.parent


@dataclass(frozen=True)
class Office:
    """``pins`` are ``name==version``; ``lock`` the bytes of the lock; ``wheels`` the flat directory; ``template`` a
    store that holds the interpreter ``python`` and nothing else."""

    scratch: Scratch
    layer: LayerSpec
    lock: bytes
    pins: tuple[str, ...]
    wheels: Path
    template: Path
    python: Path

    @classmethod
    def prepare(cls, scratch: Scratch) -> Office:
        project = Project.find(REPOSITORY, store=None, reporter=Reporter())
        try:
            layer = project.layer("office")
            graph = compile_layers(project, [layer])
            unpacks = [item for item in graph.derivations.values() if isinstance(item, Unpack)]
            with project.store.lease():
                fetcher(project, [layer], offline=False)([item.wheel for item in unpacks])
                wheels = scratch.directory("wheels")
                for unpack in unpacks:
                    stored = project.store.lookup(unpack.wheel.key)
                    assert stored is not None
                    shutil.copy(project.store.layout.absolute(stored.path), wheels)
        finally:
            project.close()
        lock = project.config.lock_path(layer.name).read_bytes()
        template = scratch.root / "template"
        for action in (["install", str(layer.python)], ["show", "--path"]):
            said = command(
                [ENVDSL, "python", *action, "--store", str(template), "--quiet"], cwd=scratch.directory("elsewhere")
            )
        pins = tuple(sorted(f"{item.name}=={item.version}" for item in unpacks))
        return cls(scratch, layer, lock, pins, wheels, template, python=Path(said.strip()))

    def project(self, name: str, *attributes: str) -> Path:
        """A project with one layer, ``office``: packages and lock of the curated one, and ``attributes``."""
        place = self.scratch.directory(f"projects/{name}")
        self.configure(place)
        layer = self.layer
        lines = [
            f'python = "{layer.python}";',
            f"platforms = [ {' '.join(_quote(map(str, layer.platforms)))} ];",
            f"packages = [ {' '.join(_quote(item.text for item in layer.packages))} ];",
            *attributes,
        ]
        (place / "layers.d").mkdir()
        (place / "layers.d/office.layer").write_text("base office {\n  " + "\n  ".join(lines) + "\n}\n")
        (place / "layers.d/pylock.office.toml").write_bytes(self.lock)
        return place

    @cached_property
    def curated(self) -> Path:
        """A copy of the repository's own project with its locks, whose ``office`` is built."""
        place = self.scratch.directory("projects/curated")
        shutil.copytree(REPOSITORY / "layers.d", place / "layers.d")
        self.configure(place)
        self.build(place, self.warm_store)
        return place

    def configure(self, project: Path) -> None:
        """Let the flat directory be the only index of ``project``."""
        index = f'[[index]]\nname = "flat"\nurl = "{self.wheels}"\ndefault = true\nformat = "flat"\n'
        (project / "envdsl.toml").write_text(index)

    def store(self, name: str) -> Path:
        """A store that holds the interpreter alone."""
        place = self.scratch.directory("stores") / name
        shutil.copytree(self.template, place, symlinks=True, copy_function=_link_unless_written)
        return place

    @cached_property
    def warm_store(self) -> Path:
        """A store that knows the wheels of ``office``, unpacked and compiled."""
        place = self.store("warm")
        self.build(self.project("warm"), place)
        return place

    def build(self, project: Path, store: Path, *arguments: str) -> None:
        command(
            [ENVDSL, "build", "office", "--offline", "--store", str(store), *arguments],
            environment=self.scratch.environment,
            cwd=project,
        )

    def virtual_environment(self, name: str) -> Path:
        """An empty one of the same interpreter."""
        place = self.scratch.directory("venvs") / name
        cache = self.scratch.root / "uv-cache-of-preparation"
        create = [UV, "venv", "--no-config", "--python", str(self.python), str(place)]
        command(create, environment=self.scratch.uv_environment(cache))
        return place

    def install(self, venv: Path, cache: Path, *arguments: str) -> None:
        """``uv pip install`` of the same wheels."""
        options = ["--no-config", "--no-deps", "--no-index", "--find-links", str(self.wheels)]
        options += ["--link-mode", "hardlink", "--python", str(venv), *arguments]
        command([UV, "pip", "install", *options, *self.pins], environment=self.scratch.uv_environment(cache))

    @cached_property
    def uv_project(self) -> Path:
        """The same packages as a project of uv's, locked and synchronised, its ``.venv`` with bytecode."""
        place = self.scratch.directory("projects/uv")
        (place / "pyproject.toml").write_text(
            "\n".join(
                [
                    "[project]",
                    'name = "office"',
                    'version = "1"',
                    f'requires-python = "=={self.layer.python}.*"',
                    f"dependencies = [{', '.join(_quote(item.text for item in self.layer.packages))}]",
                    "[tool.uv]",
                    "no-index = true",
                    f'find-links = ["{self.wheels}"]',
                    "",
                ]
            )
        )
        sync = [UV, "sync", "--project", str(place), "--python", str(self.python), "--compile-bytecode"]
        command(sync, environment=self.uv_environment)
        return place

    @cached_property
    def uv_environment(self) -> dict[str, str]:
        """With the cache that :attr:`uv_project` was made with."""
        return self.scratch.uv_environment(self.scratch.root / "uv-cache-warm")


def _link_unless_written(source: str, target: str) -> None:
    """Store paths are never written to, so that copies of a store may share them; the database is."""
    if Path(source).name.startswith("envdsl.db"):
        shutil.copy2(source, target)
    else:
        os.link(source, target, follow_symlinks=False)


def _quote(words: Iterable[str]) -> list[str]:
    return [f'"{word}"' for word in words]

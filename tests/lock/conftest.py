"""A project with an index of its own: what is locked in these tests comes from wheels that the tests build."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.evaluate.spec import LayerSpec, ProjectPath, Requirement
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import Lock
from envdsl.lock.locking import Locked, LockOptions, lock_layer
from envdsl.lock.pylock import read_lock, write_lock
from envdsl.lock.source import IndexSource
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.model.span import Source, Span
from envdsl.reporter import Reporter
from tests.lock.index import Index, serve
from tests.wheels import make_wheel

X86 = Platform.parse("manylinux_2_28_x86_64")
ARM = Platform.parse("manylinux_2_28_aarch64")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


class Recorder(Reporter):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.warnings: list[Diagnostic] = []
        self.notes: list[str] = []

    def warn(self, diagnostic: Diagnostic) -> None:
        self.warnings.append(diagnostic)

    def note(self, message: str) -> None:
        self.notes.append(message)


@dataclass
class Project:
    """A project directory, its index, and the environment that uv and the lookups see."""

    root: Path
    index: Index
    environment: dict[str, str]
    sources: list[IndexSource]
    reporter: Recorder = field(default_factory=Recorder)

    @property
    def configuration(self) -> IndexConfiguration:
        return IndexConfiguration.discover(self.sources, environment=self.environment)

    def path(self, name: str) -> Path:
        return self.root / "layers.d" / f"pylock.{name}.toml"

    def wheel(self, name: str, version: str, *requires: str, tag: str = "py3-none-any") -> Path:
        """Publish a wheel on the index."""
        return make_wheel(self.index.directory, name, version, requires=requires, tag=tag)

    def try_lock(self, spec: LayerSpec, **options: object) -> Locked:
        """Lock without writing."""
        configuration = options.pop("configuration", None) or self.configuration
        wheelhouse = options.pop("wheelhouse", None)
        base = read_lock(self.path(spec.base)) if spec.base and self.path(spec.base).exists() else None
        return lock_layer(
            spec,
            self.path(spec.name),
            base=base,
            root=self.root,
            configuration=configuration,  # type: ignore[arg-type]
            interpreter=Path(sys.executable),
            options=LockOptions(**{"now": NOW, **options}),  # type: ignore[arg-type]
            reporter=self.reporter,
            wheelhouse=wheelhouse,  # type: ignore[arg-type]
        )

    def lock(self, spec: LayerSpec, **options: object) -> Lock:
        """Lock and write."""
        locked = self.try_lock(spec, **options)
        write_lock(self.path(spec.name), locked.text)
        assert read_lock(self.path(spec.name)) == locked.lock
        return locked.lock

    def refusal(self, spec: LayerSpec, **options: object) -> EnvdslError:
        """The error that locking raises; the present lock must outlive it."""
        before = self.path(spec.name).read_bytes() if self.path(spec.name).exists() else None
        with pytest.raises(EnvdslError) as caught:
            self.lock(spec, **options)
        after = self.path(spec.name).read_bytes() if self.path(spec.name).exists() else None
        assert after == before
        return caught.value


def layer(
    name: str,
    packages: Sequence[str] = (),
    *,
    kind: str = "base",
    on: str | None = None,
    python: str = "3.12",
    platforms: Sequence[Platform] = (X86,),
    constraints: Sequence[str] = (),
    overrides: Sequence[str] = (),
    wheels: Sequence[str] = (),
    **more: object,
) -> LayerSpec:
    """A layer as if it stood in a file whose line N names its Nth package."""
    source = Source(f"layers.d/{name}.layer", "\n".join(packages))
    starts = source.line_starts
    spec = LayerSpec(
        name=name,
        kind=LayerKind.X if on else LayerKind(kind),
        base=on,
        python=PythonVersion.parse(python),
        platforms=tuple(platforms),
        packages=tuple(
            Requirement(text, Span(source, starts[line], starts[line] + len(text)))
            for line, text in enumerate(packages)
        ),
        constraints=tuple(map(Requirement, constraints)),
        overrides=tuple(map(Requirement, overrides)),
        wheels=tuple(ProjectPath(path, Span(source, 0, 0)) for path in wheels),
    )
    return replace(spec, **more)  # type: ignore[arg-type]


def pins(lock: Lock) -> dict[str, str]:
    return {package.name: package.version for package in lock.packages}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "project" / "layers.d").mkdir(parents=True)
    environment = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "UV_CACHE_DIR": str(tmp_path / "uv-cache"),
        "UV_HTTP_RETRIES": "1",
        "PIP_CONFIG_FILE": os.devnull,
        "XDG_CONFIG_DIRS": str(tmp_path / "nowhere"),
    }
    with serve(tmp_path / "index") as index:
        yield Project(tmp_path / "project", index, environment, [IndexSource.of(index.simple, default=True)])

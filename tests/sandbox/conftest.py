"""Real sandboxes, started by whoever runs the tests and, where that is root, by an ordinary user as well."""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from envdsl.sandbox import bwrap, seccomp, skeleton
from envdsl.sandbox.launch import Outcome, run
from envdsl.sandbox.plan import Mount, SandboxPlan

NOBODY = 65534
PATH = "/usr/local/bin:/usr/bin:/bin"
T = TypeVar("T")


def as_nobody(function: Callable[[], T]) -> T:
    """What ``function`` returns (or raises) in a child process of an unprivileged user."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        result: tuple[bool, Any]
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            result = True, function()
        except BaseException as error:
            result = False, error
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        good, value = pickle.load(pipe)
    os.waitpid(child, 0)
    if not good:
        raise value
    return value  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def public() -> Iterator[Path]:
    """A directory that every user may enter (pytest's own are private)."""
    with tempfile.TemporaryDirectory(prefix="envdsl test ") as name:  # a space, for those that forget to quote
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="session")
def directory(public: Path) -> Path:
    """Where the roots of sandboxes are kept."""
    return public / "sandbox"


@pytest.fixture(scope="session")
def program(public: Path, directory: Path) -> Path:
    """A bubblewrap that works, readable for everybody (the bundled one may stand in somebody's home)."""
    found = bwrap.find(directory)
    if found.parent.name == "_bin":
        package = found.parent.parent
        shutil.copytree(package, public / package.name)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, public / libraries.name)
        found = public / package.name / "_bin" / "bwrap"
    return found


@dataclass(frozen=True)
class Caller:
    """Somebody who starts sandboxes, with a workspace and a layer to look at."""

    name: str
    uid: int
    plan: SandboxPlan
    program: Path
    workspace: Path
    layer: Path

    def call(self, function: Callable[[], T]) -> T:
        return as_nobody(function) if self.uid != os.geteuid() else function()

    def run(self, *command: str, plan: SandboxPlan | None = None, **options: Any) -> Outcome:
        options.setdefault("capture", True)
        return self.call(lambda: run(plan or self.plan, command, bwrap=self.program, **options))

    def python(self, code: str, *arguments: str, **options: Any) -> str:
        """What a program prints that must succeed."""
        outcome = self.run("/usr/bin/python3", "-I", "-c", code, *arguments, **options)
        assert outcome.status == 0, (outcome.status, outcome.stderr.decode())
        return outcome.stdout.decode().strip()


def _caller(name: str, public: Path, directory: Path, program: Path) -> Caller:
    uid = NOBODY if name == "ordinary user" else os.geteuid()
    here = Path(tempfile.mkdtemp(dir=public))
    here.chmod(0o755)
    workspace, layer = here / "work space", here / "layer"
    workspace.mkdir()
    layer.mkdir()
    (layer / "layer.json").write_text("{}")
    if uid != os.geteuid():
        os.chown(workspace, uid, uid)
    mounts = [Mount.writable(str(workspace), "/workspace"), Mount.read_only(str(layer), "/envdsl/layers/0")]
    plan = SandboxPlan.of(
        skeleton.prepare(directory, mounts),
        mounts,
        environment={"PATH": PATH, "HOME": "/home/user", "LANG": "C.UTF-8"},
        lock_files=["/envdsl/layers/0/layer.json"],
    )
    seccomp.compiled()  # an ordinary user may not be able to read this checkout
    return Caller(name, uid, plan, program, workspace, layer)


@pytest.fixture(params=["caller", "ordinary user"])
def caller(request: pytest.FixtureRequest, public: Path, directory: Path, program: Path) -> Caller:
    """Whoever runs the tests, then an ordinary user."""
    if request.param == "ordinary user" and os.geteuid() != 0:
        pytest.skip("the caller is an ordinary user already")
    return _caller(request.param, public, directory, program)


@pytest.fixture
def me(public: Path, directory: Path, program: Path) -> Caller:
    """Whoever runs the tests, where it makes no difference who that is."""
    return _caller("caller", public, directory, program)

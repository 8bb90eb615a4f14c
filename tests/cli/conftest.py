"""A project with wheels of its own, a store that already has an interpreter, and the command line in this process."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envdsl.cli import group
from tests.wheels import make_wheel

PYTHON = f"3.{sys.version_info.minor}"

LAYERS = f"""\
# What the tests of the command line build.
base core {{
  python   = "{PYTHON}";
  packages = [ "bar" ];
  sources  = [ ../src ];
  probe    = [ "bar" "mine" ];
  env      = {{ FLAVOUR = "core"; }};
  description = "A base";
}}
x one on core {{ packages = [ "foo==1" ]; }}
x two on core {{ packages = [ "foo==2" ]; }}
iso alone {{ python = "{PYTHON}"; packages = [ "foo" ]; }}
"""


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


Cli = Callable[..., Result]


@pytest.fixture(scope="session")
def pristine_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a managed interpreter of the Python that runs the tests, and nothing else."""
    store = tmp_path_factory.mktemp("pristine") / "store"
    assert group.run(["python", "install", PYTHON, "--offline", "--store", str(store), "-q"]) == 0
    return store


@pytest.fixture(scope="session")
def interpreter_store(pristine_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that the tests of one worker share; what is in one never changes."""
    return clone(pristine_store, tmp_path_factory.mktemp("shared") / "store")


def clone(store: Path, place: Path) -> Path:
    """A store of one's own in no time: its files are hard links, its database is a copy."""

    def link_or_copy(source: str, target: str) -> str:
        if Path(source).parent == store:
            shutil.copy2(source, target)
        else:
            os.link(source, target)
        return target

    shutil.copytree(store, place, copy_function=link_or_copy, symlinks=True)
    return place


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose only index is a directory of wheels that are made here."""
    root = tmp_path / "project"
    (root / "layers.d").mkdir(parents=True)
    (root / "src" / "mine").mkdir(parents=True)
    (root / "src" / "mine" / "__init__.py").write_text("ANSWER = 42\n")
    wheels = root / "wheels"
    for version in ("1", "2"):
        make_wheel(wheels, "foo", version)
    make_wheel(
        wheels,
        "bar",
        "1.0",
        files={"bar/__init__.py": "def main():\n    print('bar runs')\n"},
        entry_points={"bar": "bar:main"},
    )
    (root / "envdsl.toml").write_text(
        'default-base = "core"\n[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    (root / "layers.d" / "all.layer").write_text(LAYERS)
    monkeypatch.chdir(root)
    for name in ("ENVDSL_STORE", "ENVDSL_PROJECT", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return root


@pytest.fixture
def run(
    project: Path, interpreter_store: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Cli:
    """Run one command as ``envdsl`` would, the shortcut for builds included."""
    from envdsl import quick

    monkeypatch.setenv("ENVDSL_STORE", str(interpreter_store))

    def command(*arguments: str | Path) -> Result:
        words = [str(argument) for argument in arguments]
        capfd.readouterr()
        text = quick.answer(words[1:]) if words[:1] == ["build"] else None
        status = 0 if text is not None else group.run(words)
        captured = capfd.readouterr()
        return Result(status, captured.out if text is None else text, captured.err)

    return command


@pytest.fixture
def built(run: Cli) -> Cli:
    """The same, with everything of the project locked and built."""
    assert run("lock").status == 0
    done = run("build")
    assert done.status == 0, done.err
    return run


@pytest.fixture
def fresh(pristine_store: Path, tmp_path: Path) -> Path:
    """A store of this test's own, with an interpreter."""
    return clone(pristine_store, tmp_path / "fresh")


def _bundle_made(run: Cli, place: Path, once: Path, *options: str) -> Path:
    """A bundle of the project, at ``place``; made once for all tests of a worker, since it is always the same."""
    assert run("lock").status == 0
    if not once.exists():
        done = run("bundle", "create", "-o", once, "--no-interpreter", *options)
        assert done.status == 0, done.err
    return Path(shutil.copy(once, place))


@pytest.fixture
def bundle(run: Cli, tmp_path: Path, interpreter_store: Path) -> Path:
    """A bundle of wheels."""
    return _bundle_made(run, tmp_path / "wheels.tar.zst", interpreter_store.parent / "wheels.tar.zst")


@pytest.fixture
def realised(run: Cli, tmp_path: Path, interpreter_store: Path) -> Path:
    """A bundle of layers."""
    return _bundle_made(run, tmp_path / "layers.tar.zst", interpreter_store.parent / "layers.tar.zst", "--layers")

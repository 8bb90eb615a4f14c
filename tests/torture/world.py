"""A small project with a store, in states that commands start from; and what has to hold after one of them was hurt.

Everything runs as the command line would, in the process that calls it (``tests/torture/zygote.py`` forks for each).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from envdsl import quick
from envdsl.cli import group
from envdsl.model.digest import blake3_hex
from envdsl.session import bindings
from envdsl.store import replaced, rubbish
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from envdsl.store.verify import verify
from tests.wheels import make_wheel

PYTHON = f"3.{sys.version_info.minor}"
LAYERS = f"""\
base core {{ python = "{PYTHON}"; packages = [ "bar" ]; sources = [ ../src ]; }}
x one on core {{ packages = [ "foo==1" ]; }}
"""
_GARBAGE = 'x two on core { packages = [ "foo==2" ]; }\n'
_TEMPORARY = re.compile(r"\..+[.-](\d+|new)|\.new-.*")


def alone() -> None:
    """From now on, what nobody can be writing goes at once: there is no command but the one that is hurt, and no
    sandbox is just starting."""
    rubbish.ABANDONED = bindings.ABANDONED = -1.0
    replaced.GRACE = 0.0


class World:
    """``root/project`` and ``root/store``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "project"
        self.store = root / "store"

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Status, output and messages of one command."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(self.project):
            status = group.run([*arguments, "--store", str(self.store)])
        return status, out.getvalue(), err.getvalue()

    def must(self, *arguments: str) -> str:
        status, out, err = self.run(*arguments)
        if status != 0:
            raise RuntimeError(f"{' '.join(arguments)}: status {status}\n{err}")
        return out


def locked(world: World) -> None:
    """A project with locks, and a store with an interpreter that takes no room."""
    (world.project / "layers.d").mkdir(parents=True)
    (world.project / "src").mkdir()
    (world.project / "src" / "mine.py").write_text("ANSWER = 42\n")
    wheels = world.project / "wheels"
    for version in ("1", "2"):
        make_wheel(wheels, "foo", version, data={"data/share/foo.txt": "foo" * 100})
    make_wheel(
        wheels,
        "bar",
        "1.0",
        files={"bar/__init__.py": "def main(): pass\n", "bar/empty.txt": ""},
        entry_points={"bar": "bar:main"},
    )
    index = f'[[index]]\nname = "local"\nurl = "{wheels}"\nformat = "flat"\ndefault = true\n'
    (world.project / "envdsl.toml").write_text(f'default-base = "core"\n{index}')
    (world.project / "layers.d" / "all.layer").write_text(LAYERS)
    name = f"cpython-{'.'.join(map(str, sys.version_info[:3]))}-{'0' * 32}"
    with Store.open(world.store) as store:
        prefix = store.temporary("python")
        (prefix / "bin").mkdir()
        (prefix / "bin" / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        (prefix / "bin" / "python3").chmod(0o755)
        store.register(prefix, f"python/{name}", key=blake3_hex(b"python"), kind="python", listing=scan(prefix))
        store.flush()
    world.must("lock")


def built(world: World) -> None:
    locked(world)
    world.must("build")


def littered(world: World) -> None:
    """Built, with a layer that nobody needs any more and rubbish of every kind."""
    locked(world)
    layers = world.project / "layers.d" / "all.layer"
    layers.write_text(LAYERS + _GARBAGE)
    world.must("lock")
    world.must("build")
    layers.write_text(LAYERS)
    (world.project / "layers.d" / "pylock.two.toml").unlink()
    dead = world.store / "tmp" / "process-0123456789abcdef" / "unpack-foo" / "site-packages"
    dead.mkdir(parents=True)
    (dead / "half.py").write_text("half")
    (world.store / "unpacked" / "rubbish").mkdir()
    (world.store / "unpacked" / "rubbish" / "a").write_text("a")


def damaged(world: World) -> None:
    """Built, and then spoilt: a file that a part and a layer share, a wheel, a source, a member that is gone."""
    built(world)
    with Store.open(world.store) as store:
        paths = {path.kind: store.layout.absolute(path.path) for path in store.paths()}
    for file in (
        next(paths["unpack"].glob("site-packages/*/METADATA"), None) or next(paths["unpack"].rglob("*.py")),
        paths["wheel"],
        paths["source"] / "mine.py",
    ):
        file.chmod(0o644)
        with file.open("ab") as opened:
            opened.write(b"spoilt")
        file.chmod(0o444)
    next(paths["bytecode"].rglob("*.pyc")).unlink()


@dataclass(frozen=True)
class Scenario:
    """A command, and the state of the store in which it begins."""

    prepare: Callable[[World], None]
    command: tuple[str, ...]


SCENARIOS = {
    "build": Scenario(locked, ("build",)),
    "gc": Scenario(littered, ("gc",)),
    "repair": Scenario(damaged, ("verify", "--repair")),
    "session": Scenario(built, ("session", "create", "s", "-l", "core", "-l", "one")),
}


def copy(template: Path, root: Path) -> None:
    """The world at ``root`` as the one at ``template`` is, hard links included."""
    if root.exists():
        shutil.rmtree(root)
    subprocess.run(["cp", "-a", template, root], check=True)


def problems(world: World, scenario: Scenario) -> Iterator[str]:
    """What is not as it was promised, after the scenario's command was killed or failed."""
    yield from _damage(world, "afterwards", allowed=scenario.prepare is damaged)
    yield from _answer(world)
    for command in (scenario.command, ("build",)):
        status, _, err = world.run(*command)
        if status != 0:
            yield f"{' '.join(command)} again: status {status}: {err}"
    yield from _damage(world, "after the next run")
    yield from _answer(world)
    status, _, err = world.run("gc")
    if status != 0:
        yield f"gc: status {status}: {err}"
    yield from _leftovers(world)
    yield from _damage(world, "after gc")
    planned = json.loads(world.run("gc", "--dry-run", "--json")[1])
    if planned["paths"] or planned["rubbish"]:
        yield f"gc left {planned}"
    if scenario.command[0] == "session":
        held = sorted(place.name for place in (world.store / "sessions" / "s").iterdir())
        if held != ["bwrap.args", "cache", "manifest.json", "run"]:
            yield f"the session has {held}"


def _damage(world: World, when: str, *, allowed: bool = False) -> Iterator[str]:
    with Store.open(world.store) as store:
        with store.registry.reading() as connection:
            (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
        if sound != "ok":
            yield f"{when}, the database: {sound}"
        if not allowed:
            yield from (f"{when}: {finding}" for finding in verify(store).findings)
        valid = {path.key for path in store.paths()}
        for path in store.paths():
            if not valid.issuperset(path.references):
                yield f"{when}: {path.path} lacks what it references"


def _answer(world: World) -> Iterator[str]:
    """What the shortcut says is built has to be valid."""
    os.environ["ENVDSL_PROJECT"], os.environ["ENVDSL_STORE"] = str(world.project), str(world.store)
    text = quick.answer(["--json"])
    with Store.open(world.store) as store:
        for layer in json.loads(text)["layers"] if text is not None else ():
            if store.lookup(layer["key"]) is None:
                yield f"the cache answers with {layer['path']}, which is not valid"


def _leftovers(world: World) -> Iterator[str]:
    locks = {place.name for place in (world.store / "tmp" / "locks").iterdir()}
    if locks - {"gate", "database"}:
        yield f"locks are left: {locks}"
    left = [place.name for place in (world.store / "tmp").iterdir() if place.name != "locks"]
    if left:
        yield f"left in tmp: {left}"
    for place in world.store.rglob("*"):
        if _TEMPORARY.fullmatch(place.name):
            yield f"left: {place.relative_to(world.store)}"

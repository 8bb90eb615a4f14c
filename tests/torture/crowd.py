"""Many processes at one store: a host that has everything imported forks one for each role.

``python -m tests.torture.crowd build DIRECTORY COUNT KILLED`` and ``… together DIRECTORY SECONDS`` print what each
process did, one JSON object a line.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envdsl.graph.derivation import Layer, WheelFile
from envdsl.model.names import PythonVersion
from envdsl.realise.fetch import Fetcher
from envdsl.realise.scheduler import realise
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from tests.realise.building import base_of, graph_of
from tests.torture import world as worlds
from tests.torture.world import World
from tests.wheels import make_wheel

WHEELS = 8
LAYERS = 6
TIMEOUT = 300  # seconds: whoever takes longer hangs
HERE = PythonVersion(sys.version_info.minor)


@dataclass(frozen=True)
class Place:
    """A candidate of the fetcher: a file."""

    path: Path
    url: None = None
    sha256: None = None
    size: None = None
    yanked: None = None
    auth: None = None

    @property
    def label(self) -> str:
        return str(self.path)


def overlapping(directory: Path) -> list[Layer]:
    """Layers of which any two have parts in common, one with bytecode."""
    wheels = [make_wheel(directory, f"part{number}", "1") for number in range(WHEELS)]
    chosen = [[wheels[(number + step) % WHEELS] for step in range(4)] for number in range(LAYERS)]
    return [base_of(part, HERE if number == 0 else None) for number, part in enumerate(chosen)]


def build(directory: Path, layers: Sequence[Layer], number: int) -> dict[str, Any]:
    """What one process of the crowd does: half of the layers, beginning with another one than its neighbours."""
    registered: list[str] = []
    register = Store.register

    def counted(self: Store, *arguments: Any, **named: Any) -> Any:
        registered.append(named["key"])
        return register(self, *arguments, **named)

    Store.register = counted  # type: ignore[method-assign]
    chosen = {str(step): layers[(number + step) % LAYERS] for step in range(LAYERS // 2)}

    def candidates(wheel: WheelFile) -> list[Place]:
        return [Place(directory / "wheels" / wheel.filename)]

    with Store.open(directory / "store") as store:
        made = realise(
            graph_of(**chosen),
            list(chosen),
            store,
            fetch=Fetcher(store, candidates, reporter=Reporter(), jobs=2),
            interpreters=lambda _: Path(sys.executable),
            project=directory,
            reporter=Reporter(),
            jobs=2,
        )
        store.flush()
    return {"registered": registered, "layers": sorted(layer.key for layer in made.layers.values())}


def crowd(directory: Path, count: int, killed: int) -> None:
    """``count`` processes that build at once; of ``killed`` more nobody expects anything, as they are killed."""
    layers = overlapping(directory / "wheels")
    gate = os.open(directory / "start", os.O_RDWR | os.O_CREAT)
    fcntl.flock(gate, fcntl.LOCK_EX)

    def started(number: int) -> dict[str, Any]:
        # All begin at the same moment.
        with (directory / "start").open() as start:
            fcntl.flock(start, fcntl.LOCK_SH)
        return build(directory, layers, number)

    running = [_fork(lambda number=number: started(number)) for number in range(count + killed)]
    time.sleep(0.3)
    fcntl.flock(gate, fcntl.LOCK_UN)
    chance = random.Random(count)
    for child, _ in running[count:]:
        time.sleep(chance.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
    for child, pipe in running:
        print(json.dumps(_result(child, pipe)), flush=True)


# Everything at once.


def prepare(directory: Path) -> None:
    """Three projects with two states each, of which the layers of one are garbage in the other; one with nothing."""
    first = World(directory / "first")
    worlds.locked(first)
    first.store.rename(directory / "store")
    states = directory / "states"
    shutil.copytree(first.project / "layers.d", states / "0")
    (first.project / "layers.d" / "all.layer").write_text(worlds.LAYERS.replace("foo==1", "foo==2"))
    World.must(_at(directory, "first/project"), "lock")
    shutil.copytree(first.project / "layers.d", states / "1")
    for number in range(3):
        shutil.copytree(first.project, directory / f"project{number}")
    (directory / "nothing" / "layers.d").mkdir(parents=True)


def _at(directory: Path, project: str) -> World:
    world = World(directory)
    world.project = directory / project
    return world


def builds(directory: Path, number: int, end: float) -> dict[str, Any]:
    """Builds one state of its project after the other; what it has built has to be there at once."""
    world, rounds = _at(directory, f"project{number}"), 0
    while time.monotonic() < end:
        for state in ("0", "1"):
            shutil.rmtree(world.project / "layers.d")
            shutil.copytree(directory / "states" / state, world.project / "layers.d")
            for layer in json.loads(world.must("build", "--json"))["layers"]:
                if not (Path(layer["path"]) / "layer.json").exists():
                    raise RuntimeError(f"{layer['path']} was built and is gone")
            rounds += 1
    return {"rounds": rounds}


def launches(directory: Path, number: int, end: float) -> dict[str, Any]:
    """Binds a session, starts its sandbox, ends the session while the sandbox runs: that must not notice."""
    world, rounds = _at(directory, f"project{number}"), 0
    while time.monotonic() < end:
        name = f"s{os.getpid()}-{rounds}"
        world.must("session", "create", name, "-l", "core", "-l", "one")
        session = world.store / "sessions" / name
        manifest = json.loads((session / "manifest.json").read_bytes())
        files = " ".join(f"{layer['path']}/layer.json {layer['path']}/site-packages/*" for layer in manifest["layers"])
        sandbox = subprocess.Popen(
            [session / "run", "sh", "-c", f"echo ready; sleep 0.4; ls -d {files} >/dev/null && echo fine"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert sandbox.stdout is not None
        if sandbox.stdout.readline() == "ready\n":
            time.sleep(0.1)  # bubblewrap takes its locks while the command starts
            world.must("session", "remove", name)
        said = sandbox.stdout.read()
        if sandbox.wait() != 0 or said != "fine\n":
            raise RuntimeError(f"a running sandbox lost its layers: {said!r}")
        sandbox.stdout.close()
        rounds += 1
    return {"rounds": rounds}


def collects(directory: Path, number: int, end: float) -> dict[str, Any]:
    world, rounds, collected = _at(directory, "nothing"), 0, 0
    while time.monotonic() < end:
        collected += len(json.loads(world.must("gc", "--json"))["paths"])
        rounds += 1
        time.sleep(0.05)
    return {"rounds": rounds, "collected": collected}


def verifies(directory: Path, number: int, end: float) -> dict[str, Any]:
    world, rounds = _at(directory, "nothing"), 0
    while time.monotonic() < end:
        world.must("verify")
        rounds += 1
    return {"rounds": rounds}


ROLES: Sequence[tuple[Callable[[Path, int, float], dict[str, Any]], int]] = (
    (builds, 0),
    (builds, 1),
    (launches, 2),
    (launches, 2),
    (collects, 0),
    (collects, 1),
    (verifies, 0),
)


def together(directory: Path, seconds: float) -> None:
    prepare(directory)
    # The project of those who launch is built once, so that its layers are roots of nobody but it.
    _at(directory, "project2").must("build")
    for file in (directory / "store" / "gcroots").iterdir():
        file.unlink()
    end = time.monotonic() + seconds
    running = [(role.__name__, *_fork(lambda r=role, n=number: r(directory, n, end))) for role, number in ROLES]
    for name, child, pipe in running:
        print(json.dumps({"role": name, **_result(child, pipe)}), flush=True)


def _fork(work: Callable[[], dict[str, Any]]) -> tuple[int, int]:
    """A process that does ``work``: its id, and where its result can be read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    signal.alarm(TIMEOUT)
    try:
        result = work()
    except BaseException:
        result = {"error": traceback.format_exc()}
    with os.fdopen(writing, "w") as pipe:
        json.dump(result, pipe)
    os._exit(0)


def _result(child: int, pipe: int) -> dict[str, Any]:
    with os.fdopen(pipe) as opened:
        text = opened.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    answer: dict[str, Any] = json.loads(text)
    return answer


if __name__ == "__main__":
    command, place, *numbers = sys.argv[1:]
    if command == "build":
        crowd(Path(place), *map(int, numbers))
    else:
        together(Path(place), float(numbers[0]))

"""The process that runs commands with faults: it has everything imported, and forks for each of them.

``python -m tests.torture.zygote DIRECTORY``, with ``faults.so`` preloaded, answers one JSON object a line: a request
``{"scenario", "step", "action", "sticky", "kinds"}`` with an :class:`Outcome`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.torture import world as worlds
from tests.torture.world import SCENARIOS, World

TIMEOUT = 120  # seconds for a command, or for a check


def main(directory: Path) -> None:
    worlds.alone()
    # What is imported in a child would be imported again in the next.
    warm = World(directory / "warm")
    worlds.copy(_template(directory, "session"), warm.root)
    for scenario in SCENARIOS.values():
        warm.run(*scenario.command)
    for line in sys.stdin:
        print(json.dumps(_attempt(directory, **json.loads(line))), flush=True)


def _attempt(directory: Path, *, scenario: str, step: int, action: int, sticky: bool, kinds: int) -> dict[str, Any]:
    chosen = SCENARIOS[scenario]
    world = World(directory / "world")
    template = _template(directory, scenario)
    worlds.copy(template, world.root)
    library = ctypes.CDLL(None)

    def hurt() -> dict[str, Any]:
        library.faults_arm(os.fsencode(world.store), step, action, sticky, kinds)
        status, _, err = world.run(*chosen.command)
        steps = library.faults_steps()
        library.faults_arm(b"", 0, 0, 0, 0)
        return {"status": status, "messages": err, "steps": steps}

    def check() -> dict[str, Any]:
        return {"problems": list(worlds.problems(world, chosen))}

    outcome = _forked(hurt)
    checked = _forked(check) if step else {"problems": []}
    return {**outcome, "problems": checked.get("problems", [f"the check ended with {checked}"])}


def _template(directory: Path, scenario: str) -> Path:
    """The world in which a scenario begins. Made at the place where it will be used: a store knows its own place."""
    prepare = SCENARIOS[scenario].prepare
    template = directory / f"template-{prepare.__name__}"
    if not template.exists():
        world = World(directory / "world")

        def make() -> dict[str, Any]:
            shutil.rmtree(world.root, ignore_errors=True)
            prepare(world)
            return {}

        made = _forked(make)
        if made:
            raise RuntimeError(f"{scenario}: {made}")
        world.root.rename(template)
    return template


def _forked(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The result of ``work`` in a child; ``signal`` where that was killed, ``error`` where it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(TIMEOUT)
        try:
            result = work()
        except BaseException:
            result = {"error": traceback.format_exc()}
        with os.fdopen(writing, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else json.loads(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

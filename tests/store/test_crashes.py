"""kill -9 at every step: whatever had happened by then, valid paths are whole and the next run goes on.

A step is what CPython tells an audit hook about (open, rename, mkdir, chmod, utime, unlink, rmdir, scandir, flock,
ctypes calls) and each statement that SQLite runs. A forked child dies at its n-th step, for every n with
ENVDSL_TORTURE=1, for every third otherwise.
"""

from __future__ import annotations

import itertools
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envdsl.store.gc import collect
from envdsl.store.registry import Registry
from envdsl.store.store import Store
from envdsl.store.verify import verify
from tests.store.conftest import key_of, put, write_tree

FINISHED = 7
STRIDE = int(os.environ.get("ENVDSL_TORTURE") or 3)
STEPS = ("open", "os.", "fcntl.", "ctypes.", "shutil.")


class Countdown:
    """Counts the steps of this process; at the last one the process dies."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        raw = Registry._raw

        def traced(database: str, *, uri: bool) -> sqlite3.Connection:
            connection = raw(database, uri=uri)
            connection.set_trace_callback(lambda _: self.step())
            return connection

        Registry._raw = staticmethod(traced)  # type: ignore[method-assign]
        sys.addaudithook(lambda event, _: self.step() if event.startswith(STEPS) else None)


def dies_at(step: int, scenario: Callable[[Path], None], root: Path) -> bool:
    """Whether the scenario was killed at ``step``, and not finished before it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            Countdown(step).install()
            scenario(root)
            status = FINISHED
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == FINISHED
    return False


def builds(root: Path) -> None:
    with Store.open(root) as store, store.lease():
        for name, references in [("part", ()), ("layer", ("part",))]:
            with store.building(key_of(name)):
                if store.lookup(key_of(name)) is None:
                    put(store, name, references=references, **{"a/b": name, "c": ""})
        store.flush()


def collects(root: Path) -> None:
    with Store.open(root) as store:
        collect(store, [key_of("part")])


def filled(root: Path) -> None:
    builds(root)
    with Store.open(root) as store:
        put(store, "garbage", **{"d/e": "1"}, references=("part",))
        write_tree(store.layout.unpacked / "rubbish", {"f": ""})


@pytest.mark.parametrize(("prepare", "scenario"), [(None, builds), (filled, collects)], ids=["build", "gc"])
def test_killed_at_any_step(
    prepare: Callable[[Path], None] | None, scenario: Callable[[Path], None], memory: Path
) -> None:
    """Issue 2.9: a failed build leaves no valid path that is not whole."""
    for step in itertools.count(1, STRIDE):
        root = memory / str(step)
        if prepare:
            prepare(root)
        killed = dies_at(step, scenario, root)
        with Store.open(root) as store:
            assert verify(store).findings == (), f"killed at step {step}"
        scenario(root)
        with Store.open(root) as store:
            expected = ["unpacked/layer", "unpacked/part"] if scenario is builds else ["unpacked/part"]
            assert [path.path for path in store.paths()] == expected, f"killed at step {step}"
            assert verify(store).findings == ()
            collect(store, [key_of("layer"), key_of("part")])
            assert sorted(place.name for place in store.layout.unpacked.iterdir()) == [name[9:] for name in expected]
        assert [place.name for place in (root / "tmp").iterdir()] == ["locks"], f"killed at step {step}"
        assert {place.name for place in (root / "tmp" / "locks").iterdir()} == {"gate", "database"}
        if not killed:
            break
    assert step > 60

"""Many processes at one store. Each worker is a process of its own that runs this file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from envdsl.store.gc import collect
from envdsl.store.store import Store
from envdsl.store.verify import verify
from tests.store.conftest import PROJECT, key_of, put

KEYS = [f"part{number}" for number in range(6)]


def start(worker: str, root: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.test_processes", worker, str(root), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out


def build(store: Store, name: str, references: tuple[str, ...] = ()) -> bool:
    """Build as a scheduler does; says whether this process did it."""
    with store.building(key_of(name)):
        if store.lookup(key_of(name)):
            return False
        put(store, name, references=references, content=name * 100)
        return True


def work_build(root: Path) -> None:
    """All keys, again and again, each time under a lease that must hold them."""
    with Store.open(root) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        built = [name for name in KEYS if build(store, name)]
        print(*built)


def work_loop(root: Path, seconds: str) -> None:
    """Build parts and something that references them, and look at them while the lease runs."""
    rounds = 0
    end = time.monotonic() + float(seconds)
    with Store.open(root) as store:
        while time.monotonic() < end:
            with store.lease():
                for name in KEYS:
                    build(store, name)
                build(store, f"whole{rounds}-{id(store)}", references=tuple(KEYS))
                for name in KEYS:
                    path = store.lookup(key_of(name))
                    assert path is not None, f"{name} was collected under a lease"
                    assert (store.layout.absolute(path.path) / "content").read_text() == name * 100
            store.flush()
            rounds += 1
    print(rounds)


def work_collect(root: Path, seconds: str) -> None:
    collected = 0
    end = time.monotonic() + float(seconds)
    with Store.open(root) as store:
        while time.monotonic() < end:
            collected += len(collect(store, []).paths)
            time.sleep(0.02)
    print(collected)


def work_hold(root: Path) -> None:
    with Store.open(root) as store, store.building(key_of("part0")):
        print("ready", flush=True)
        sys.stdin.readline()


def test_eight_processes_build_each_key_once(memory: Path) -> None:
    """Issue 2.9: any number of processes may build at once; the same derivation is built once."""
    processes = [start("build", memory / "store") for _ in range(8)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    built = [name for process in processes for name in finish(process).split()]
    assert sorted(built) == KEYS
    with Store.open(memory / "store") as store:
        assert len(store.paths()) == len(KEYS)
        assert verify(store).findings == ()
        assert collect(store, map(key_of, KEYS)).rubbish == ()


def test_a_killed_holder_frees_the_key_for_who_waits(memory: Path) -> None:
    holder = start("hold", memory / "store")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    with Store.open(memory / "store") as store:
        began = time.monotonic()
        with store.building(key_of("part0"), waiting=lambda: holder.send_signal(signal.SIGKILL)):
            assert time.monotonic() - began < 5
        assert build(store, "part0")
    holder.communicate()


def test_builds_and_collections_run_together(memory: Path) -> None:
    """Issue 2.12: gc keeps what running builds use, whatever the order of events."""
    root = memory / "store"
    seconds = "2"
    builders = [start("loop", root, seconds) for _ in range(3)]
    collectors = [start("collect", root, seconds) for _ in range(2)]
    rounds = [int(finish(process)) for process in builders]
    collected = [int(finish(process)) for process in collectors]
    assert min(rounds) > 0
    assert sum(collected) > len(KEYS)
    with Store.open(root) as store:
        assert verify(store).findings == ()
        alive = {path.key for path in store.paths()}
        assert all(reference in alive for path in store.paths() for reference in path.references)
        collect(store, [])
        assert store.paths() == []
        store.close()
        assert {place.name for place in store.layout.tmp.iterdir()} == {"locks"}
        assert {place.name for place in (store.layout.tmp / "locks").iterdir()} == {"gate", "database"}


if __name__ == "__main__":
    worker, root, *arguments = sys.argv[1:]
    globals()[f"work_{worker}"](Path(root), *arguments)

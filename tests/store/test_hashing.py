"""Hashing in processes: the same answers as without, whatever becomes of the processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from blake3 import blake3

from envdsl.store import hashing
from envdsl.store.hashing import File, Hashing


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes from the first file on."""
    monkeypatch.setattr(hashing, "_ALONE", 0)


def make(directory: Path, count: int) -> dict[bytes, bytes]:
    """``count`` files, and what has to be found of each."""
    made = {}
    for number in range(count):
        content = os.urandom(number * 7 % 5000)
        place = directory / f"file {number}\n\udcff"
        place.write_bytes(content)
        made[os.fsencode(place)] = f"{blake3(content).hexdigest()} {len(content)}".encode()
    return made


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_files_are_hashed_whoever_does_it(tmp_path: Path, jobs: int) -> None:
    made = make(tmp_path, 2000)
    files = [File(place, 0 if number % 3 else 10_000_000) for number, place in enumerate(made)]  # a guess, no more
    with Hashing(jobs) as pool:
        for file in files[:1000]:
            pool.add(file)
        first = pool.mark()
        for file in files[1000:]:
            pool.add(file)
        pool.wait(first)
        assert [file.found for file in files[:1000]] == list(made.values())[:1000]
        pool.wait(pool.mark())
    assert {file.place: file.found for file in files} == made


def test_what_cannot_be_read_says_why_and_nothing_else_is_lost(tmp_path: Path) -> None:
    made = make(tmp_path, 3)
    (tmp_path / "link").symlink_to("nowhere")
    files = [File(place, 1) for place in [*made, os.fsencode(tmp_path / "absent"), os.fsencode(tmp_path / "link")]]
    with Hashing(2) as pool:
        for file in files:
            pool.add(file)
        pool.wait(pool.mark())
    *read, absent, link = [file.found for file in files]
    assert read == list(made.values())
    assert isinstance(absent, FileNotFoundError)
    assert isinstance(link, OSError)
    assert link.errno == errno.ELOOP


def test_a_process_that_dies_is_made_up_for(tmp_path: Path) -> None:
    made = make(tmp_path, 1000)
    files = [File(place, 5000) for place in made]
    with Hashing(2) as pool:
        for file in files[:100]:
            pool.add(file)
        (worker,) = pool._workers
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        for file in files[100:]:
            pool.add(file)
        pool.wait(pool.mark())
    assert [file.found for file in files] == list(made.values())


def test_a_process_that_does_not_start_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    made = make(tmp_path, 100)
    files = [File(place, 5000) for place in made]
    with Hashing(3) as pool:
        for file in files:
            pool.add(file)
        pool.wait(pool.mark())
    assert [file.found for file in files] == list(made.values())


def test_a_process_ends_with_who_asks_and_takes_nothing_from_the_working_directory(tmp_path: Path) -> None:
    (tmp_path / "blake3.py").write_text("raise SystemExit('this is not ours')\n")
    content = tmp_path / "content"
    content.write_bytes(b"x")
    program = f"""\
import os
from envdsl.store import hashing
hashing._ALONE = 0
pool = hashing.Hashing(2)
file = hashing.File({os.fsencode(content)!r}, 1)
pool.add(file)
pool.wait(pool.mark())
assert pool._workers[0]._process.poll() is None
print(pool._workers[0]._process.pid, file.found.decode(), flush=True)
os.kill(os.getpid(), {signal.SIGKILL:d})
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, digest, size = done.stdout.split()
    assert (digest, size) == (blake3(b"x").hexdigest(), "1")
    # Its input has ended, so it does; nobody but init can wait for it.
    descriptor = None
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(30_000), "the process outlives who started it"
    os.close(descriptor)

"""Paired measurements, fresh file systems, and the table."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: seconds are medians, ``ratio`` is the median of the pairs' ratios. Lines about disks give
    bytes (``unit`` "B").

    ``load`` is the machine's load average over the last minute of the measurement: above the number of cores,
    the times say little, the ratio something, and ``cpu`` more: the same ratio of the processor time (user and
    system) of all processes that each side started; None where a side starts none.
    """

    work: str
    against: str
    at_most: float
    ratio: float
    ours: float
    theirs: float
    note: str = ""
    load: float = 0.0
    unit: str = "s"
    cpu: float | None = None

    @property
    def reached(self) -> bool:
        return self.ratio <= self.at_most

    def with_note(self, note: str) -> Row:
        return replace(self, note=note)


def pairs(
    work: str,
    against: str,
    at_most: float,
    ours: Callable[[int], object],
    theirs: Callable[[int], object],
    *,
    runs: int = 7,
    warmups: int = 1,
    before: Callable[[], object] = lambda: None,
    note: str = "",
) -> Row:
    """Run the two sides in turn, ``runs`` times after ``warmups``; each is called with the number of the run,
    which is negative for a warm-up.

    A side that returns a float has measured itself, in seconds. ``before`` is called before each, unmeasured.
    """
    measured: list[tuple[_Taken, _Taken]] = []

    def take(side: Callable[[int], object], run: int) -> _Taken:
        before()
        processor, begin = _processor_time(), time.perf_counter()
        result = side(run)
        wall = result if isinstance(result, float) else time.perf_counter() - begin
        return _Taken(wall, _processor_time() - processor)

    for run in range(-warmups, runs):
        # The side that goes first changes, so that neither always profits from the other's warm caches.
        if run % 2:
            second, first = take(theirs, run), take(ours, run)
        else:
            first, second = take(ours, run), take(theirs, run)
        if run >= 0:
            measured.append((first, second))
    return Row(
        work,
        against,
        at_most,
        statistics.median(first.wall / second.wall for first, second in measured),
        statistics.median(first.wall for first, _ in measured),
        statistics.median(second.wall for _, second in measured),
        note,
        os.getloadavg()[0],
        cpu=statistics.median(first.cpu / second.cpu for first, second in measured)
        if all(first.cpu and second.cpu for first, second in measured)
        else None,
    )


class _Taken(NamedTuple):
    """What one run of a side took, in seconds."""

    wall: float
    cpu: float


def _processor_time() -> float:
    """Seconds of user and system time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run a command to its end and return what it printed. Raises RuntimeError with that if it fails."""
    done = subprocess.run(
        arguments, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    said = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: status {done.returncode}\n{said}")
    return said


def spawn(arguments: Sequence[str], environment: Mapping[str, str], *, files: Sequence[tuple[int, Path]] = ()) -> None:
    """Run a command that takes milliseconds: no pipes, no threads, and its output goes nowhere.

    ``arguments`` begin with an absolute path; ``files`` are opened for it under the given numbers. Raises
    RuntimeError if it fails.
    """
    actions = [(os.POSIX_SPAWN_OPEN, number, str(path), os.O_RDONLY, 0) for number, path in files]
    actions += [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    process = os.posix_spawn(arguments[0], list(arguments), environment, file_actions=actions)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status != 0:
        raise RuntimeError(f"{' '.join(arguments)}: status {status}")


@contextmanager
def fresh_file_system(size: str = "40G") -> Iterator[tuple[Path, str]]:
    """An empty file system and what it is: a loop-mounted ext4 as root, else a directory in /dev/shm.

    ``size`` is its most; the image is a sparse file in the directory for temporary files.
    """
    if os.geteuid() == 0:
        with tempfile.TemporaryDirectory(prefix="envdsl-bench-") as place:
            image, mounted = Path(place) / "image", Path(place) / "mnt"
            mounted.mkdir()
            try:
                subprocess.run(["truncate", "-s", size, image], check=True)
                subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image], check=True)
                subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
            except (OSError, subprocess.CalledProcessError):
                pass  # no loop devices in this container: tmpfs below
            else:
                try:
                    yield mounted, "fresh ext4 on a loop device"
                finally:
                    # Lazily: whatever still has a file open must not leave us with a mount that outlives the run.
                    subprocess.run(["umount", "--lazy", mounted], check=True)
                return
    place = tempfile.mkdtemp(prefix="envdsl-bench-", dir="/dev/shm")
    try:
        yield Path(place), "tmpfs"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| work | against | at most | ratio | CPU | ours | theirs | load | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        mark = "reached" if row.reached else "**not reached**"
        note = f" ({row.note})" if row.note else ""
        cpu = "" if row.cpu is None else f"{row.cpu:.2f}"
        lines.append(
            f"| {row.work} | {row.against} | {row.at_most:g} | {row.ratio:.2f} | {cpu} | "
            f"{_amount(row.ours, row.unit)} | {_amount(row.theirs, row.unit)} | {row.load:.1f} | {mark}{note} |"
        )
    return "\n".join(lines)


def _amount(number: float, unit: str) -> str:
    if unit == "B":
        return f"{number / 1e6:.1f} MB"
    return f"{number * 1000:.1f} ms" if number < 1 else f"{number:.2f} s"

"""Paired measurements, fresh file systems, and the table."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: seconds are medians, ``ratio`` is the median of the pairs' ratios."""

    work: str
    against: str
    at_most: float
    ratio: float
    ours: float
    theirs: float
    note: str = ""

    @property
    def reached(self) -> bool:
        return self.ratio <= self.at_most


def pairs(
    work: str,
    against: str,
    at_most: float,
    ours: Callable[[int], object],
    theirs: Callable[[int], object],
    *,
    runs: int = 7,
    warmups: int = 1,
    note: str = "",
) -> Row:
    """Run the two sides in turn, ``runs`` times after ``warmups``; each is called with the number of the run."""
    measured: list[tuple[float, float]] = []
    for run in range(-warmups, runs):
        # The side that goes first changes, so that neither always profits from the other's warm caches.
        if run % 2:
            second, first = _seconds(theirs, run), _seconds(ours, run)
        else:
            first, second = _seconds(ours, run), _seconds(theirs, run)
        if run >= 0:
            measured.append((first, second))
    return Row(
        work,
        against,
        at_most,
        statistics.median(first / second for first, second in measured),
        statistics.median(first for first, _ in measured),
        statistics.median(second for _, second in measured),
        note,
    )


def _seconds(side: Callable[[int], object], run: int) -> float:
    begin = time.perf_counter()
    side(run)
    return time.perf_counter() - begin


def command(arguments: Sequence[str], *, environment: dict[str, str] | None = None, cwd: Path | None = None) -> None:
    """Run a command to its end; its output is thrown away unless it fails."""
    done = subprocess.run(
        arguments, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)}: status {done.returncode}\n{done.stdout.decode(errors='replace')}")


@contextmanager
def fresh_file_system(size: str = "8G") -> Iterator[tuple[Path, str]]:
    """An empty file system and what it is: a loop-mounted ext4 as root, else a directory in /dev/shm."""
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
                    subprocess.run(["umount", mounted], check=True)
                return
    place = tempfile.mkdtemp(prefix="envdsl-bench-", dir="/dev/shm")
    try:
        yield Path(place), "tmpfs"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = ["| work | against | at most | ratio | ours | theirs | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        mark = "reached" if row.reached else "**not reached**"
        note = f" ({row.note})" if row.note else ""
        lines.append(
            f"| {row.work} | {row.against} | {row.at_most:g} | {row.ratio:.2f} | {_time(row.ours)} | "
            f"{_time(row.theirs)} | {mark}{note} |"
        )
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"

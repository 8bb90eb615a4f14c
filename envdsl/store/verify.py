"""Verification: read every byte of valid paths again and compare it with their listings.

A file with several names (hard links, as layers have them) is read once, and its finding is given for each name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from envdsl.errors import EnvdslError
from envdsl.reporter import Reporter, Task
from envdsl.store.failures import failures
from envdsl.store.store import Store, StorePath
from envdsl.store.tree import DIRECTORY_MODE, file_mode
from envdsl.store.treehash import Entry, Listing, hash_file, hash_link, in_threads, walk

_Digests: TypeAlias = dict[tuple[int, int, int], tuple[int, str]]


class Problem(StrEnum):
    """What is wrong with a member of a valid path."""

    MISSING = "missing"
    EXTRA = "extra"
    TYPE = "type"  # a file where a directory belongs, and the like
    CONTENT = "content"
    MODE = "mode"
    UNREADABLE = "unreadable"  # the disk or its permissions refuse it
    LISTING = "listing"  # the database's record of the path is damaged, so nothing can be said of its files


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One difference. ``path`` is the store path, ``key`` its key, ``member`` what differs, relative to the path
    ("" for the path itself); ``expected`` and ``found`` are digests, modes or types, as the problem is."""

    path: str
    member: str
    problem: Problem
    key: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        place = f"{self.path}/{self.member}" if self.member else self.path
        facts = (
            f": {self.found} instead of {self.expected}" if self.expected else f": {self.found}" if self.found else ""
        )
        return f"{place}: {self.problem}{facts}"


@dataclass(frozen=True, slots=True)
class Verified:
    """The outcome: how many valid paths and bytes were looked at, and all findings, sorted."""

    paths: int
    bytes: int
    findings: tuple[Finding, ...]


def verify(
    store: Store, *, paths: Iterable[StorePath] | None = None, jobs: int = 2, reporter: Reporter | None = None
) -> Verified:
    """Compare ``paths`` (default: all valid ones) with their listings, with ``jobs`` threads.

    Builds, repairs and gc may run meanwhile: a path that ceases to be valid is not reported, one that is registered
    anew is compared again. Raises EnvdslError ``store-io`` where the store as a whole cannot be read.
    """
    chosen = store.paths() if paths is None else list(paths)
    reporter = reporter or Reporter()
    digests: _Digests = {}
    findings: list[Finding] = []
    size = sum(path.size for path in chosen)
    with reporter.task("Verifying", total=size, unit="B") as task, failures("read", store.layout.root):
        for path in chosen:
            task.describe(path.path)
            findings += _findings(store, path, digests, task, jobs)
    return Verified(len(chosen), size, tuple(sorted(findings)))


def _findings(store: Store, path: StorePath, digests: _Digests, task: Task, jobs: int) -> list[Finding]:
    """What is wrong with a path that is valid before and after it was looked at, twice in the same way."""
    found = _compared(store, path, digests, task, jobs)
    while found:
        present = store.registry.by_key(path.key)
        again = _compared(store, present, digests, task, jobs) if present is not None else []
        if store.registry.by_key(path.key) is None:
            return []  # collected meanwhile
        if again == found:
            break
        found = again
    return found


def _compared(store: Store, path: StorePath, digests: _Digests, task: Task, jobs: int) -> list[Finding]:
    try:
        listing = store.listing(path.key)
    except EnvdslError as error:
        if error.code not in ("store-unknown-key", "store-database-damaged"):
            raise
        return [Finding(path.path, "", Problem.LISTING, path.key, found=str(error))]
    return _Comparison(store, path, listing, digests, task).run(jobs)


class _Comparison:
    def __init__(self, store: Store, path: StorePath, listing: Listing, digests: _Digests, task: Task) -> None:
        self._place = os.fsencode(store.layout.absolute(path.path))
        self._path = path
        self._entries = {entry.path: entry for entry in listing}
        self._digests = digests
        self._task = task

    def run(self, jobs: int) -> list[Finding]:
        try:
            present = self._present()
        except FileNotFoundError:  # it is being moved away: the caller looks whether it is valid still
            present = None
        except OSError as error:
            return [self._unreadable("", error)]
        if present is None:
            return [self._finding("", Problem.MISSING)]
        findings = self._root_mode()
        findings += [self._finding(member, Problem.EXTRA) for member in present if member not in self._entries]
        findings += [self._finding(member, Problem.MISSING) for member in self._entries if member not in present]
        both = [(entry, *present[entry.path]) for entry in self._entries.values() if entry.path in present]
        for found in in_threads(self._compare, both, jobs):
            findings += found
        return sorted(findings)

    def _root_mode(self) -> list[Finding]:
        try:
            mode = os.lstat(self._place).st_mode
        except FileNotFoundError:
            return [self._finding("", Problem.MISSING)]
        if not stat.S_ISDIR(mode) or stat.S_IMODE(mode) == DIRECTORY_MODE:
            return []
        return [self._finding("", Problem.MODE, f"{DIRECTORY_MODE:04o}", f"{stat.S_IMODE(mode):04o}")]

    def _present(self) -> dict[str, tuple[bytes, int]] | None:
        """Place and mode of each member on disk; None where there is nothing at all."""
        try:
            mode = os.lstat(self._place).st_mode
        except FileNotFoundError:
            return None
        if not stat.S_ISDIR(mode):
            return {self._path.path.rpartition("/")[2]: (self._place, mode)}
        return {member: (place, mode) for member, place, mode in walk(self._place)}

    def _compare(self, members: Sequence[tuple[Entry, bytes, int]]) -> list[Finding]:
        findings = []
        for entry, place, mode in members:
            found = _type(mode)
            if found != entry.type:
                findings.append(self._finding(entry.path, Problem.TYPE, entry.type, found))
                continue
            wanted = DIRECTORY_MODE if found == "directory" else file_mode(entry.executable)
            if found != "symlink" and stat.S_IMODE(mode) != wanted:
                findings.append(self._finding(entry.path, Problem.MODE, f"{wanted:04o}", f"{stat.S_IMODE(mode):04o}"))
            if found == "directory":
                continue
            try:
                size, digest = self._digest(place) if found == "file" else hash_link(place)
            except FileNotFoundError:
                findings.append(self._finding(entry.path, Problem.MISSING))
            except OSError as error:
                findings.append(self._unreadable(entry.path, error))
            else:
                if (size, digest) != (entry.size, entry.digest):
                    findings.append(self._finding(entry.path, Problem.CONTENT, entry.digest, digest))
            self._task.advance(entry.size)
        return findings

    def _digest(self, place: bytes) -> tuple[int, str]:
        status = os.lstat(place)
        if status.st_nlink == 1:
            return hash_file(place)
        # The time of the last change, too: a number may be given to another file while others are collected.
        inode = (status.st_dev, status.st_ino, status.st_ctime_ns)
        known = self._digests.get(inode)
        if known is None:
            known = self._digests[inode] = hash_file(place)
        return known

    def _unreadable(self, member: str, error: OSError) -> Finding:
        return self._finding(member, Problem.UNREADABLE, found=error.strerror or str(error))

    def _finding(self, member: str, problem: Problem, expected: str = "", found: str = "") -> Finding:
        return Finding(self._path.path, member, problem, self._path.key, expected, found)


def _type(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "symlink" if stat.S_ISLNK(mode) else "special file"

"""Verification: read every byte of valid paths again and compare it with their listings.

A path is walked together with its listing: each member costs one stat, and one comparison with its record. A file
with several names (hard links, as layers have them) is read once, and its finding is given for each name.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from envdsl.errors import EnvdslError
from envdsl.reporter import Reporter, Task
from envdsl.store.failures import failures
from envdsl.store.hashing import File, Hashing
from envdsl.store.store import Store, StorePath
from envdsl.store.tree import DIRECTORY_MODE, file_mode
from envdsl.store.treehash import TYPES, Directory, hash_link, member_name, walk

_AHEAD = 50_000  # files that were walked and are not compared yet: a few dozen megabytes
# What tells one file from another. The time of the last change, too: a number may be given to another file while
# others are collected.
_Inode: TypeAlias = tuple[int, int, int]
_MODES = {
    b"d": stat.S_IFDIR | DIRECTORY_MODE,
    b"f": stat.S_IFREG | file_mode(executable=False),
    b"x": stat.S_IFREG | file_mode(executable=True),
}


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
    """Compare ``paths`` (default: all valid ones) with their listings, with ``jobs`` processes.

    Builds, repairs and gc may run meanwhile: a path that ceases to be valid is not reported, one that is registered
    anew is compared again. Raises EnvdslError ``store-io`` where the store as a whole cannot be read.
    """
    chosen = store.paths() if paths is None else list(paths)
    reporter = reporter or Reporter()
    findings: list[Finding] = []
    size = sum(path.size for path in chosen)
    with (
        reporter.task("Verifying", total=size, unit="B") as task,
        failures("read", store.layout.root),
        Hashing(jobs) as hashing,
    ):
        look = _Look(store, hashing, task)
        begun: deque[_Comparison] = deque()
        ahead = 0
        # Files are hashed while the next paths are walked: the first may have most of them.
        for path in chosen:
            task.describe(path.path)
            begun.append(look.begin(path))
            ahead += begun[-1].files
            while ahead > _AHEAD:
                ahead -= begun[0].files
                findings += look.end(begun.popleft())
        for comparison in begun:
            findings += look.end(comparison)
    return Verified(len(chosen), size, tuple(sorted(findings)))


class _Look:
    """One run over many paths. ``files`` are those of several names that were seen already."""

    def __init__(self, store: Store, hashing: Hashing, task: Task) -> None:
        self.store = store
        self.hashing = hashing
        self.task = task
        self.files: dict[_Inode, File] = {}

    def begin(self, path: StorePath) -> _Comparison:
        comparison = _Comparison(self, path)
        comparison.walk()
        return comparison

    def end(self, comparison: _Comparison) -> list[Finding]:
        """What is wrong with a path that is valid before and after it was looked at, twice in the same way."""
        key = comparison.path.key
        found = comparison.findings()
        while found:
            present = self.store.registry.by_key(key)
            again = self.begin(present).findings() if present is not None else []
            if self.store.registry.by_key(key) is None:
                return []  # collected meanwhile
            if again == found:
                break
            found = again
        return found


class _Comparison:
    """One path and its listing: :meth:`walk` looks at names and modes, and has files hashed; :meth:`findings` waits
    for that, and compares."""

    def __init__(self, look: _Look, path: StorePath) -> None:
        self.path = path
        self._look = look
        self._place = os.fsencode(look.store.layout.absolute(path.path))
        self._found: list[Finding] = []
        self._files: list[tuple[bytes, bytes, File]] = []
        self._hashed = 0

    def walk(self) -> None:
        try:
            root = self._look.store.listing(self.path.key).root
        except EnvdslError as error:
            if error.code not in ("store-unknown-key", "store-database-damaged"):
                raise
            self._find(b"", Problem.LISTING, found=str(error))
            return
        try:
            status = os.lstat(self._place)
            if stat.S_ISDIR(status.st_mode):
                if stat.S_IMODE(status.st_mode) != DIRECTORY_MODE:
                    self._find(b"", Problem.MODE, f"{DIRECTORY_MODE:04o}", f"{stat.S_IMODE(status.st_mode):04o}")
                self._directory(root, self._place, b"")
            else:
                self._alone(root, status)
        except FileNotFoundError:  # or it is being moved away: the caller looks whether it is valid still
            self._find(b"", Problem.MISSING)
        except OSError as error:
            self._unreadable(b"", error)
        self._hashed = self._look.hashing.mark()

    @property
    def files(self) -> int:
        return len(self._files)

    def findings(self) -> list[Finding]:
        """All differences, sorted."""
        self._look.hashing.wait(self._hashed)
        for member, record, file in self._files:
            if isinstance(file.found, OSError):
                if isinstance(file.found, FileNotFoundError):
                    self._find(member, Problem.MISSING)
                else:
                    self._unreadable(member, file.found)
            elif file.found != record[2:]:
                self._find(member, Problem.CONTENT, record[2:66].decode(), file.found[:64].decode())
            self._look.task.advance(file.size)
        return sorted(self._found)

    def _directory(self, directory: Directory, place: bytes, prefix: bytes) -> None:
        entries = directory.entries
        seen = set()
        with os.scandir(place) as members:
            for member in members:
                name = member.name
                item = entries.get(name)
                if item is None:
                    self._extra(member, prefix)
                    continue
                seen.add(name)
                status = member.stat(follow_symlinks=False)
                if isinstance(item, bytes) and status.st_mode == _MODES.get(item[:1]):  # nearly all of them
                    self._files.append((prefix + name, item, self._file(member.path, status)))
                else:
                    self._member(prefix + name, item, member.path, status)
        if len(seen) < len(entries):
            for name in entries.keys() - seen:
                self._missing(prefix + name, entries[name])

    def _alone(self, root: Directory, status: os.stat_result) -> None:
        """A path that is a file, and the only entry of its listing."""
        name = self._place.rpartition(b"/")[2]
        for expected, item in root.entries.items():
            if expected == name:
                self._member(name, item, self._place, status)
            else:
                self._missing(expected, item)
        if name not in root.entries:
            self._find(name, Problem.EXTRA)

    def _member(self, path: bytes, item: bytes | Directory, place: bytes, status: os.stat_result) -> None:
        mode = status.st_mode
        letter = item[:1] if isinstance(item, bytes) else b"d"
        if mode != _MODES.get(letter):
            expected, found = TYPES[letter], _type(mode)
            if found != expected:
                self._find(path, Problem.TYPE, expected, found)
                return
            if isinstance(item, bytes) and found == "symlink":
                self._symlink(path, item, place)
                return
            wanted = stat.S_IMODE(_MODES[letter])
            self._find(path, Problem.MODE, f"{wanted:04o}", f"{stat.S_IMODE(mode):04o}")
        if isinstance(item, bytes):
            self._files.append((path, item, self._file(place, status)))
        else:
            self._directory(item, place, path + b"/")

    def _file(self, place: bytes, status: os.stat_result) -> File:
        inode = (status.st_dev, status.st_ino, status.st_ctime_ns)
        file = self._look.files.get(inode)
        if file is None:
            file = File(place, status.st_size)
            if status.st_nlink > 1:
                self._look.files[inode] = file
            self._look.hashing.add(file)
        return file

    def _symlink(self, path: bytes, record: bytes, place: bytes) -> None:
        size, digest = hash_link(place)
        if f"{digest} {size}".encode() != record[2:]:
            self._find(path, Problem.CONTENT, record[2:66].decode(), digest)

    def _extra(self, member: os.DirEntry[bytes], prefix: bytes) -> None:
        path = prefix + member.name
        self._find(path, Problem.EXTRA)
        if member.is_dir(follow_symlinks=False):
            for below, _, _ in walk(member.path):
                self._find(path + b"/" + os.fsencode(below), Problem.EXTRA)

    def _missing(self, path: bytes, item: bytes | Directory) -> None:
        self._find(path, Problem.MISSING)
        if not isinstance(item, bytes):
            for name, below in item.entries.items():
                self._missing(path + b"/" + name, below)

    def _unreadable(self, member: bytes, error: OSError) -> None:
        self._find(member, Problem.UNREADABLE, found=error.strerror or str(error))

    def _find(self, member: bytes, problem: Problem, expected: str = "", found: str = "") -> None:
        name = member_name(member)
        self._found.append(Finding(self.path.path, name, problem, self.path.key, expected, found))


def _type(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "symlink" if stat.S_ISLNK(mode) else "special file"

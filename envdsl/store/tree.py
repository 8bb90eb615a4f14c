"""Trees on disk: making them read-only, and removing read-only ones.

Files may be hard links that other trees share: nothing here changes a file that is to be removed. Directories
are never shared, and an ordinary user can neither move nor empty one without the permission to write in it.
"""

# Bytes and calls of os, not pathlib: file names need not be text, and there are very many of them.
# ruff: noqa: PTH101, PTH106, PTH108

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from envdsl.store.treehash import walk

MTIME = 1  # seconds since 1970; not 0, which some tools take for "unknown"
DIRECTORY_MODE = 0o555


def file_mode(executable: bool) -> int:
    """The mode of a file in the store."""
    return 0o555 if executable else 0o444


def seal(path: Path) -> None:
    """Give everything *below* ``path`` (or the file ``path`` itself) the store's modes and time."""
    if not path.is_dir():
        _seal_member(os.fsencode(path), path.lstat().st_mode)
        return
    # Members before the directory that they are in, whose time and mode are then final.
    for _, place, mode in reversed(list(walk(os.fsencode(path)))):
        _seal_member(place, mode)


def seal_root(path: Path) -> None:
    """The same for the directory ``path`` alone: only after its rename, since moving a directory writes into it."""
    if path.is_dir():
        _seal_member(os.fsencode(path), path.lstat().st_mode)


def move(source: Path, destination: Path) -> None:
    """Rename ``source``, a file or a directory (which is writable by its owner afterwards)."""
    if stat.S_ISDIR(mode := source.lstat().st_mode) and not mode & stat.S_IWUSR:
        source.chmod(0o755)
    source.rename(destination)


def remove_tree(path: Path) -> int:
    """Remove ``path`` with all that is in it; gives the bytes of disk that this freed, a file with several
    names (hard links) counting when its last name goes. What is gone already is no error."""
    freed = 0
    place = os.fsencode(path)
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            return _remove_file(place)
        directories = [place]
        for directory in directories:  # grows while it is walked
            os.chmod(directory, 0o700)
            with os.scandir(directory) as members:
                for member in list(members):
                    if member.is_dir(follow_symlinks=False):
                        directories.append(member.path)
                    else:
                        freed += _remove_file(member.path)
        for directory in reversed(directories):
            os.rmdir(directory)
    except FileNotFoundError:
        pass
    return freed


def disk_usage(paths: Iterable[Path]) -> int:
    """The bytes of disk that removing all of ``paths`` would free: a file whose other names (hard links) are
    not among them frees nothing. What is gone already is no error."""
    freed = 0
    names: dict[tuple[int, int], int] = {}  # by inode: how many names were seen, of those that have several
    for path in paths:
        for place in _files(os.fsencode(path)):
            try:
                status = os.lstat(place)
            except FileNotFoundError:
                continue
            if status.st_nlink > 1:
                inode = (status.st_dev, status.st_ino)
                names[inode] = names.get(inode, 0) + 1
                if names[inode] < status.st_nlink:
                    continue
            freed += status.st_blocks * 512
    return freed


def _files(place: bytes) -> Iterator[bytes]:
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            yield place
            return
    except FileNotFoundError:
        return
    for _, member, mode in walk(place):
        if not stat.S_ISDIR(mode):
            yield member


def _remove_file(place: bytes) -> int:
    status = os.lstat(place)
    os.unlink(place)
    return status.st_blocks * 512 if status.st_nlink == 1 else 0


def _seal_member(place: bytes, mode: int) -> None:
    if not stat.S_ISLNK(mode):
        wanted = DIRECTORY_MODE if stat.S_ISDIR(mode) else file_mode(bool(mode & stat.S_IXUSR))
        if stat.S_IMODE(mode) != wanted:
            os.chmod(place, wanted)
    os.utime(place, (MTIME, MTIME), follow_symlinks=False)

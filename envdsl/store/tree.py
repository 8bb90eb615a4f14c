"""Trees on disk: making them read-only, and removing read-only ones.

Files may be hard links that other trees share: nothing here changes a file that is to be removed. Directories
are never shared, and an ordinary user can neither move nor empty one without the permission to write in it.
"""

# Bytes and calls of os, not pathlib: file names need not be text, and there are very many of them.
# ruff: noqa: PTH101, PTH106, PTH108

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from envdsl.store.treehash import walk

MTIME = 1  # seconds since 1970; not 0, which some tools take for "unknown"
DIRECTORY_MODE = 0o555
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_BLOCK = 512  # bytes of st_blocks, whatever the file system's are (stat(2))


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


def exchange(source: Path, destination: Path) -> None:
    """Let two trees (or files) of one file system change places in one step; where the kernel or the file system
    knows none, in three. Only ``source`` need exist."""
    for place in (source, destination):
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o755)  # moving a directory to another one writes into it
    if not os.path.lexists(destination):
        source.rename(destination)
    elif not _exchange(source, destination):
        between = source.with_name(f"{source.name}.old")
        destination.rename(between)
        source.rename(destination)
        between.rename(source)


def _exchange(source: Path, destination: Path) -> bool:
    """renameat2(2) with RENAME_EXCHANGE; whether there is such a thing here."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(destination), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(number, os.strerror(number), str(destination))


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
            blocks = os.lstat(directory).st_blocks
            os.rmdir(directory)
            freed += blocks * _BLOCK
    except FileNotFoundError:
        pass
    return freed


class Account:
    """What the disk would get back if paths were removed one after the other.

    A file with several names (hard links) counts when the last of them is among the paths.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], int] = {}  # by inode: how many names were seen, of those that have several

    def remove(self, path: Path) -> int:
        """The bytes that removing ``path`` frees after all that was removed before; nothing for what is not there."""
        freed = 0
        for place in _everything(os.fsencode(path)):
            try:
                status = os.lstat(place)
            except FileNotFoundError:
                continue
            if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
                inode = (status.st_dev, status.st_ino)
                seen = self._names.pop(inode, 0) + 1
                if seen < status.st_nlink:
                    self._names[inode] = seen
                    continue
            freed += status.st_blocks * _BLOCK
        return freed


def disk_usage(paths: Iterable[Path]) -> int:
    """The bytes of disk that removing all of ``paths`` would free, in the same way."""
    account = Account()
    return sum(account.remove(path) for path in paths)


def _everything(place: bytes) -> Iterator[bytes]:
    yield place
    pending = [place]
    while pending:
        directory = pending.pop()
        try:
            with os.scandir(directory) as members:
                for member in members:
                    yield member.path
                    if member.is_dir(follow_symlinks=False):
                        pending.append(member.path)
        except (FileNotFoundError, NotADirectoryError):
            continue


def _remove_file(place: bytes) -> int:
    status = os.lstat(place)
    os.unlink(place)
    return status.st_blocks * _BLOCK if status.st_nlink == 1 else 0


def _seal_member(place: bytes, mode: int) -> None:
    if not stat.S_ISLNK(mode):
        wanted = DIRECTORY_MODE if stat.S_ISDIR(mode) else file_mode(bool(mode & stat.S_IXUSR))
        if stat.S_IMODE(mode) != wanted:
            os.chmod(place, wanted)
    os.utime(place, (MTIME, MTIME), follow_symlinks=False)

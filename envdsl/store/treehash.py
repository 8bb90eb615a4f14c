"""The tree hash: one blake3 for a directory and all that is in it (a Merkle tree; ``docs/format.md``).

A directory's *block* is the concatenation of one record for each of its entries, sorted by name as bytes::

    <type> <digest> <size> <name> NUL

``type`` is ``f`` (file), ``x`` (executable file), ``l`` (symbolic link) or ``d`` (directory). The digest of a
file is the blake3 of its content, that of a link the blake3 of its target, that of a directory the blake3 of
its block in key-derivation mode, so that no file's content can pass for a directory. Owners, times and all
mode bits but "executable" are no part of it.

A listing keeps the tree of directories, not a flat list: directories are immutable and shared, so that the
listing of a layer is made from its parts' listings by merging those directories alone that several parts
have. Nothing is read or hashed again.
"""

# Bytes and calls of os, not pathlib: file names need not be text, and there are very many of them.
# ruff: noqa: PTH115

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from blake3 import blake3

from envdsl.errors import EnvdslError

DIRECTORY_CONTEXT = "envdsl tree 1 directory"
LISTING_MAGIC = b"envdsl-listing 1"
_CHUNK = 1 << 18  # stays in the second-level cache; faster than mapping, and a file that shrinks cannot kill us
_DEEPEST = 250  # directories below each other; the walks of a tree are recursive
_THREADS_FROM = 256  # files; below, starting threads costs more than they bring

Item = TypeVar("Item")
Result = TypeVar("Result")
EntryType: TypeAlias = Literal["file", "directory", "symlink"]
TYPES: dict[bytes, EntryType] = {b"f": "file", b"x": "file", b"l": "symlink", b"d": "directory"}


class Entry(NamedTuple):
    """One member of a tree. ``path`` is relative and POSIX (undecodable bytes as surrogates, PEP 383),
    ``size`` in bytes (of a directory: the sum of what is in it), ``digest`` 64 hexadecimal digits."""

    path: str
    type: EntryType
    executable: bool
    size: int
    digest: str


Resolve: TypeAlias = Callable[[Entry, Entry], Entry]


class ListingConflictError(ValueError):
    """Two listings have different entries at one path."""

    def __init__(self, first: Entry, second: Entry) -> None:
        super().__init__(f"two different entries at {first.path}")
        self.first = first
        self.second = second


_by_name = itemgetter(0)


class Directory:
    """An immutable directory: its entries by name. Each is a directory, or a record without its name: the bytes
    ``<type> <digest> <size>``, as :func:`record` makes them."""

    def __init__(self, entries: dict[bytes, bytes | Directory]) -> None:
        self.entries = entries

    @cached_property
    def block(self) -> bytes:
        entries = sorted(self.entries.items(), key=_by_name)
        return b"".join([b"%s %s\0" % (i if isinstance(i, bytes) else i.record, name) for name, i in entries])

    @cached_property
    def digest(self) -> str:
        return blake3(self.block, derive_key_context=DIRECTORY_CONTEXT).hexdigest()

    @cached_property
    def size(self) -> int:
        return sum(int(item[67:]) if isinstance(item, bytes) else item.size for item in self.entries.values())

    @cached_property
    def record(self) -> bytes:
        return b"d %s %d" % (self.digest.encode(), self.size)

    def walk(self, prefix: str, found: list[Entry]) -> None:
        """Add all entries to ``found``: nested generators would pass each on once for every directory above it."""
        for name in sorted(self.entries):
            item = self.entries[name]
            path = prefix + member_name(name)
            found.append(_entry(path, item))
            if not isinstance(item, bytes):
                item.walk(path + "/", found)

    def blocks(self) -> Iterator[bytes]:
        yield self.block
        for name in sorted(self.entries):
            item = self.entries[name]
            if not isinstance(item, bytes):
                yield from item.blocks()


class Listing:
    """What is in a tree, with digests: enough to know its tree hash and to find any change on disk.

    Iterating gives the entries in the order of a walk: a directory before what is in it, names sorted as bytes.
    ``root`` is the directory itself.
    """

    root: Directory

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        """The listing of ``entries``, in any order; directories need not be listed unless they are empty.

        Raises ValueError for a path that is absolute, not normal, or there twice, and for one below a file.
        """
        root = Directory({})
        known = {"": root}
        for entry in entries:
            if entry.type == "directory":
                _directory(known, entry.path)
            else:
                parent, name = _split(entry.path)
                members = (known.get(parent) or _directory(known, parent)).entries
                if members.setdefault(name, record := _record(entry)) is not record:
                    raise ValueError(f"two entries at {entry.path!r}")
        self.root = root

    @classmethod
    def _of(cls, root: Directory) -> Listing:
        listing = cls.__new__(cls)
        listing.root = root
        return listing

    def tree_hash(self) -> str:
        """64 hexadecimal digits."""
        return self.root.digest

    @property
    def size(self) -> int:
        """Bytes of content of all files, each counted once for each name it has."""
        return self.root.size

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        found: list[Entry] = []
        self.root.walk("", found)
        return tuple(found)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listing) and self.tree_hash() == other.tree_hash()

    def __hash__(self) -> int:
        return hash(self.tree_hash())

    def prefix(self, directory: str) -> Listing:
        """The same tree below ``directory`` (``lib/python3.12``)."""
        root = self.root
        for name in reversed([_name(name, directory) for name in directory.split("/")]):
            root = Directory({name: root})
        return Listing._of(root)

    def union(self, *others: Listing, resolve: Resolve | None = None) -> Listing:
        """All trees laid over each other.

        ``resolve`` is asked where two entries of one path differ (in content, type or executable bit; two
        directories never do) and returns the one to keep; without it, :class:`ListingConflictError` is raised.
        """
        return Listing._of(_union([self.root, *(other.root for other in others)], "", resolve or _refuse))

    def encode(self) -> bytes:
        """A compact form for the database: zstandard over all blocks, parents first, each ended by a NUL."""
        from zstandard import ZstdCompressor

        return ZstdCompressor(level=1).compress(b"\0".join([LISTING_MAGIC, *self.root.blocks(), b""]))

    @classmethod
    def decode(cls, data: bytes) -> Listing:
        """The inverse of :meth:`encode`. Raises ValueError where a byte is wrong: each block must have the
        digest that its parent gives for it (the root's is the caller's to compare)."""
        from zstandard import ZstdDecompressor, ZstdError

        try:
            records = iter(ZstdDecompressor().decompress(data).split(b"\0"))
        except ZstdError as error:
            raise ValueError(f"not a listing: {error}") from None
        if next(records) != LISTING_MAGIC:
            raise ValueError("not a listing of this version")
        try:
            root = _decode(records)
        except RecursionError:
            raise ValueError("a damaged listing: too deep") from None
        if list(records) != [b""]:
            raise ValueError("a damaged listing: it ends too early or too late")
        return cls._of(root)


def scan(path: Path, *, threads: int | None = None) -> Listing:
    """Read and hash what is on disk: the directory ``path``, or the file ``path`` as the only entry of a listing.

    ``threads`` read and hash files (default: two, where there are enough of them to be worth it).
    Raises EnvdslError ``store-special-file`` for a device, socket or pipe; OSError where reading fails.
    """
    if not stat.S_ISDIR(path.lstat().st_mode):
        return Listing([_hashed(path.name, os.fsencode(path), path.lstat().st_mode)])
    found = list(walk(os.fsencode(path)))
    files = [(name, place, mode) for name, place, mode in found if not stat.S_ISDIR(mode)]
    entries: list[Entry] = [Entry(name, "directory", False, 0, "") for name, _, mode in found if stat.S_ISDIR(mode)]
    for hashed in in_threads(_hash_all, files, 2 if threads is None else threads):
        entries += hashed
    return Listing(entries)


def walk(root: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Everything below ``root``: path relative to it, place, mode. Parents come first; links are not followed."""
    pending = [(root, "")]
    while pending:
        directory, prefix = pending.pop()
        with os.scandir(directory) as members:
            for member in members:
                path = prefix + member_name(member.name)
                mode = member.stat(follow_symlinks=False).st_mode
                yield path, member.path, mode
                if stat.S_ISDIR(mode):
                    pending.append((member.path, path + "/"))


def hash_file(place: bytes, likely: int = _CHUNK) -> tuple[int, str]:
    """Size and blake3 of a file's content. ``likely`` is the size that it had a moment ago, where that is known: a
    small file that has it still takes a single read."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        data = os.read(descriptor, min(likely + 1, _CHUNK))  # one byte more than there should be shows the end
        hasher, size = blake3(data), len(data)
        if size == likely < _CHUNK:
            return size, hasher.hexdigest()
        while data:
            data = os.read(descriptor, _CHUNK)
            hasher.update(data)
            size += len(data)
        return size, hasher.hexdigest()
    finally:
        os.close(descriptor)


def hash_link(place: bytes) -> tuple[int, str]:
    """Size and blake3 of a symbolic link's target."""
    target = os.readlink(place)
    return len(target), blake3(target).hexdigest()


def in_threads(work: Callable[[Sequence[Item]], Result], items: Sequence[Item], threads: int) -> Iterable[Result]:
    """``work`` over slices of ``items`` in ``threads`` threads; in this one where they are few."""
    if threads < 2 or len(items) < _THREADS_FROM:
        return [work(items)]
    from concurrent.futures import ThreadPoolExecutor

    step = -(-len(items) // (threads * 8))
    with ThreadPoolExecutor(threads) as executor:
        return list(executor.map(work, [items[start : start + step] for start in range(0, len(items), step)]))


def _hash_all(files: Sequence[tuple[str, bytes, int]]) -> list[Entry]:
    return [_hashed(path, place, mode) for path, place, mode in files]


def _hashed(path: str, place: bytes, mode: int) -> Entry:
    if stat.S_ISREG(mode):
        return Entry(path, "file", bool(mode & stat.S_IXUSR), *hash_file(place))
    if stat.S_ISLNK(mode):
        return Entry(path, "symlink", False, *hash_link(place))
    raise EnvdslError.of(
        "store-special-file",
        f"{os.fsdecode(place)} is neither a file, a directory nor a symbolic link",
        hint="remove the device, socket or pipe",
    )


def member_name(name: bytes) -> str:
    """A name, or a path of several, as listings and messages spell it: bytes that are no UTF-8 as surrogates."""
    return name.decode("utf-8", "surrogateescape")


def _split(path: str) -> tuple[str, bytes]:
    parent, slash, name = path.rpartition("/")
    if slash and not parent:
        raise ValueError(f"not a normal relative path: {path!r}")
    return parent, _name(name, path)


def _name(name: str, path: str) -> bytes:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"not a normal relative path: {path!r}")
    return name.encode("utf-8", "surrogateescape")


def _record(entry: Entry) -> bytes:
    if len(entry.digest) != 64 or entry.size < 0:
        raise ValueError(f"no digest or size for {entry.path!r}")
    letter = "l" if entry.type == "symlink" else "x" if entry.executable else "f"
    return f"{letter} {entry.digest} {entry.size}".encode()


def _entry(path: str, item: bytes | Directory) -> Entry:
    if isinstance(item, bytes):
        kind = item[:1]
        return Entry(path, TYPES[kind], kind == b"x", int(item[67:]), item[2:66].decode())
    return Entry(path, "directory", False, item.size, item.digest)


def _directory(known: dict[str, Directory], path: str) -> Directory:
    """The directory at ``path``, made with its parents where it is new."""
    found = known.get(path)
    if found is None:
        if path.count("/") > _DEEPEST:
            raise ValueError(f"too deep: {path[:100]!r}…")
        parent, name = _split(path)
        found = known[path] = Directory({})
        if _directory(known, parent).entries.setdefault(name, found) is not found:
            raise ValueError(f"two entries at {path!r}")
    return found


def _union(directories: list[Directory], prefix: str, resolve: Resolve) -> Directory:
    if len(directories) == 1:
        return directories[0]
    entries = dict(directories[0].entries)
    shared: dict[bytes, list[Directory]] = {}
    for directory in directories[1:]:
        for name, item in directory.entries.items():
            present = entries.setdefault(name, item)
            if present is item or present == item:
                continue
            if isinstance(present, Directory) and isinstance(item, Directory):
                shared.setdefault(name, [present]).append(item)
                continue
            path = prefix + member_name(name)
            first, second = _entry(path, present), _entry(path, item)
            if resolve(first, second) == second:
                entries[name] = item
                shared.pop(name, None)
    for name, group in shared.items():
        entries[name] = _union(group, f"{prefix}{member_name(name)}/", resolve)
    return Directory(entries)


def _refuse(first: Entry, second: Entry) -> Entry:
    raise ListingConflictError(first, second)


def _decode(records: Iterator[bytes]) -> Directory:
    entries: dict[bytes, bytes | Directory] = {}
    below: list[tuple[bytes, bytes]] = []
    block: list[bytes] = []
    for record in iter(records.__next__, b""):
        name = record[67:].partition(b" ")[2]
        if not name or record[:1] not in TYPES:
            raise ValueError("a damaged listing")
        entries[name] = record[: -len(name) - 1]
        block.append(record)
        if record.startswith(b"d"):
            below.append((name, record[2:66]))
    for name, digest in below:
        child = entries[name] = _decode(records)
        if child.digest.encode() != digest:
            raise ValueError(f"a damaged listing: the digest of {member_name(name)!r} is another")
    directory = Directory(entries)
    block.append(b"")
    directory.__dict__["block"] = b"\0".join(block)
    return directory

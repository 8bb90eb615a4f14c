"""Archives: a tar file in one zstandard frame, written in one possible way and read in no other.

Tar has many dialects, and readers differ in what they make of one file: that is what hostile archives live on.
Here the bytes of an archive follow from its *list* (what its members are, in their order), which is its first
member. So the reader interprets no header. It composes the header that has to come next, and compares; whatever
the list does not call for is refused, and nothing has to be guarded against one by one: no other type of member,
no second member of a name, no size but the listed one, nothing missing, nothing behind the end.

The form: ustar headers with the owner 0, the time 1 and the modes 0644 and 0755; a pax header before each member
whose name or target is longer than 100 bytes or not ASCII, or that has more than 8 GiB (POSIX.1-2001); two zero
blocks at the end. Around it one zstandard frame (RFC 8878) with a checksum and a window of 8 MiB, nothing
before it and nothing behind it. Any tar program can look into one.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO, Literal, NoReturn, TypeAlias

from blake3 import blake3

from envdsl.errors import EnvdslError

MemberType: TypeAlias = Literal["file", "directory", "symlink", "link"]

MAX_LIST = 64 << 20
# The rules for wheels (realise.zipreader), for what an archive holds and how much it expands.
MAX_TOTAL = 1 << 40
RATIO_FREE = 64 << 20
SUSPICIOUS_RATIO = 400

_BLOCK = 512
_CHUNK = 1 << 18
_WINDOW_LOG = 23
_TYPES: dict[MemberType, bytes] = {"file": b"0", "link": b"1", "symlink": b"2", "directory": b"5"}
_FAULTS = {
    b"3": "is a device",
    b"4": "is a device",
    b"6": "is a pipe",
    b"1": "is a hard link that is not on the list",
    b"2": "is a symbolic link that is not on the list",
}
_HEADER = Struct("100s8s8s8s12s12s8sc100s6s2s32s32s8s8s155s12x")
_MAX_OCTAL = 0o77777777777


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an archive. ``name`` is relative and POSIX.

    A ``file`` has ``size``, ``digest`` (the blake3 of its content) and ``executable``; a ``link`` is another name
    for the file ``target``, a member before it; a ``symlink`` leads to ``target``.
    """

    name: str
    type: MemberType = "file"
    size: int = 0
    digest: str = ""
    executable: bool = False
    target: str = ""

    def header(self) -> bytes:
        """The one header that this member can have."""
        name = (self.name + "/" if self.type == "directory" else self.name).encode()
        target = self.target.encode()
        records = b""
        if len(name) > 100 or not name.isascii():
            records += _record(b"path", name)
        if len(target) > 100 or not target.isascii():
            records += _record(b"linkpath", target)
        size = self.size
        if size > _MAX_OCTAL:
            records += _record(b"size", b"%d" % size)
            size = 0
        mode = 0o755 if self.executable or self.type == "directory" else 0o644
        header = _ustar(name, mode, size, _TYPES[self.type], target)
        if not records:
            return header
        return _ustar(b"././@PaxHeader", 0o644, len(records), b"x", b"") + _padded(records) + header


class Writer:
    """Writes an archive to ``stream``. The caller adds members in the order of the list, that first."""

    def __init__(self, stream: BinaryIO, *, level: int = 3) -> None:
        from zstandard import ZstdCompressionParameters, ZstdCompressor

        parameters = ZstdCompressionParameters.from_level(level, window_log=_WINDOW_LOG, write_checksum=True)
        self._stream = ZstdCompressor(compression_params=parameters).stream_writer(stream, closefd=False)

    def add_list(self, name: str, content: bytes) -> None:
        """A member before those of the list: the list itself, and what belongs to it."""
        self.add(Member(name, size=len(content), digest=blake3(content).hexdigest()), [content])

    def add(self, member: Member, blocks: Iterable[bytes] = ()) -> None:
        """Add ``member``; ``blocks`` are the content of a file.

        Raises EnvdslError ``archive-content`` where they are not what the member says: it changed meanwhile.
        """
        self._stream.write(member.header())
        if member.type != "file":
            return
        hasher, size = blake3(), 0
        for block in blocks:
            hasher.update(block)
            size += len(block)
            self._stream.write(block)
        if (size, hasher.hexdigest()) != (member.size, member.digest):
            raise EnvdslError.of(
                "archive-content",
                f"{member.name} has not the content that it should have: it changed on the disk",
                hint="run the command again; `envdsl verify` looks for damage in the store",
            )
        self._stream.write(bytes(-size % _BLOCK))

    def finish(self) -> None:
        from zstandard import FLUSH_FRAME

        self._stream.write(bytes(2 * _BLOCK))
        self._stream.flush(FLUSH_FRAME)


class Reader:
    """Reads the archive ``file`` (which must be able to seek), whose name for messages is ``label``.

    First :meth:`read_list`; then, once the caller knows the members, :meth:`expect` and for each of them in order
    :meth:`read`; at last :meth:`finish`, before which nothing of the archive may be believed.
    Raises EnvdslError ``archive-…``, one code for each rule. Needs memory for the list and a window of 8 MiB.
    """

    def __init__(self, file: BinaryIO, label: str) -> None:
        from zstandard import ZstdDecompressor

        self._label = label
        self._size = _check_frame(file, label)
        self._stream = ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).stream_reader(file, closefd=False)
        self._coming: list[Member] = []
        self._position = 0
        self._begun = False

    def read_list(self, name: str) -> bytes:
        """The content of the first member, which must have that name; of the next one, where it is asked again."""
        header = self._take(_BLOCK)
        found = _interpret(header)
        if found is None or found.name != name or not 0 <= found.size <= MAX_LIST:
            self._refuse("list", f"does not begin with {name}" if not self._begun else f"has no {name} after its list")
        member = Member(name, size=found.size)
        if header != member.header():
            self._refuse("header", "has a header of another form", name)
        content = self._take(member.size)
        self._padding(member)
        self._begun = True
        return content

    def expect(self, members: Iterable[Member]) -> None:
        """The members that follow. Refuses what would fill the disk before a byte of it is written."""
        self._coming = list(members)
        total = sum(member.size for member in self._coming)
        if total > MAX_TOTAL or (total > RATIO_FREE and total > self._size * SUSPICIOUS_RATIO):
            self._refuse("bomb", f"expands {self._size} bytes to {total}")

    def read(self, member: Member) -> Iterator[bytes]:
        """The blocks of ``member``, the next one; empty for what is no file. Refuses a file of another content,
        at its end."""
        assert self._coming[self._position] is member, "members are read in the order of the list"
        expected = member.header()
        found = self._take(_BLOCK, member)
        if found != expected[:_BLOCK]:
            self._refuse_header(member, found)
        if len(expected) > _BLOCK and self._take(len(expected) - _BLOCK, member) != expected[_BLOCK:]:
            self._refuse("header", "has a header that its list does not call for", member.name)
        self._position += 1
        if member.type != "file":
            return
        hasher, left = blake3(), member.size
        while left:
            block = self._take(min(left, _CHUNK), member)
            hasher.update(block)
            left -= len(block)
            yield block
        self._padding(member)
        if hasher.hexdigest() != member.digest:
            self._refuse("digest", "is not what the list says: its blake3 is another", member.name)

    def finish(self) -> None:
        """The archive ends here, and all members have been read."""
        assert self._position == len(self._coming)
        end = self._take(2 * _BLOCK)
        if end.strip(b"\0"):
            self._refuse_header(None, end[:_BLOCK])
        if self._read(1):
            self._refuse("trailing", "goes on behind its end")

    def _padding(self, member: Member) -> None:
        if self._take(-member.size % _BLOCK, member).strip(b"\0"):
            self._refuse("padding", "is followed by hidden data", member.name)

    def _take(self, size: int, member: Member | None = None) -> bytes:
        parts = []
        while size:
            part = self._read(size)
            if not part:
                self._refuse("truncated", f"ends in the middle{f' of {member.name}' if member else ''}")
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _read(self, size: int) -> bytes:
        from zstandard import ZstdError

        try:
            return self._stream.read(size)
        except ZstdError as error:
            self._refuse("damaged", f"can't be decompressed: {error}")

    def _refuse_header(self, member: Member | None, block: bytes) -> NoReturn:
        """Say what is wrong with a header; here it is interpreted, for the message alone."""
        if not block.strip(b"\0"):
            self._refuse("missing", f"has no {member.name if member else 'end'}, which is on its list")
        found = _interpret(block)
        if found is None:
            self._refuse("damaged", "has something that is no header in the place of one")
        name = found.name
        before = {other.name for other in self._coming[: self._position]}
        if name in before:
            self._refuse("duplicate", "stands in the archive twice", name)
        if fault := _FAULTS.get(found.type):
            self._refuse("type", fault, name)
        if member is not None and name == member.name:
            self._refuse("header", "has another size, owner, mode or time than its list calls for", name)
        if any(other.header().startswith(block) for other in self._coming[self._position :]):
            self._refuse("missing", f"has no {member.name if member else 'end'} where its list has it")
        self._refuse("unlisted", "is not on the list", name)

    def _refuse(self, rule: str, reason: str, member: str | None = None) -> NoReturn:
        raise refusal(self._label, rule, reason, member)


def refusal(label: str, rule: str, reason: str, member: str | None = None) -> EnvdslError:
    """The error for an archive that breaks ``rule``; ``reason`` completes "<archive>: <member> ..."."""
    subject = f"{label}: {member!a} " if member is not None else f"{label} "
    return EnvdslError.of(
        f"archive-{rule}",
        (subject if len(subject) < 300 else f"{subject[:200]}… ") + reason,
        hint="nothing of it was used; get the archive again from where it was made",
        details={"archive": label, "member": member, "rule": rule},
    )


@dataclass(frozen=True, slots=True)
class _Interpreted:
    name: str
    size: int
    type: bytes


def _interpret(block: bytes) -> _Interpreted | None:
    try:
        found = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return None
    return _Interpreted(found.name, found.size, found.type)


def _ustar(name: bytes, mode: int, size: int, kind: bytes, target: bytes) -> bytes:
    zero = b"0000000\0"
    fields = [name[:100], b"%07o\0" % mode, zero, zero, b"%011o\0" % size, b"%011o\0" % 1, b" " * 8, kind, target[:100]]
    fields += [b"ustar\0", b"00", b"", b"", zero, zero, b""]
    header = _HEADER.pack(*fields)
    fields[6] = b"%06o\0 " % sum(header)
    return _HEADER.pack(*fields)


def _record(key: bytes, value: bytes) -> bytes:
    """A pax record, ``<length> <key>=<value> LF``, whose length counts its own digits."""
    rest = b" %s=%s\n" % (key, value)
    length = len(rest) + 1
    while len(b"%d" % length) + len(rest) != length:
        length = len(b"%d" % length) + len(rest)
    return b"%d%s" % (length, rest)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _BLOCK)


def _check_frame(file: BinaryIO, label: str) -> int:
    """The file is one zstandard frame of the form above, from its first byte to its last; returns its size.

    A decompressor stops at the end of a frame, reads on into the next, or skips what calls itself skippable, as it
    is told to; and none says how far it has read.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    head = _exactly(file, 6, label)
    descriptor, window = head[4], head[5]
    if not head.startswith(b"\x28\xb5\x2f\xfd"):
        raise refusal(label, "format", "is not compressed with zstandard")
    # A checksum and a window of 8 MiB; no content size, no dictionary, no single segment, no reserved bit.
    if window >> 3 > _WINDOW_LOG - 10:
        raise refusal(label, "bomb", "needs a window of more than 8 MiB to decompress")
    if (descriptor, window) != (0b100, _WINDOW_LOG - 10 << 3):
        raise refusal(label, "format", "is a zstandard frame of another form than envdsl writes")
    last = False
    while not last:
        header = int.from_bytes(_exactly(file, 3, label), "little")
        last, kind, length = bool(header & 1), header >> 1 & 3, header >> 3
        if kind == 3:
            raise refusal(label, "damaged", "has a block of no known type")
        file.seek(1 if kind == 1 else length, io.SEEK_CUR)
    _exactly(file, 4, label)
    if file.tell() != size:
        raise refusal(label, "trailing", "goes on behind its end")
    file.seek(0)
    return size


def _exactly(file: BinaryIO, size: int, label: str) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise refusal(label, "truncated", "ends too early")
    return data

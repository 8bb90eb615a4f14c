"""A strict reader of ZIP directories, over a memory-mapped file.

A ZIP archive describes itself twice: each member by a local header before its data, all members again by the
central directory at the end. Readers differ in which they trust, in where they look for the end record, and in
what they do with bytes that neither describes; a wheel can use that to show one content to a scanner or an
index and another to an installer. So this reader accepts an archive only where there is nothing to differ
about:

1. the end record (and its zip64 twin) is the last thing in the file, and there is only one candidate for it;
2. the central directory stands directly before it and is used up exactly;
3. each local header says what its central header says: name, method, flags, CRC, sizes;
4. members, taken in the order of the file, start at byte 0, follow each other without gap or overlap and end
   where the central directory begins;
5. names are UTF-8 (or ASCII where the flag is missing), different, plain (`zipnames`), and none is both file and
   directory;
6. members are regular files or directories, stored, deflated or zstd-compressed, and not encrypted.

Format: APPNOTE.TXT 6.3.10 (PKWARE). What a member's data really is, `inflate` checks while it unpacks.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple, NoReturn

from envdsl.realise.refusal import refusal
from envdsl.realise.zipdirectory import (
    DEFLATED,
    FULL32,
    STORED,
    ZIP64_FIELD,
    Buffer,
    Header,
    extra_fields,
    read_directory,
    zip64,
)
from envdsl.realise.zipnames import check_name

MAX_TOTAL = 64 << 30
# Deflate cannot do better than 258 bytes for two bits; a header that claims more lies. zstd can (blocks of one byte
# repeated), but nothing that is worth shipping does.
MAX_RATIO = 1040
# A member or wheel that is small when expanded harms nobody, whatever its ratio.
RATIO_FREE = 64 << 20
SUSPICIOUS_RATIO = 400

# Signature, flags, method, CRC, two sizes, two lengths.
_LOCAL = Struct("<4s2x2H4x3L2H")
_LOCAL_SIGNATURE, _DESCRIPTOR_SIGNATURE = b"PK\3\4", b"PK\7\x08"
_DESCRIPTOR = 1 << 3


class Member(NamedTuple):
    """One file of the archive; its compressed data are the bytes ``[start, start + compressed_size)``."""

    name: str
    method: int
    crc: int
    compressed_size: int
    size: int
    start: int
    executable: bool


def read_members(data: Buffer, wheel: str) -> list[Member]:
    """All files of the archive, in the order of the file; directories are checked and left out.

    ``wheel`` is the name for messages. Raises EnvdslError ``intake-zip-…``, ``intake-name-…`` or
    ``intake-bomb-…`` for an archive that breaks a rule of this module.
    """
    headers, start = read_directory(data, wheel)
    _check_names(headers, wheel)
    _check_sizes(headers, len(data), wheel)
    headers.sort(key=lambda header: header.offset)
    members = []
    position = 0
    ends = [header.offset for header in headers[1:]]
    ends.append(start)
    for header, end in zip(headers, ends, strict=True):
        if header.offset != position:
            rule, what = ("zip-overlap", "overlaps") if header.offset < position else ("zip-gap", "leaves a gap after")
            raise refusal(wheel, rule, f"{what} the member before it", member=header.name)
        first = _check_local(data, header, end, wheel)
        position = end
        if not header.name.endswith("/"):
            name, _, _, method, crc, compressed, size, _, executable = header
            members.append(Member(name, method, crc, compressed, size, first, executable))
    if not headers and start:
        raise refusal(wheel, "zip-gap", "has data that no member accounts for")
    return members


def _check_local(data: Buffer, header: Header, end: int, wheel: str) -> int:
    """Check the local header at ``header.offset`` against ``header``; the position of the member's data.

    ``end`` is where the next member, or the central directory, begins.
    """

    def disagree(what: str) -> NoReturn:
        raise refusal(
            wheel,
            "zip-local-header",
            f"has a local header with another {what} than the central directory",
            member=header.name,
        )

    offset = header.offset
    if offset + _LOCAL.size > end:
        raise refusal(wheel, "zip-overlap", "overlaps what follows it", member=header.name)
    (signature, flags, method, crc, compressed, size, name_length, extra_length) = _LOCAL.unpack_from(data, offset)
    if signature != _LOCAL_SIGNATURE:
        raise refusal(wheel, "zip-local-header", "has no local header where the directory says", member=header.name)
    position = offset + _LOCAL.size
    if data[position : position + name_length] != header.raw_name:
        disagree("name")
    position += name_length
    start: int = position + extra_length
    stop = start + header.compressed_size
    if stop > end:
        raise refusal(wheel, "zip-overlap", "overlaps what follows it", member=header.name)
    if method != header.method:
        disagree("compression method")
    if flags != header.flags:
        disagree("set of flags")
    if extra_length:
        fields = extra_fields(data[position:start], header.name, header.raw_name, wheel)
        if FULL32 in (size, compressed) and ZIP64_FIELD in fields:
            size, compressed, _, _ = zip64(fields, size, compressed, 0, 0, header.name, wheel)
    if flags & _DESCRIPTOR:
        known = ((crc, header.crc), (compressed, header.compressed_size), (size, header.size))
        if any(local and local not in (central, FULL32) for local, central in known):
            disagree("CRC or size")
        _check_descriptor(data[stop:end], header, wheel)
    else:
        if crc != header.crc or compressed != header.compressed_size or size != header.size:
            disagree("CRC or size")
        if stop != end:
            raise refusal(wheel, "zip-gap", "is followed by data that no member accounts for", member=header.name)
    return start


def _check_descriptor(descriptor: bytes, header: Header, wheel: str) -> None:
    """The data descriptor (APPNOTE 4.3.9): signature or not, sizes of 32 or 64 bits; nothing may follow it."""
    body = descriptor.removeprefix(_DESCRIPTOR_SIGNATURE) if len(descriptor) in (16, 24) else descriptor
    width = {12: 4, 20: 8}.get(len(body))
    if width is None:
        raise refusal(wheel, "zip-gap", "is followed by data that no member accounts for", member=header.name)
    crc = int.from_bytes(body[:4], "little")
    compressed = int.from_bytes(body[4 : 4 + width], "little")
    size = int.from_bytes(body[4 + width :], "little")
    if (crc, compressed, size) != (header.crc, header.compressed_size, header.size):
        raise refusal(
            wheel,
            "zip-local-header",
            "has a data descriptor that disagrees with the central directory",
            member=header.name,
        )


def _check_names(headers: list[Header], wheel: str) -> None:
    seen: set[str] = set()
    directories: set[str] = set()
    for header in headers:
        name = header.name
        if name.endswith("/"):
            name = name[:-1]
            check_name(wheel, name, directories)
            directories.add(name)
        else:
            check_name(wheel, name, directories)
        if name in seen:
            raise refusal(wheel, "zip-duplicate", "stands in the archive twice", member=name)
        seen.add(name)
    for header in headers:
        if header.name in directories:
            raise refusal(wheel, "zip-duplicate", "is both a file and a directory", member=header.name)


def _check_sizes(headers: list[Header], length: int, wheel: str) -> None:
    total = 0
    for header in headers:
        size, compressed = header.size, header.compressed_size
        total += size
        if header.method == STORED and size != compressed:
            raise refusal(wheel, "zip-local-header", "is stored, yet has two sizes", member=header.name)
        if header.method == DEFLATED and size > compressed * MAX_RATIO:
            raise refusal(
                wheel,
                "bomb-ratio",
                f"claims to expand {compressed} bytes to {size}, more than deflate can",
                member=header.name,
            )
        if size > RATIO_FREE and size > compressed * SUSPICIOUS_RATIO:
            raise refusal(
                wheel,
                "bomb-ratio",
                f"expands {compressed} bytes to {size} (limit {SUSPICIOUS_RATIO} times)",
                member=header.name,
            )
    if total > MAX_TOTAL or (total > RATIO_FREE and total > length * SUSPICIOUS_RATIO):
        raise refusal(wheel, "bomb-total", f"expands {length} bytes to {total}")

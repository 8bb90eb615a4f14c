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

import mmap
import stat
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, NoReturn, TypeAlias

from envdsl.realise.refusal import refusal
from envdsl.realise.zipnames import check_name

Buffer: TypeAlias = bytes | mmap.mmap

STORED, DEFLATED, ZSTANDARD = 0, 8, 93
METHODS = {STORED: "stored", DEFLATED: "deflate", ZSTANDARD: "zstd"}

MAX_MEMBERS = 400_000
MAX_TOTAL = 64 << 30
MAX_DIRECTORY = 256 << 20
# Deflate cannot do better than 258 bytes for two bits; a header that claims more lies. zstd can (blocks of one byte
# repeated), but nothing that is worth shipping does.
MAX_RATIO = 1040
# A member or wheel that is small when expanded harms nobody, whatever its ratio.
RATIO_FREE = 64 << 20
SUSPICIOUS_RATIO = 400

_END = Struct("<4s4H2LH")
_END64 = Struct("<4sQ2H2L4Q")
_LOCATOR = Struct("<4sLQL")
_CENTRAL = Struct("<4s6H3L5H2L")
_LOCAL = Struct("<4s5H3L2H")
_EXTRA = Struct("<2H")
_END_SIGNATURE, _END64_SIGNATURE, _LOCATOR_SIGNATURE = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_CENTRAL_SIGNATURE, _LOCAL_SIGNATURE, _DESCRIPTOR_SIGNATURE = b"PK\1\2", b"PK\3\4", b"PK\7\x08"
_FULL16, _FULL32 = 0xFFFF, 0xFFFFFFFF

_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
_DESCRIPTOR = 1 << 3
_PATCH = 1 << 5
_UTF8 = 1 << 11
_ZIP64_FIELD, _UNICODE_PATH_FIELD = 0x0001, 0x7075


class Member(NamedTuple):
    """One file of the archive; its compressed data are the bytes ``[start, start + compressed_size)``."""

    name: str
    method: int
    crc: int
    compressed_size: int
    size: int
    start: int
    executable: bool


class _Header(NamedTuple):
    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    compressed_size: int
    size: int
    offset: int
    executable: bool


def read_members(data: Buffer, wheel: str) -> list[Member]:
    """All files of the archive, in the order of the file; directories are checked and left out.

    ``wheel`` is the name for messages. Raises EnvdslError ``intake-zip-…``, ``intake-name-…`` or
    ``intake-bomb-…`` for an archive that breaks a rule of this module.
    """
    headers, start = _central_directory(data, wheel)
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
            members.append(
                Member(
                    header.name,
                    header.method,
                    header.crc,
                    header.compressed_size,
                    header.size,
                    first,
                    header.executable,
                )
            )
    if not headers and start:
        raise refusal(wheel, "zip-gap", "has data that no member accounts for")
    return members


# --- the end records ---------------------------------------------------------------------------------------


def _central_directory(data: Buffer, wheel: str) -> tuple[list[_Header], int]:
    """The central headers in their order, and where the central directory begins."""
    end = _find_end(data, wheel)
    _, disk, first_disk, here, count, size, offset, _ = _END.unpack_from(data, end)
    stop = end
    locator = end - _LOCATOR.size
    if locator >= 0 and data[locator : locator + 4] == _LOCATOR_SIGNATURE:
        _, _, record, disks = _LOCATOR.unpack_from(data, locator)
        if disks > 1 or record + _END64.size != locator or data[record : record + 4] != _END64_SIGNATURE:
            raise refusal(wheel, "zip-end-record", "has a zip64 end record that is not where its locator says")
        _, length, _, _, disk64, first_disk64, here64, count64, size64, offset64 = _END64.unpack_from(data, record)
        if length != _END64.size - 12:
            raise refusal(wheel, "zip-end-record", "has a zip64 end record of another length")
        pairs = (
            (disk, disk64, _FULL16),
            (first_disk, first_disk64, _FULL16),
            (here, here64, _FULL16),
            (count, count64, _FULL16),
            (size, size64, _FULL32),
            (offset, offset64, _FULL32),
        )
        if any(short not in (full, long) for short, long, full in pairs):
            raise refusal(wheel, "zip-end-record", "has two end records that disagree")
        disk, first_disk, here, count, size, offset = disk64, first_disk64, here64, count64, size64, offset64
        stop = record
    if disk or first_disk or here != count:
        raise refusal(wheel, "zip-end-record", "is one part of several")
    if offset + size != stop:
        raise refusal(
            wheel,
            "zip-end-record",
            "has data between its central directory and its end record, or before its first byte",
        )
    if count > MAX_MEMBERS or size > MAX_DIRECTORY:
        raise refusal(wheel, "bomb-count", f"has {count} members (limit {MAX_MEMBERS})")
    return list(_headers(data[offset:stop], count, wheel)), offset


def _find_end(data: Buffer, wheel: str) -> int:
    """The position of the end record: the only one whose comment ends with the file."""
    lowest = max(0, len(data) - _END.size - _FULL16)
    tail = data[lowest:]
    candidates = []
    position = tail.rfind(_END_SIGNATURE)
    last = position
    while position >= 0:
        if len(tail) - position >= _END.size:
            comment = int.from_bytes(tail[position + 20 : position + 22], "little")
            if position + _END.size + comment == len(tail):
                candidates.append(position)
        position = tail.rfind(_END_SIGNATURE, 0, position)
    if not candidates:
        if last >= 0:
            raise refusal(wheel, "zip-trailing-data", "has data after its end record, or is cut short")
        raise refusal(wheel, "zip-not-an-archive", "is not a ZIP archive (it has no end record)")
    if len(candidates) > 1 or candidates[0] != last:
        raise refusal(wheel, "zip-end-record", "has more than one possible end record")
    return lowest + candidates[0]


# --- headers -----------------------------------------------------------------------------------------------


def _headers(directory: bytes, count: int, wheel: str) -> Iterator[_Header]:
    position = 0
    total = len(directory)
    for _ in range(count):
        if position + _CENTRAL.size > total or directory[position : position + 4] != _CENTRAL_SIGNATURE:
            raise refusal(wheel, "zip-directory", "has a central directory that ends early")
        (
            _,
            made_by,
            _,
            flags,
            method,
            _,
            _,
            crc,
            compressed,
            size,
            name_length,
            extra_length,
            comment_length,
            disk,
            _,
            attributes,
            offset,
        ) = _CENTRAL.unpack_from(directory, position)
        position += _CENTRAL.size
        stop = position + name_length + extra_length + comment_length
        if stop > total:
            raise refusal(wheel, "zip-directory", "has a central directory that ends early")
        raw_name = directory[position : position + name_length]
        name = _decode(raw_name, flags, wheel)
        fields: dict[int, bytes] = {}
        if extra_length:
            fields = _extra_fields(
                directory[position + name_length : position + name_length + extra_length], name, raw_name, wheel
            )
        if _FULL32 in (compressed, size, offset) or disk == _FULL16:
            size, compressed, offset, disk = _zip64(fields, size, compressed, offset, disk, name, wheel)
        position = stop
        if disk:
            raise refusal(wheel, "zip-end-record", "is said to be on another disk", member=name)
        if flags & _ENCRYPTED:
            raise refusal(wheel, "zip-encrypted", "is encrypted", member=name)
        if flags & _PATCH:
            raise refusal(wheel, "zip-method", "is a patch, not a file", member=name)
        if method not in METHODS:
            raise refusal(
                wheel,
                "zip-method",
                f"is compressed by method {method}; only {', '.join(METHODS.values())} are",
                member=name,
            )
        mode = attributes >> 16
        _check_type(name, mode, size, made_by, wheel)
        executable = stat.S_ISREG(mode) and bool(mode & 0o111)
        yield _Header(name, raw_name, flags, method, crc, compressed, size, offset, executable)
    if position != total:
        raise refusal(wheel, "zip-directory", "has a central directory longer than its members need")


def _decode(raw: bytes, flags: int, wheel: str) -> str:
    if not flags & _UTF8 and not raw.isascii():
        raise refusal(
            wheel,
            "name-encoding",
            "has a name beyond ASCII that is not marked as UTF-8, which readers decode differently",
            member=raw.decode("cp437"),
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise refusal(wheel, "name-encoding", "has a name that is not UTF-8", member=repr(raw)) from None


def _check_type(name: str, mode: int, size: int, made_by: int, wheel: str) -> None:
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFLNK:
        raise refusal(wheel, "symlink", "is a symbolic link", member=name)
    directory = name.endswith("/")
    # Only Unix (3) and macOS (19) writers give a file type; the bits of others mean something else or nothing.
    if made_by >> 8 in (3, 19) and kind and kind != (stat.S_IFDIR if directory else stat.S_IFREG):
        raise refusal(wheel, "special-file", "is neither a regular file nor a directory by its mode", member=name)
    if directory and size:
        raise refusal(wheel, "zip-directory", "is a directory with content", member=name)


def _extra_fields(extra: bytes, name: str, raw_name: bytes, wheel: str) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    position = 0
    while position + _EXTRA.size <= len(extra):
        tag, length = _EXTRA.unpack_from(extra, position)
        position += _EXTRA.size
        if position + length > len(extra):
            raise refusal(wheel, "zip-extra-field", "has an extra field that ends early", member=name)
        value = extra[position : position + length]
        if tag in (_ZIP64_FIELD, _UNICODE_PATH_FIELD) and tag in fields:
            raise refusal(wheel, "zip-extra-field", "has one extra field twice", member=name)
        if tag == _UNICODE_PATH_FIELD and value[5:] != raw_name:
            raise refusal(wheel, "zip-extra-field", "has a second, different name in an extra field", member=name)
        fields[tag] = value
        position += length
    if any(extra[position:]):
        raise refusal(wheel, "zip-extra-field", "has an extra field that ends early", member=name)
    return fields


def _zip64(
    fields: dict[int, bytes], size: int, compressed: int, offset: int, disk: int, name: str, wheel: str
) -> tuple[int, int, int, int]:
    """The 64-bit values that stand for the saturated ones, in the order of APPNOTE 4.5.3."""
    field = fields.get(_ZIP64_FIELD)
    position = 0
    values = []
    for value, full, width in ((size, _FULL32, 8), (compressed, _FULL32, 8), (offset, _FULL32, 8), (disk, _FULL16, 4)):
        if value != full:
            values.append(value)
            continue
        if field is None or position + width > len(field):
            raise refusal(wheel, "zip-extra-field", "lacks the zip64 field that its header asks for", member=name)
        values.append(int.from_bytes(field[position : position + width], "little"))
        position += width
    return values[0], values[1], values[2], values[3]


def _check_local(data: Buffer, header: _Header, end: int, wheel: str) -> int:
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
    if data[offset : offset + 4] != _LOCAL_SIGNATURE:
        raise refusal(wheel, "zip-local-header", "has no local header where the directory says", member=header.name)
    name_length: int
    extra_length: int
    _, _, flags, method, _, _, crc, compressed, size, name_length, extra_length = _LOCAL.unpack_from(data, offset)
    position = offset + _LOCAL.size
    if data[position : position + name_length] != header.raw_name:
        disagree("name")
    position += name_length
    start = position + extra_length
    if start + header.compressed_size > end:
        raise refusal(wheel, "zip-overlap", "overlaps what follows it", member=header.name)
    if method != header.method:
        disagree("compression method")
    if flags != header.flags:
        disagree("set of flags")
    if extra_length:
        fields = _extra_fields(data[position:start], header.name, header.raw_name, wheel)
        if _FULL32 in (size, compressed) and _ZIP64_FIELD in fields:
            size, compressed, _, _ = _zip64(fields, size, compressed, 0, 0, header.name, wheel)
    stop = start + header.compressed_size
    known = (header.crc, header.compressed_size, header.size)
    if flags & _DESCRIPTOR:
        if any(
            local and local not in (value, _FULL32) for local, value in zip((crc, compressed, size), known, strict=True)
        ):
            disagree("CRC or size")
        _check_descriptor(data[stop:end], header, wheel)
    else:
        if (crc, compressed, size) != known:
            disagree("CRC or size")
        if stop != end:
            raise refusal(wheel, "zip-gap", "is followed by data that no member accounts for", member=header.name)
    return start


def _check_descriptor(descriptor: bytes, header: _Header, wheel: str) -> None:
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


# --- all members together ----------------------------------------------------------------------------------


def _check_names(headers: list[_Header], wheel: str) -> None:
    seen: set[str] = set()
    directories: set[str] = set()
    for header in headers:
        name = header.name.removesuffix("/")
        check_name(wheel, name)
        if name in seen:
            raise refusal(wheel, "zip-duplicate", "stands in the archive twice", member=name)
        seen.add(name)
        if header.name.endswith("/"):
            directories.add(name)
        parent = name.rpartition("/")[0]
        while parent and parent not in directories:
            directories.add(parent)
            parent = parent.rpartition("/")[0]
    for header in headers:
        if header.name in directories:
            raise refusal(wheel, "zip-duplicate", "is both a file and a directory", member=header.name)


def _check_sizes(headers: list[_Header], length: int, wheel: str) -> None:
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

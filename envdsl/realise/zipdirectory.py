"""The central directory of a ZIP archive: where it is, and what it says. Rules 1, 2, 5 and 6 of `zipreader`."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from envdsl.realise.refusal import refusal

Buffer: TypeAlias = bytes | mmap.mmap

STORED, DEFLATED, ZSTANDARD = 0, 8, 93
METHODS = {STORED: "stored", DEFLATED: "deflate", ZSTANDARD: "zstd"}

MAX_MEMBERS = 400_000
MAX_DIRECTORY = 256 << 20

FULL16, FULL32 = 0xFFFF, 0xFFFFFFFF
_END = Struct("<4s4H2LH")
_END64 = Struct("<4sQ2H2L4Q")
_LOCATOR = Struct("<4sLQL")
# Signature, system, flags, method, CRC, two sizes, three lengths, disk, attributes, offset; the rest does not matter.
_CENTRAL = Struct("<4sxB2x2H4x3L4H2x2L")
_EXTRA = Struct("<2H")
_END_SIGNATURE, _END64_SIGNATURE, _LOCATOR_SIGNATURE = b"PK\5\6", b"PK\6\6", b"PK\6\7"
_CENTRAL_SIGNATURE = b"PK\1\2"

_ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
_PATCH = 1 << 5
_UTF8 = 1 << 11
ZIP64_FIELD, _UNICODE_PATH_FIELD = 0x0001, 0x7075
_UNIX = (3, 19)  # 19 is macOS


class Header(NamedTuple):
    """What the central directory says of a member; ``offset`` is that of its local header."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    compressed_size: int
    size: int
    offset: int
    executable: bool


def read_directory(data: Buffer, wheel: str) -> tuple[list[Header], int]:
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
            (disk, disk64, FULL16),
            (first_disk, first_disk64, FULL16),
            (here, here64, FULL16),
            (count, count64, FULL16),
            (size, size64, FULL32),
            (offset, offset64, FULL32),
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
    lowest = max(0, len(data) - _END.size - FULL16)
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


def _headers(directory: bytes, count: int, wheel: str) -> Iterator[Header]:
    position = 0
    total = len(directory)
    for _ in range(count):
        if position + _CENTRAL.size > total:
            raise refusal(wheel, "zip-directory", "has a central directory that ends early")
        (
            signature,
            system,
            flags,
            method,
            crc,
            compressed,
            size,
            name_length,
            extra_length,
            comment_length,
            disk,
            attributes,
            offset,
        ) = _CENTRAL.unpack_from(directory, position)
        position += _CENTRAL.size
        stop = position + name_length + extra_length + comment_length
        if stop > total or signature != _CENTRAL_SIGNATURE:
            raise refusal(wheel, "zip-directory", "has a central directory that ends early")
        raw_name = directory[position : position + name_length]
        name = _decode(raw_name, flags, wheel)
        fields: dict[int, bytes] = {}
        if extra_length:
            fields = extra_fields(
                directory[position + name_length : position + name_length + extra_length], name, raw_name, wheel
            )
        if FULL32 in (compressed, size, offset) or disk == FULL16:
            size, compressed, offset, disk = zip64(fields, size, compressed, offset, disk, name, wheel)
        position = stop
        if disk:
            raise refusal(wheel, "zip-end-record", "is said to be on another disk", member=name)
        if flags & (_ENCRYPTED | _PATCH):
            rule, what = ("zip-encrypted", "encrypted") if flags & _ENCRYPTED else ("zip-method", "a patch, not a file")
            raise refusal(wheel, rule, f"is {what}", member=name)
        if method not in METHODS:
            raise refusal(
                wheel,
                "zip-method",
                f"is compressed by method {method}; only {', '.join(METHODS.values())} are",
                member=name,
            )
        mode = attributes >> 16
        regular = mode >> 12 == stat.S_IFREG >> 12
        if not regular or name.endswith("/"):
            _check_type(name, mode, size, system, wheel)
        executable = regular and mode & 0o111 != 0
        yield Header(name, raw_name, flags, method, crc, compressed, size, offset, executable)
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


def _check_type(name: str, mode: int, size: int, system: int, wheel: str) -> None:
    kind = stat.S_IFMT(mode)
    if kind == stat.S_IFLNK:
        raise refusal(wheel, "symlink", "is a symbolic link", member=name)
    directory = name.endswith("/")
    # Only Unix writers give a file type; the bits of others mean something else or nothing.
    if system in _UNIX and kind and kind != (stat.S_IFDIR if directory else stat.S_IFREG):
        raise refusal(wheel, "special-file", "is neither a regular file nor a directory by its mode", member=name)
    if directory and size:
        raise refusal(wheel, "zip-directory", "is a directory with content", member=name)


def extra_fields(extra: bytes, name: str, raw_name: bytes, wheel: str) -> dict[int, bytes]:
    fields: dict[int, bytes] = {}
    position = 0
    while position + _EXTRA.size <= len(extra):
        tag, length = _EXTRA.unpack_from(extra, position)
        position += _EXTRA.size
        if position + length > len(extra):
            raise refusal(wheel, "zip-extra-field", "has an extra field that ends early", member=name)
        value = extra[position : position + length]
        if tag in (ZIP64_FIELD, _UNICODE_PATH_FIELD) and tag in fields:
            raise refusal(wheel, "zip-extra-field", "has one extra field twice", member=name)
        if tag == _UNICODE_PATH_FIELD and value[5:] != raw_name:
            raise refusal(wheel, "zip-extra-field", "has a second, different name in an extra field", member=name)
        fields[tag] = value
        position += length
    if any(extra[position:]):
        raise refusal(wheel, "zip-extra-field", "has an extra field that ends early", member=name)
    return fields


def zip64(
    fields: dict[int, bytes], size: int, compressed: int, offset: int, disk: int, name: str, wheel: str
) -> tuple[int, int, int, int]:
    """The 64-bit values that stand for the saturated ones, in the order of APPNOTE 4.5.3."""
    field = fields.get(ZIP64_FIELD)
    position = 0
    values = []
    for value, full, width in ((size, FULL32, 8), (compressed, FULL32, 8), (offset, FULL32, 8), (disk, FULL16, 4)):
        if value != full:
            values.append(value)
            continue
        if field is None or position + width > len(field):
            raise refusal(wheel, "zip-extra-field", "lacks the zip64 field that its header asks for", member=name)
        values.append(int.from_bytes(field[position : position + width], "little"))
        position += width
    return values[0], values[1], values[2], values[3]

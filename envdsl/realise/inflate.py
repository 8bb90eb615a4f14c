"""What a member of an archive really holds: decompression that believes no header.

libdeflate (`deflate`) expands a member in one call, in memory, two to three times as fast as zlib, and needs the
true size to do it, which is just what has to be checked. It is given the member as a gzip file: a header, the
data, and the CRC and size that the archive states. It looks for these two directly behind the end of the stream, so
they are where it looks only if the stream ends where the member does.

Members above :data:`STREAM_FROM` go through isal (or zlib) in blocks instead, so that a wheel with a library of 2 GB
costs no more memory than any other. All of them release the interpreter's lock.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from struct import Struct
from typing import Any

from envdsl.errors import EnvdslError
from envdsl.realise.refusal import refusal
from envdsl.realise.zipdirectory import DEFLATED, STORED, Buffer
from envdsl.realise.zipreader import Member

# As fast either way from here on. Below, a thread holds three times this: sixteen of them stay below 200 MB.
STREAM_FROM = 3 << 20
_BLOCK_IN = 1 << 18
_BLOCK_OUT = 1 << 20


_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"  # RFC 1952: deflate, no flags, no time, unknown system
_GZIP_FOOTER = Struct("<2L")
_EMPTY = b"\3\0"  # deflate's shortest stream, and what everybody writes for an empty file

_crc32: Any
_whole: Any
try:
    import deflate

    _crc32, _whole = deflate.crc32, deflate.gzip_decompress
except ImportError:
    _crc32, _whole = zlib.crc32, None


@cache
def _streaming() -> Any:
    """A module with zlib's interface."""
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def expand(data: Buffer, member: Member, wheel: str) -> bytes | bytearray:
    """The content of a member, checked against its declared size and CRC.

    Raises EnvdslError ``intake-zip-corrupt`` for data that are not what the headers say.
    """
    if member.method == DEFLATED and _whole is not None and member.size < STREAM_FROM:
        footer = _GZIP_FOOTER.pack(member.crc, member.size)
        # A slice of the map is a copy, of what is read anyway; a view would have to be released everywhere.
        compressed = data[member.start : member.start + member.compressed_size]
        if member.size == 0:  # libdeflate would not even be called
            return b"" if compressed == _EMPTY and member.crc == 0 else b"".join(stream(data, member, wheel))
        file = b"".join((_GZIP_HEADER, compressed, footer))
        del compressed
        # Data that hold the footer themselves could end in front of it: that is for a reader that knows where it is.
        if file.find(footer, len(_GZIP_HEADER)) == len(file) - len(footer):
            try:
                content: bytearray = _whole(file, member.size)
                if len(content) == member.size:
                    return content
            except Exception:  # deflate.DeflateError derives from Exception alone
                pass  # the reader below says what is wrong
    return b"".join(stream(data, member, wheel))


def stream(data: Buffer, member: Member, wheel: str) -> Iterator[bytes]:
    """The same in blocks; the checks of the whole are made when the last block was taken."""
    size = 0
    crc = 0
    for block in _blocks(data, member, wheel):
        size += len(block)
        if size > member.size:
            raise _corrupt(wheel, member, f"it holds more than the {member.size} bytes that it claims")
        crc = _crc32(block, crc)
        yield block
    if size != member.size:
        raise _corrupt(wheel, member, f"it holds {size} bytes, not {member.size}")
    if crc != member.crc:
        raise _corrupt(wheel, member, "its CRC differs")


def _blocks(data: Buffer, member: Member, wheel: str) -> Iterator[bytes]:
    stop = member.start + member.compressed_size
    if member.method == STORED:
        for position in range(member.start, stop, _BLOCK_OUT):
            yield data[position : min(position + _BLOCK_OUT, stop)]
        return
    if member.method == DEFLATED:
        yield from _deflated(data, member, wheel)
        return
    from zstandard import ZstdDecompressor, ZstdError

    with memoryview(data) as view, view[member.start : stop] as compressed:
        try:
            # A window of 128 MB is what level 22 asks for; more would be memory that a wheel can demand at will.
            with ZstdDecompressor(max_window_size=128 << 20).stream_reader(compressed) as reader:
                while block := reader.read(_BLOCK_OUT):
                    yield block
        except ZstdError as error:
            raise _corrupt(wheel, member, str(error)) from None


def _deflated(data: Buffer, member: Member, wheel: str) -> Iterator[bytes]:
    decompressor = _streaming().decompressobj(-zlib.MAX_WBITS)
    stop = member.start + member.compressed_size
    for position in range(member.start, stop, _BLOCK_IN):
        pending = data[position : min(position + _BLOCK_IN, stop)]
        while pending:
            try:
                block = decompressor.decompress(pending, _BLOCK_OUT)
            except Exception as error:  # zlib.error and isal's own
                raise _corrupt(wheel, member, str(error)) from None
            if block:
                yield block
            if decompressor.eof:
                if decompressor.unused_data or position + _BLOCK_IN < stop:
                    raise _corrupt(wheel, member, "its data go on after their end")
                return
            pending = decompressor.unconsumed_tail
    tail = decompressor.flush()
    if tail:
        yield tail
    if not decompressor.eof:
        raise _corrupt(wheel, member, "its data end early")


def _corrupt(wheel: str, member: Member, why: str) -> EnvdslError:
    return refusal(wheel, "zip-corrupt", f"is not what its headers say: {why}", member=member.name)

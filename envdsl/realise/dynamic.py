"""The dynamic section of an ELF file: which libraries it needs, and where they are looked for.

The layout that nearly every shared object has (64 bits, little-endian) is read here, in a fiftieth of the time that
pyelftools takes, which matters where a layer has hundreds of them; everything else, and whatever looks odd, is left to
pyelftools. Format: System V gABI, chapters 4 and 5.
"""

from __future__ import annotations

from pathlib import Path
from struct import Struct, error
from typing import Any, BinaryIO, NamedTuple

_MAGIC = b"\x7fELF"
_HEADER = Struct("<4sBB26xQ14xHH6x")  # magic, class, byte order; place, size and number of program headers
_PROGRAM_HEADER = Struct("<I4x2Q8xQ16x")  # type, offset, address, size in the file
_ENTRY = Struct("<2Q")
_LOAD, _DYNAMIC = 1, 2
_NULL, _NEEDED, _STRINGS, _STRINGS_SIZE, _RPATH, _RUNPATH = 0, 1, 5, 10, 15, 29
_MAX_TABLE = 64 << 20


class Dynamic(NamedTuple):
    """What the dynamic section of an ELF file says about others: names, and directories as they are spelled."""

    needed: tuple[str, ...]
    runpath: tuple[str, ...]
    rpath: tuple[str, ...]


def read_dynamic(path: Path) -> Dynamic | None:
    """The dynamic section of the file at ``path``; None where there is none that can be read.

    Raises OSError. A damaged file is its wheel's affair: it cannot be loaded, wherever the rest stands.
    """
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            return None
        try:
            return _read(file)
        except (error, ValueError, LookupError, StopIteration, OverflowError):
            file.seek(0)
        from elftools.elf.elffile import ELFFile

        try:
            # Tags get an attribute named after their kind when they are read, which no type says.
            section: Any = next(ELFFile(file).iter_segments("PT_DYNAMIC"), None)
            if section is None:
                return None
            needed: list[str] = []
            paths: dict[str, list[str]] = {"DT_RUNPATH": [], "DT_RPATH": []}
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    needed.append(tag.needed)
                elif tag.entry.d_tag == "DT_RUNPATH":
                    paths["DT_RUNPATH"] += tag.runpath.split(":")
                elif tag.entry.d_tag == "DT_RPATH":
                    paths["DT_RPATH"] += tag.rpath.split(":")
        except OSError:
            raise
        except Exception:  # the parser's many, on bytes that a stranger chose
            return None
    return Dynamic(tuple(needed), *(tuple(filter(None, found)) for found in paths.values()))


def _read(file: BinaryIO) -> Dynamic | None:
    """The section of a file that has the common layout. Raises several exceptions for any other."""
    file.seek(0)
    _, bits, order, place, size, count = _HEADER.unpack(file.read(_HEADER.size))
    if (bits, order, size) != (2, 1, _PROGRAM_HEADER.size):
        raise ValueError("another layout")
    headers = list(_PROGRAM_HEADER.iter_unpack(_at(file, place, size * count)))
    section = next(((offset, size) for kind, offset, _, size in headers if kind == _DYNAMIC), None)
    if section is None:
        return None
    found: dict[int, list[int]] = {}
    for tag, value in _ENTRY.iter_unpack(_at(file, *section)):
        if tag == _NULL:
            break
        found.setdefault(tag, []).append(value)
    (address,), (length,) = found[_STRINGS], found[_STRINGS_SIZE]
    start = next(
        offset + address - base for kind, offset, base, size in headers if kind == _LOAD and 0 <= address - base < size
    )
    strings = _at(file, start, length)

    def text(tag: int) -> list[str]:
        return [strings[value : strings.index(0, value)].decode() for value in found.get(tag, ())]

    def directories(tag: int) -> tuple[str, ...]:
        return tuple(entry for entries in text(tag) for entry in entries.split(":") if entry)

    return Dynamic(tuple(text(_NEEDED)), directories(_RUNPATH), directories(_RPATH))


def _at(file: BinaryIO, place: int, size: int) -> bytes:
    if size > _MAX_TABLE:
        raise ValueError("too large")
    file.seek(place)
    found = file.read(size)
    if len(found) != size:
        raise ValueError("cut off")
    return found

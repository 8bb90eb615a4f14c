"""The intake of a wheel: everything that can be refused before a byte is unpacked.

In this order, each step trusting only the ones before it: the file's size and sha256 against the lock; the archive's
structure (`zipreader`); exactly one dist-info directory, and that its name and version, those in METADATA and
those of the file are the same; the major ``Wheel-Version``; RECORD's completeness; entry points. What remains,
the content of members against CRC and RECORD, is checked in the pass that unpacks them (`unpack`). Nothing of a
wheel is executed, and only its dist-info is read here.

Specifications: PEP 427 and "Binary distribution format", "Recording installed projects", "Entry points".
"""

from __future__ import annotations

import hashlib
import mmap
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from envdsl.graph.derivation import Unpack
from envdsl.realise.inflate import expand
from envdsl.realise.record import Row, check_complete, read_record
from envdsl.realise.refusal import printable, refusal
from envdsl.realise.zipdirectory import Buffer
from envdsl.realise.zipreader import Member, read_members

MAX_METADATA = 32 << 20
# What an index serves under this name was compared when it was fetched.
_DAMAGED = "its copy in the wheelhouse is damaged: `envdsl verify --repair` replaces it"
_HASH_BLOCK = 8 << 20
# Names that would stand before the interpreter, or before what a sandbox calls itself by, on PATH.
_INTERPRETER = re.compile(r"(?:python|pythonw|pypy)[0-9.]*[a-z]?(?:\.exe)?|env|sh", re.IGNORECASE)
_SCRIPT_NAME = re.compile(r"[A-Za-z0-9_.+@-][A-Za-z0-9_.+@ -]{0,199}")


class EntryPoint(NamedTuple):
    """A script to generate: ``name`` calls ``module:attribute``."""

    name: str
    module: str
    attribute: str
    section: str


@dataclass(frozen=True)
class Intake:
    """A wheel that passed. ``data`` is the mapped file, valid inside :func:`open_wheel` alone.

    ``dist_info`` and ``data_directory`` are the names of its directories, as it spells them;
    ``rows`` is RECORD; ``oddities`` are sentences about what is legal, yet worth a warning.
    """

    filename: str
    name: str
    data: Buffer
    members: tuple[Member, ...]
    dist_info: str
    data_directory: str | None
    rows: Mapping[str, Row]
    entry_points: tuple[EntryPoint, ...]
    record_waived: bool
    oddities: tuple[str, ...]


@contextmanager
def open_wheel(path: Path, unpack: Unpack, *, hashed: bool = False) -> Iterator[Intake]:
    """Map the wheel at ``path`` and take it in as the input of ``unpack``.

    ``hashed`` says that this very process has just compared the sha256 of the file, and that it is the store's.
    Raises EnvdslError ``intake-…`` for the first rule that it breaks; OSError where it cannot be read.
    """
    wheel = unpack.wheel.filename
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size != unpack.wheel.size:
            raise refusal(
                wheel,
                "size",
                f"the file has {size} bytes, the lock says {unpack.wheel.size}",
                hint=_DAMAGED,
            )
        if size == 0:
            raise refusal(wheel, "zip-not-an-archive", "the file is empty")
        data = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    try:
        if not hashed:
            _check_hash(data, unpack)
        yield _take_in(data, unpack)
    finally:
        # A view that an exception's traceback keeps alive keeps the mapping too; it ends with the traceback.
        with suppress(BufferError):
            data.close()


def _check_hash(data: mmap.mmap, unpack: Unpack) -> None:
    hasher = hashlib.sha256()
    with memoryview(data) as view:
        for start in range(0, len(view), _HASH_BLOCK):
            with view[start : start + _HASH_BLOCK] as block:
                hasher.update(block)
    if hasher.hexdigest() != unpack.wheel.sha256:
        raise refusal(
            unpack.wheel.filename,
            "hash",
            f"the file has the sha256 {hasher.hexdigest()}, the lock says {unpack.wheel.sha256}",
            hint=_DAMAGED,
        )


def _take_in(data: Buffer, unpack: Unpack) -> Intake:
    wheel = unpack.wheel.filename
    members = tuple(read_members(data, wheel))
    by_name = {member.name: member for member in members}
    identity = _Identity.of_file(wheel)
    identity.check(wheel, "the lock", unpack.name, unpack.version)
    dist_info, data_directory = _directories(members, identity, wheel)

    def member(name: str) -> Member:
        found = by_name.get(f"{dist_info}/{name}")
        if found is None:
            raise refusal(wheel, "metadata-missing", f"has no {name} in {dist_info}")
        return found

    def text(name: str) -> str:
        return _text(data, member(name), wheel)

    metadata = _headers(text("METADATA"))
    identity.check(wheel, "METADATA", metadata.get("name", ""), metadata.get("version", ""))
    oddities = _check_wheel_version(_headers(text("WHEEL")), wheel)
    rows: Mapping[str, Row] = {}
    if not unpack.record_mismatch:
        rows = read_record(text("RECORD"), wheel, unpack.name)
        check_complete(rows, by_name, dist_info, wheel, unpack.name)
    else:  # only what RECORD says can be waived: not that there is one, and not the archive's faults
        expand(data, member("RECORD"), wheel)
    entry_points: tuple[EntryPoint, ...] = ()
    if f"{dist_info}/entry_points.txt" in by_name:
        entry_points = _entry_points(text("entry_points.txt"), wheel)
    return Intake(
        filename=wheel,
        name=unpack.name,
        data=data,
        members=members,
        dist_info=dist_info,
        data_directory=data_directory,
        rows=rows,
        entry_points=entry_points,
        record_waived=unpack.record_mismatch,
        oddities=oddities,
    )


class _Identity:
    """The name and version that a wheel's file name states, and everything else has to repeat."""

    def __init__(self, name: str, version: str) -> None:
        from packaging.utils import canonicalize_name
        from packaging.version import Version

        self.name: str = canonicalize_name(name)
        self.version = Version(version)

    @classmethod
    def of_file(cls, filename: str) -> _Identity:
        parts = filename.removesuffix(".whl").split("-")
        try:
            if not filename.endswith(".whl") or len(parts) not in (5, 6) or not re.fullmatch(r"[\w.]+", parts[0]):
                raise ValueError
            return cls(parts[0], parts[1])
        except ValueError:
            raise refusal(filename, "file-name", "this is not the name of a wheel") from None

    def matches(self, name: str, version: str) -> bool:
        try:
            other = _Identity(name.strip(), version.strip())
        except ValueError:
            return False
        return (self.name, self.version) == (other.name, other.version)

    def check(self, wheel: str, source: str, name: str, version: str) -> None:
        if not self.matches(name, version):
            raise refusal(
                wheel,
                "identity",
                f"{source} says {printable(name)} {printable(version)}, which is another name or version",
            )


def _directories(members: tuple[Member, ...], identity: _Identity, wheel: str) -> tuple[str, str | None]:
    """The one dist-info directory, and the data directory where there is one."""
    top = {name[: name.index("/")] for name in (member.name for member in members) if "/" in name}
    found: dict[str, str] = {}
    for suffix in (".dist-info", ".data"):
        candidates = sorted(name for name in top if name.lower().endswith(suffix))
        if suffix == ".dist-info" and not candidates:
            raise refusal(wheel, "dist-info-missing", "has no dist-info directory")
        if len(candidates) > 1:
            raise refusal(
                wheel, f"{suffix[1:]}-ambiguous", f"has {len(candidates)} {suffix} directories: {', '.join(candidates)}"
            )
        for candidate in candidates:
            name, _, version = candidate.removesuffix(suffix).rpartition("-")
            if not candidate.endswith(suffix) or not identity.matches(name, version):
                raise refusal(wheel, "identity", "is named for another distribution or version", member=candidate)
            found[suffix] = candidate
    return found[".dist-info"], found.get(".data")


def _text(data: Buffer, member: Member, wheel: str) -> str:
    if member.size > MAX_METADATA:
        raise refusal(wheel, "metadata-large", f"has {member.size} bytes (limit {MAX_METADATA})", member=member.name)
    try:
        return expand(data, member, wheel).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refusal(wheel, "metadata-encoding", f"is not UTF-8: {error}", member=member.name) from None


def _headers(text: str) -> dict[str, str]:
    """The first value of each field of an RFC 822 header block, by lower-case name; folded lines do not matter here."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            break
        name, colon, value = line.partition(":")
        if colon and not line[0].isspace():
            fields.setdefault(name.strip().lower(), value.strip())
    return fields


def _check_wheel_version(fields: Mapping[str, str], wheel: str) -> tuple[str, ...]:
    stated = fields.get("wheel-version", "")
    match = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})", stated)
    if match is None or int(match[1]) != 1:
        raise refusal(wheel, "wheel-version", f"has Wheel-Version {printable(stated)}; only 1.x is understood")
    if int(match[2]) > 0:
        return (f"Wheel-Version is {stated}, newer than 1.0; what it added is not known here",)
    return ()


def _entry_points(text: str, wheel: str) -> tuple[EntryPoint, ...]:
    from installer.utils import parse_entrypoints

    try:
        points = [EntryPoint(*point) for point in parse_entrypoints(text)]
    except Exception as error:  # configparser's many, and assertions
        raise refusal(
            wheel, "entry-point-malformed", f"entry_points.txt cannot be read: {error or 'no attribute'}"
        ) from None
    for point in points:
        check_script_name(point.name, wheel)
    return tuple(sorted(set(points)))


def check_script_name(name: str, wheel: str) -> None:
    """A script's name is one plain file name, and none by which the interpreter is found."""
    if _SCRIPT_NAME.fullmatch(name) is None or name in (".", ".."):
        raise refusal(wheel, "script-name", "is a script whose name is no plain file name", member=name)
    check_not_interpreter(name, wheel)


def check_not_interpreter(name: str, wheel: str) -> None:
    """No file of a ``bin`` has a name by which the interpreter, or what starts it, is found."""
    if _INTERPRETER.fullmatch(name):
        raise refusal(
            wheel, "script-shadows-interpreter", "is a script that would stand before the interpreter", member=name
        )

"""RECORD: the list of a wheel's files with their hashes (PEP 376, PEP 427 and the packaging specifications).

Read here, strictly; written by ``installer``.
"""

from __future__ import annotations

import csv
from binascii import b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from envdsl.errors import EnvdslError
from envdsl.realise.refusal import refusal

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
# The specification asks for sha256 "or better".
_ALGORITHMS = frozenset({"sha256", "sha384", "sha512"})
_WAIVER = 'a layer can accept it with `allow = {{ record-mismatch = [ "{name}" ]; }};`'


class Row(NamedTuple):
    """What RECORD says of one file; ``algorithm`` and ``digest`` are empty, ``size`` None where it says nothing."""

    algorithm: str
    digest: str
    size: int | None


class Written(NamedTuple):
    """A file as it was laid out: its path in the output, and what the new RECORD says of it."""

    path: str
    digest: str
    size: int


def read_record(text: str, wheel: str, name: str) -> dict[str, Row]:
    """The rows of RECORD by path. ``name`` is the distribution's, for the hint.

    Raises EnvdslError ``intake-record-…`` for rows that are malformed, weak, or contradict each other.
    """
    rows: dict[str, Row] = {}
    try:
        for fields in csv.reader(text.splitlines()):
            if not fields:
                continue
            path, row = _row(fields, wheel, name)
            if rows.setdefault(path, row) != row:
                raise _mismatch(wheel, name, "record-duplicate", path, "stands in RECORD twice, with different facts")
    except csv.Error as error:
        raise refusal(wheel, "record-malformed", f"RECORD is not a table: {error}", hint=_hint(name)) from None
    return rows


def _row(fields: Sequence[str], wheel: str, name: str) -> tuple[str, Row]:
    if len(fields) != 3:
        raise _mismatch(wheel, name, "record-malformed", fields[0], f"has {len(fields)} fields in RECORD instead of 3")
    path, digest, size = fields
    algorithm, separator, value = digest.partition("=")
    if digest and (not separator or algorithm not in _ALGORITHMS):
        raise _mismatch(
            wheel, name, "record-weak-hash", path, f"has a hash {digest!r} in RECORD; sha256 or better is demanded"
        )
    if size and not (size.isascii() and size.isdigit() and len(size) < 16):
        raise _mismatch(wheel, name, "record-malformed", path, f"has the size {size!r} in RECORD")
    return path, Row(algorithm if digest else "", value.rstrip("="), int(size) if size else None)


def check_complete(rows: Mapping[str, Row], members: Iterable[str], dist_info: str, wheel: str, name: str) -> None:
    """RECORD names every file of the wheel and no other.

    RECORD itself and its signatures need no row; bytecode and these need no hash; everything else does.
    """
    free = {f"{dist_info}/RECORD", f"{dist_info}/RECORD.jws", f"{dist_info}/RECORD.p7s"}
    names = set(members)
    for path in names:
        row = rows.get(path)
        if row is None:
            if path not in free:
                raise _mismatch(wheel, name, "record-missing", path, "is not in RECORD")
        elif not row.digest and path not in free and not path.endswith((".pyc", ".pyo")):
            raise _mismatch(wheel, name, "record-no-hash", path, "has no hash in RECORD")
    for path in rows:
        if path in names or path in free or path.endswith("/"):  # what RECORD says of a directory cannot be wrong
            continue
        # Installers may list bytecode before there is any.
        if rows[path].digest or not path.endswith((".pyc", ".pyo")):
            raise _mismatch(wheel, name, "record-extra", path, "is in RECORD, but not in the wheel")


def mismatch(row: Row, digest: str, size: int, wheel: str, name: str, path: str) -> EnvdslError:
    """The refusal of a member whose content (``digest`` by the row's algorithm, ``size``) is not what its row says."""
    if digest != row.digest:
        return _mismatch(wheel, name, "record-mismatch", path, "has another hash than RECORD says")
    return _mismatch(wheel, name, "record-mismatch", path, f"has {size} bytes, not {row.size} as RECORD says")


def encode(digest: bytes) -> str:
    """A digest as RECORD spells it."""
    return b2a_base64(digest, newline=False).translate(_URL_SAFE).rstrip(b"=").decode("ascii")


def write_record(files: Iterable[Written], record: str) -> bytes:
    """The RECORD of an unpacked distribution. Paths of ``files`` and ``record`` itself are relative to the
    output; the rows that are written are relative to its ``site-packages``."""
    from installer.records import Hash, RecordEntry
    from installer.utils import Scheme, construct_record_file

    entries: list[tuple[Scheme, RecordEntry]] = []
    for path, digest, size in sorted(files):  # installer sorts by path alone, which two schemes can have in common
        head, _, rest = path.partition("/")
        scheme, path = ("purelib", rest) if head == "site-packages" else ("data", path)
        entries.append((Scheme(scheme), RecordEntry(path, Hash("sha256", digest), size)))
    entries.append((Scheme("purelib"), RecordEntry(record.removeprefix("site-packages/"), None, None)))
    with construct_record_file(entries, lambda scheme: "../" if scheme == "data" else None) as stream:
        return stream.read()


def _mismatch(wheel: str, name: str, rule: str, path: str, reason: str) -> EnvdslError:
    return refusal(wheel, rule, reason, member=path, hint=_hint(name))


def _hint(name: str) -> str:
    return _WAIVER.format(name=name)

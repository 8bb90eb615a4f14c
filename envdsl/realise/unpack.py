"""Unpacking: one pass over the members of a wheel.

Each member is expanded, compared with its CRC and its row in RECORD, hashed for the listing and written with its
final mode: its bytes are touched while they are in the cache, and once. The members are divided into batches
that any thread may take (:mod:`envdsl.realise.crew`), so that one very large wheel keeps all cores busy.

What stands in the output is what ``installer`` would install (`tests/realise/test_differential.py`), but for
shebangs, which are found by PATH and hold no place of this machine, and for bytecode, which is never taken over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from envdsl.realise.inflate import STREAM_FROM, expand, stream
from envdsl.realise.intake import Intake
from envdsl.realise.placement import Placed, place
from envdsl.realise.record import Row, Written, encode, mismatch, write_record
from envdsl.realise.refusal import refusal
from envdsl.realise.writer import TreeWriter
from envdsl.realise.zipdirectory import DEFLATED, STORED
from envdsl.store.treehash import Listing

INSTALLER = b"envdsl\n"
SHEBANG = b"#!/usr/bin/env python3\n"
# A batch is a few milliseconds of work: enough to make handing it over cheap, too little to wait for.
_BATCH_BYTES = 4 << 20
_BATCH_FILES = 48


class Unpacking:
    """The unpacking of one wheel into the empty directory ``root``.

    :meth:`write` every batch of :attr:`batches`, in any order and thread, then :meth:`finish`.
    """

    def __init__(self, intake: Intake, root: Path) -> None:
        self._intake = intake
        self._writer = TreeWriter(root)
        self._written: list[Written] = []
        self.batches = list(_batches(place(intake)))

    def write(self, batch: Iterable[Placed]) -> None:
        """Unpack the members of a batch.

        Raises EnvdslError ``intake-…`` for content that is not what the wheel says, OSError from the disk.
        """
        for placed in batch:
            self._write_member(placed)

    def finish(self) -> Listing:
        """Write what is generated (scripts of entry points, INSTALLER, RECORD) and seal the tree."""
        for path, content in self._generated():
            self._writer.write(path, content, executable=path.startswith("bin/"))
            self._written.append(Written(path, encode(sha256(content).digest()), len(content)))
        record = f"site-packages/{self._intake.dist_info}/RECORD"
        self._writer.write(record, write_record(self._written, record))
        self._writer.seal()
        return Listing(self._writer.entries)

    def _write_member(self, placed: Placed) -> None:
        intake, member = self._intake, placed.member
        if member.size >= STREAM_FROM or member.method not in (STORED, DEFLATED):
            self._stream_member(placed)
            return
        content = expand(intake.data, member, intake.filename)
        digest = self._checked(member.name, content)
        if placed.script:
            content = with_shebang(content)
            digest = encode(sha256(content).digest())
        self._writer.write(placed.path, content, executable=placed.executable)
        self._written.append(Written(placed.path, digest, len(content)))

    def _stream_member(self, placed: Placed) -> None:
        """A large member; a script of that size is a program, which has no shebang to rewrite."""
        intake, member = self._intake, placed.member
        row = intake.rows.get(member.name)
        hasher = sha256()
        other = hashlib.new(row.algorithm) if row and row.digest and row.algorithm != "sha256" else None

        def hashed() -> Iterator[bytes]:
            for block in stream(intake.data, member, intake.filename):
                hasher.update(block)
                if other is not None:
                    other.update(block)
                yield block

        self._writer.stream(placed.path, hashed(), executable=placed.executable)
        digest = encode(hasher.digest())
        if row is not None and row.digest:
            self._compare(row, encode(other.digest()) if other else digest, member.size, member.name)
        self._written.append(Written(placed.path, digest, member.size))

    def _checked(self, name: str, content: bytes | bytearray) -> str:
        """The sha256 of a member's content, which is what RECORD says."""
        digest = encode(sha256(content).digest())
        row = self._intake.rows.get(name)
        if row is not None and row.digest:
            # The specification allows stronger hashes in RECORD; nearly nobody uses them.
            stated = digest if row.algorithm == "sha256" else encode(hashlib.new(row.algorithm, content).digest())
            self._compare(row, stated, len(content), name)
        return digest

    def _compare(self, row: Row, digest: str, size: int, name: str) -> None:
        if digest != row.digest or row.size not in (None, size):
            raise mismatch(row, digest, size, self._intake.filename, self._intake.name, name)

    def _generated(self) -> Iterator[tuple[str, bytes]]:
        intake = self._intake
        if intake.entry_points:
            from installer.scripts import Script

            for name, module, attribute, section in intake.entry_points:
                try:
                    _, content = Script(name, module, attribute, section).generate("python", "posix")  # type: ignore[arg-type]
                except ValueError as error:
                    raise refusal(intake.filename, "entry-point-malformed", str(error), member=name) from None
                yield f"bin/{name}", bytes(with_shebang(content))
        yield f"site-packages/{intake.dist_info}/INSTALLER", INSTALLER


def with_shebang(script: bytes | bytearray) -> bytes | bytearray:
    """``script`` with a first line ``#!python…`` replaced by one that finds ``python3`` on PATH, as the sandbox
    sets it: with the place of an interpreter in it the output would not be the same everywhere."""
    if not script.startswith(b"#!python"):
        return script
    _, _, rest = script.partition(b"\n")
    return SHEBANG + rest


def _batches(placed: list[Placed]) -> Iterator[list[Placed]]:
    batch: list[Placed] = []
    size = 0
    for item in placed:
        batch.append(item)
        size += item.member.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch

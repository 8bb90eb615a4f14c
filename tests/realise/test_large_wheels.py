"""Bounded memory: what a wheel costs does not depend on its size, nor on how it is cut into members.

512 MB here; 2 GB with ``ENVDSL_TORTURE=1``.
"""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from envdsl.realise.inflate import STREAM_FROM
from tests.realise.archives import RawMember, archive
from tests.realise.corpus.case import Wheel

MB = 1 << 20
TOTAL = (2048 if os.environ.get("ENVDSL_TORTURE") == "1" else 512) * MB
LIMIT = 200 * 1000  # KB of anonymous memory
# Zeros with something between them, so that it is no bomb: deflate makes a fiftieth of it.
BLOCK = (bytes(4000) + os.urandom(96)) * 2560


@dataclass(frozen=True)
class Large:
    """A member of ``count`` times :data:`BLOCK`, that is never in memory."""

    name: str
    count: int
    deflated: bool

    def data(self) -> Iterator[bytes]:
        if not self.deflated:
            yield from [BLOCK] * self.count
            return
        compressor = zlib.compressobj(1, zlib.DEFLATED, -15)
        # After a full flush nothing refers back, so that the same bytes may follow again and again.
        once = compressor.compress(BLOCK) + compressor.flush(zlib.Z_FULL_FLUSH)
        yield from [once] * self.count
        yield compressor.flush()

    @property
    def size(self) -> int:
        return len(BLOCK) * self.count

    def facts(self) -> dict[str, int]:
        crc = 0
        for _ in range(self.count):
            crc = zlib.crc32(BLOCK, crc)
        return {"crc": crc, "size": self.size, "compressed": sum(map(len, self.data()))}

    def row(self) -> str:
        digest = hashlib.sha256()
        for _ in range(self.count):
            digest.update(BLOCK)
        return f"{self.name},sha256={_urlsafe(digest.digest())},{self.size}"


def _urlsafe(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def spliced(directory: Path, large: Sequence[Large]) -> Path:
    """A wheel whose last members are ``large``: their data are put into the file after everything else is made."""
    facts = [item.facts() for item in large]
    taken: list[list[RawMember]] = []

    def members(small: list[RawMember]) -> list[RawMember]:
        taken.append(small)
        return small

    wheel = Wheel(record=lambda rows: [*rows, *(item.row() for item in large)], members=members).build(directory)
    (small,) = taken
    pieces = [archive(*small)]
    body = pieces[0].index(b"PK\1\2")
    offsets = []
    headers = []
    position = body
    for item, fact in zip(large, facts, strict=True):
        member = RawMember(item.name.encode(), data=b"", method=8 if item.deflated else 0, local=dict(fact))
        header = archive(member)
        header = header[: header.index(b"PK\1\2")]
        offsets.append(position)
        headers.append(header)
        position += len(header) + fact["compressed"]
    central = [
        RawMember(item.name.encode(), data=b"", method=8 if item.deflated else 0, central={**fact, "offset": offset})
        for item, fact, offset in zip(large, facts, offsets, strict=True)
    ]
    directory_and_end = archive(*small, *central, end={"offset": position})
    with wheel.open("wb") as file:
        file.write(pieces[0][:body])
        for item, header in zip(large, headers, strict=True):
            file.write(header)
            for block in item.data():
                file.write(block)
        file.write(directory_and_end[directory_and_end.index(b"PK\1\2") :])
    return wheel


def peak(wheel: Path, root: Path, threads: int = 1) -> int:
    """KB of anonymous memory (RssAnon) that a process of its own needed to take in and unpack ``wheel``."""
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("peak_memory.py"), wheel, root, str(threads)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    return int(done.stdout)


def test_a_wheel_of_two_huge_members_costs_little_memory(tmp_path: Path) -> None:
    """Issue 3.1: half of it stored, half deflated; both are streamed."""
    half = TOTAL // 2 // len(BLOCK)
    wheel = spliced(tmp_path, [Large("stored.bin", half, False), Large("deflated.bin", half, True)])
    used = peak(wheel, tmp_path / "out", threads=2)
    print(f"{used} KB at the peak")
    assert used < LIMIT
    for name in ("stored.bin", "deflated.bin"):
        assert (tmp_path / "out/site-packages" / name).stat().st_size == half * len(BLOCK)


def test_a_wheel_of_many_members_costs_little_memory_with_many_threads(tmp_path: Path) -> None:
    """Issue 3.1: members just too small to be streamed, that do not get smaller by deflate, in sixteen threads."""
    content = os.urandom(STREAM_FROM - 1)
    files = {f"demo/{number}.bin": content for number in range(TOTAL // 8 // STREAM_FROM)}
    used = peak(Wheel(files=files).build(tmp_path), tmp_path / "out", threads=16)
    print(f"{used} KB at the peak")
    assert used < LIMIT

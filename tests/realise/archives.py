"""ZIP archives written byte by byte, so that a test can make every field lie."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field
from typing import Any


@dataclass
class RawMember:
    """One member; ``local`` and ``central`` override fields of the one header or the other."""

    name: bytes
    content: bytes = b""
    method: int = 8
    flags: int = 0x800
    mode: int = 0o100644
    made_by: int = 3 << 8 | 20
    extra: bytes = b""
    local_extra: bytes = b""
    descriptor: bytes = b""
    data: bytes | None = None
    after: bytes = b""
    local: dict[str, Any] = field(default_factory=dict)
    central: dict[str, Any] = field(default_factory=dict)

    def compressed(self) -> bytes:
        if self.data is not None:
            return self.data
        if self.method != 8:
            return self.content
        compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
        return compressor.compress(self.content) + compressor.flush()


def archive(
    *members: RawMember,
    before: bytes = b"",
    trailing: bytes = b"",
    comment: bytes = b"",
    between: bytes = b"",
    end: dict[str, int] | None = None,
) -> bytes:
    """The bytes of an archive of ``members``; by default everything in it agrees with everything else."""
    body = bytearray(before)
    directory = bytearray()
    for member in members:
        offset = len(body)
        data = member.compressed()
        facts: dict[str, Any] = {
            "flags": member.flags,
            "method": member.method,
            "crc": zlib.crc32(member.content),
            "compressed": len(data),
            "size": len(member.content),
            "name": member.name,
        }
        local = {**facts, "extra": member.local_extra, **member.local}
        if member.flags & 8 and "crc" not in member.local:
            local.update(crc=0, compressed=0, size=0)
        body += struct.pack(
            "<4s5H3L2H",
            b"PK\3\4",
            20,
            local["flags"],
            local["method"],
            0,
            0x21,
            local["crc"],
            local["compressed"],
            local["size"],
            len(local["name"]),
            len(local["extra"]),
        )
        body += local["name"] + local["extra"] + data + member.descriptor + member.after
        central = {
            **facts,
            "extra": member.extra,
            "offset": offset,
            "attributes": member.mode << 16,
            "disk": 0,
            **member.central,
        }
        directory += struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2",
            member.made_by,
            20,
            central["flags"],
            central["method"],
            0,
            0x21,
            central["crc"],
            central["compressed"],
            central["size"],
            len(central["name"]),
            len(central["extra"]),
            0,
            central["disk"],
            0,
            central["attributes"],
            central["offset"],
        )
        directory += central["name"] + central["extra"]
    facts = {"disk": 0, "first": 0, "here": len(members), "count": len(members), "size": len(directory)}
    facts |= {"offset": len(body), **(end or {})}
    record = struct.pack(
        "<4s4H2LH",
        b"PK\5\6",
        facts["disk"],
        facts["first"],
        facts["here"],
        facts["count"],
        facts["size"],
        facts["offset"],
        len(comment),
    )
    return bytes(body + directory + between + record + comment + trailing)

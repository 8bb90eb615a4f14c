"""The archive: what readers read differently, and what looks odd and is not."""

from __future__ import annotations

import io
import struct
import zipfile

from tests.realise.archives import RawMember
from tests.realise.corpus.case import Case, Wheel, changed, row, with_member

LONG = "demo/" + "circles/subdir1/" * 12 + "bar.txt"


def _repacked_as_zip64(content: bytes) -> bytes:
    """The archive as the standard library writes one that is larger than 4 GB: every size in a zip64 field."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(source.read(name))
    return target.getvalue()


def _stored_and_deflated(members: list[RawMember]) -> list[RawMember]:
    for member in members[::2]:
        member.method = 0
    return members


def _twice(members: list[RawMember]) -> list[RawMember]:
    return [*members, members[0]]


CONTAINERS = (
    Case(
        "trailing-data",
        "astral-sh/uv#15451",
        "bytes after the end record: a second archive may stand there",
        Wheel(finish=lambda content: content + b"\0"),
        code="intake-zip-trailing-data",
    ),
    Case(
        "leading-data",
        "astral-sh/uv#15136",
        "the directory's offsets are not those of the file",
        Wheel(finish=lambda content: b"#!/bin/sh\n" + content),
        code="intake-zip-end-record",
    ),
    Case(
        "member-twice",
        "eclipse-ecal/ecal#2324",
        "__init__.py three times in one wheel: which one counts depends on the reader",
        Wheel(members=_twice),
        code="intake-zip-duplicate",
    ),
    Case(
        "header-without-crc",
        "astral-sh/uv#12677",
        "the local header has no CRC and no descriptor follows",
        Wheel(members=changed("demo.py", local={"crc": 0})),
        code="intake-zip-local-header",
    ),
    Case(
        "sizes-that-disagree",
        "pypi/warehouse#19777",
        "the directory states another size than the member's own header",
        Wheel(members=changed("demo.py", central={"size": 5})),
        code="intake-zip-local-header",
    ),
    Case(
        "local-header-of-another-name",
        "astral-sh/uv#15136",
        "a streaming reader sees one name, a seeking one another",
        Wheel(members=changed("demo.py", local={"name": b"evil.py"})),
        code="intake-zip-local-header",
    ),
    Case(
        "zip64",
        "pypa/auditwheel#145",
        "zip64 fields in a wheel that is small",
        Wheel(finish=_repacked_as_zip64),
        holds=lambda root: (root / "site-packages/demo.py").read_bytes() == b"x = 1\n",
    ),
    Case(
        "zip64-field-that-nobody-asked-for",
        "pypa/wheel#692",
        "`wheel tags` leaves the old offset in an extra field; the header is not saturated, so no reader takes it",
        Wheel(members=changed("demo.py", local_extra=struct.pack("<2HQ", 1, 8, 0x854347CF))),
    ),
    Case(
        "deflated-empty-directory",
        "astral-sh/uv#21644",
        "an empty directory of two compressed bytes, with its sizes in a descriptor",
        Wheel(
            members=with_member(
                RawMember(
                    b"demo/",
                    flags=0x808,
                    mode=0o040755,
                    data=b"\3\0",
                    descriptor=b"PK\7\x08" + struct.pack("<3L", 0, 2, 0),
                )
            )
        ),
    ),
    Case(
        "directories",
        "pypa/wheel#291",
        "entries for directories, empty ones too; empty ones leave nothing behind",
        Wheel(
            members=with_member(
                RawMember(b"demo/", mode=0o040755, method=0), RawMember(b"demo/empty/", mode=0o040755, method=0)
            )
        ),
        holds=lambda root: not (root / "site-packages/demo/empty").exists(),
    ),
    Case(
        "stored-and-deflated",
        "pypa/auditwheel#366",
        "some members compressed, some not",
        Wheel(
            files={"demo.py": b"x = 1\n" * 99, "empty.py": b"", "more.py": b"y = 1\n" * 99},
            members=_stored_and_deflated,
        ),
        holds=lambda root: (root / "site-packages/more.py").read_bytes() == b"y = 1\n" * 99,
    ),
    Case(
        "empty-files",
        "rpm-software-management/rpmlint#626",
        "py.typed and __init__.py of no bytes, compressed to two",
        Wheel(files={"demo/__init__.py": b"", "demo/py.typed": b""}),
        holds=lambda root: (root / "site-packages/demo/py.typed").stat().st_size == 0,
    ),
    Case(
        "lzma",
        "astral-sh/uv#13192",
        "compression that few readers of wheels know",
        Wheel(members=changed("demo.py", method=14, data=b"x")),
        code="intake-zip-method",
    ),
    Case(
        "bzip2",
        "pypa/wheel#247",
        "smaller, and unreadable for most installers",
        Wheel(members=changed("demo.py", method=12, data=b"x")),
        code="intake-zip-method",
    ),
    Case(
        "names-in-utf-8",
        "pypa/wheel#207",
        "versión.txt and other names beyond ASCII",
        Wheel(files={"demo/versión.txt": b"1", "demo/åäö_日本語.py": b""}),
        holds=lambda root: (root / "site-packages/demo/åäö_日本語.py").is_file(),
    ),
    Case(
        "names-in-utf-8-without-the-flag",
        "pypa/setuptools#1399",
        "the same bytes without the flag are other names to other readers",
        Wheel(files={"versión.txt": b"1"}, members=changed("versión.txt", flags=0)),
        code="intake-name-encoding",
    ),
    Case(
        "long-path",
        "Azure/azure-cli#1221",
        "ansible nests directories beyond 200 characters",
        Wheel(files={LONG: b"deep"}),
        holds=lambda root: len(LONG) > 200 and (root / "site-packages" / LONG).read_bytes() == b"deep",
    ),
    Case(
        "symbolic-link",
        "ai-dynamo/nixl#1567",
        "wheels have no links; a member that is one points wherever it likes",
        Wheel(
            members=with_member(RawMember(b"libdemo.so", b"/etc/passwd", mode=0o120777)),
            record=lambda rows: [*rows, row("libdemo.so", b"/etc/passwd")],
        ),
        code="intake-symlink",
    ),
    Case(
        "path-that-climbs",
        "astral-sh/uv#8731",
        "a member that would be written beside site-packages",
        Wheel(files={"../../evil.py": b""}),
        code="intake-name-parent",
    ),
    Case(
        "modes-of-windows",
        "spesmilo/electrumx#117",
        "made on Windows: no executable bits anywhere; scripts are executable all the same",
        Wheel(data={"scripts/tool": b"#!python\n"}, members=lambda members: [_of_windows(item) for item in members]),
        holds=lambda root: (root / "bin/tool").stat().st_mode & 0o777 == 0o555,
    ),
    Case(
        "executable-package-data",
        "pypa/wheel#348",
        "programs among package data keep their executable bit, and other files do not get one",
        Wheel(files={"demo/run": b"#!/bin/sh\n", "demo/a.py": b""}, members=changed("demo/run", mode=0o100755)),
        holds=lambda root: (
            [(root / f"site-packages/demo/{name}").stat().st_mode & 0o111 for name in ("run", "a.py")] == [0o111, 0]
        ),
    ),
)


def _of_windows(member: RawMember) -> RawMember:
    member.made_by = 20
    member.mode = 0
    return member

"""The archive reader accepts what all readers read alike, and nothing else."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.realise.inflate import expand, stream
from envdsl.realise.zipreader import Member, read_members
from tests.realise.archives import RawMember, archive

WHEEL = "demo-1.0-py3-none-any.whl"
CONTENT = b"print('hello')\n" * 40


def refused(data: bytes) -> EnvdslError:
    """The refusal of an archive, by reading it or by expanding it."""
    with pytest.raises(EnvdslError) as caught:  # noqa: PT012 (either step may be the one)
        for member in read_members(data, WHEEL):
            expand(data, member, WHEEL)
    error = caught.value
    assert WHEEL in str(error)
    assert error.diagnostics[0].details["wheel"] == WHEEL
    assert f"intake-{error.diagnostics[0].details['rule']}" == error.code
    return error


def read(data: bytes) -> dict[str, bytes]:
    return {member.name: bytes(expand(data, member, WHEEL)) for member in read_members(data, WHEEL)}


def test_members_of_an_ordinary_archive_are_what_zipfile_reads() -> None:
    stream_ = io.BytesIO()
    with zipfile.ZipFile(stream_, "w") as written:
        written.writestr("a/stored.txt", CONTENT, zipfile.ZIP_STORED)
        written.writestr("a/deflated.py", CONTENT, zipfile.ZIP_DEFLATED)
        written.writestr("empty", b"")
        written.mkdir("directory")
        written.writestr("ünïcode.txt", "ü")
    data = stream_.getvalue()
    with zipfile.ZipFile(stream_) as expected:
        wanted = {name: expected.read(name) for name in expected.namelist() if not name.endswith("/")}
    assert read(data) == wanted


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("signature", [b"", b"PK\7\x08"])
def test_a_data_descriptor_of_any_form_is_understood(width: int, signature: bytes) -> None:
    member = RawMember(b"a.py", CONTENT, flags=0x808)
    sizes = (len(member.compressed()), len(CONTENT))
    member.descriptor = signature + struct.pack("<L" + {4: "LL", 8: "QQ"}[width], zlib.crc32(CONTENT), *sizes)
    assert read(archive(member)) == {"a.py": CONTENT}


def test_zip64_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    stream_ = io.BytesIO()
    with zipfile.ZipFile(stream_, "w", zipfile.ZIP_DEFLATED) as written:
        for name in ("a.py", "b.py"):
            with written.open(name, "w", force_zip64=True) as member:
                member.write(CONTENT)
    data = stream_.getvalue()
    assert b"PK\6\6" in data
    assert read(data) == {"a.py": CONTENT, "b.py": CONTENT}


def test_an_archive_comment_is_no_trailing_data() -> None:
    assert read(archive(RawMember(b"a.py", CONTENT), comment=b"made by hand")) == {"a.py": CONTENT}


def test_the_executable_bit_is_kept() -> None:
    members = read_members(archive(RawMember(b"a", mode=0o100755), RawMember(b"b")), WHEEL)
    assert [member.executable for member in members] == [True, False]


A = RawMember(b"a.py", CONTENT)
B = RawMember(b"b.py", CONTENT)

STRUCTURES = {
    "zip-not-an-archive": [b"no archive at all", b""],
    "zip-trailing-data": [archive(A, trailing=b"x"), archive(A)[:-1]],
    "zip-end-record": [
        archive(A, before=b"#!/bin/sh\n", end={"offset": 0}),
        archive(A, between=b"hidden"),
        archive(A, end={"disk": 1}),
        archive(A, end={"here": 0}),
        archive(A, comment=b"PK\5\6" + bytes(18)),
        archive(RawMember(b"a.py", CONTENT, central={"disk": 1})),
    ],
    "zip-directory": [
        archive(A, B, end={"count": 1, "here": 1}),
        archive(A, end={"count": 2, "here": 2}),
        archive(RawMember(b"d/", b"content", mode=0o040755)),
    ],
    "zip-local-header": [
        archive(RawMember(b"a.py", CONTENT, local={"name": b"b.py"})),
        archive(RawMember(b"a.py", CONTENT, local={"crc": 1})),
        archive(RawMember(b"a.py", CONTENT, local={"size": 1})),
        archive(RawMember(b"a.py", CONTENT, local={"compressed": 1})),
        archive(RawMember(b"a.py", CONTENT, local={"method": 0})),
        archive(RawMember(b"a.py", CONTENT, local={"flags": 0})),
        archive(RawMember(b"a.py", CONTENT, method=0, central={"size": 4})),
        archive(RawMember(b"a.py", CONTENT, flags=0x808, descriptor=b"PK\7\x08" + bytes(12))),
    ],
    "zip-gap": [
        archive(RawMember(b"a.py", CONTENT, after=b"hidden"), B),
        archive(RawMember(b"a.py", CONTENT, after=b"hidden")),
        archive(A, before=b"hidden"),
        archive(RawMember(b"a.py", CONTENT, flags=0x808, descriptor=b"too long to be a descriptor")),
    ],
    "zip-overlap": [
        archive(A, RawMember(b"b.py", CONTENT, central={"offset": 0})),
        archive(RawMember(b"a.py", CONTENT, local={"compressed": 5000}, central={"compressed": 5000, "size": 5001})),
    ],
    "zip-duplicate": [
        archive(A, A),
        archive(RawMember(b"a"), RawMember(b"a/b")),
        archive(RawMember(b"a/", mode=0o040755), RawMember(b"a")),
    ],
    "zip-encrypted": [archive(RawMember(b"a.py", CONTENT, flags=0x801))],
    "zip-method": [
        archive(RawMember(b"a.py", CONTENT, method=method, data=CONTENT)) for method in (1, 9, 12, 14, 95, 99)
    ],
    "zip-extra-field": [
        archive(RawMember(b"a.py", CONTENT, extra=struct.pack("<2H", 0x7075, 10) + bytes(5) + b"b.py2")),
        archive(RawMember(b"a.py", CONTENT, extra=struct.pack("<2H", 1, 50))),
        archive(RawMember(b"a.py", CONTENT, central={"size": 0xFFFFFFFF})),
    ],
    "zip-corrupt": [
        archive(RawMember(b"a.py", CONTENT, data=b"\xff" * 60)),
        archive(RawMember(b"a.py", CONTENT, local={"crc": 5}, central={"crc": 5})),
        archive(RawMember(b"a.py", CONTENT, local={"size": 599}, central={"size": 599})),
        archive(RawMember(b"a.py", CONTENT, local={"size": 601}, central={"size": 601})),
    ],
    "symlink": [archive(RawMember(b"a", b"/etc/passwd", mode=0o120777))],
    "special-file": [archive(RawMember(b"a", mode=0o020644)), archive(RawMember(b"a", mode=0o010644))],
    "bomb-ratio": [
        archive(RawMember(b"a", b"", data=b"x" * 10, local={"size": 20_000}, central={"size": 20_000})),
        archive(RawMember(b"a", data=bytes(100_000), local={"size": 70 << 20}, central={"size": 70 << 20})),
    ],
    "name-nul": [archive(RawMember(b"a\0b"))],
    "name-backslash": [archive(RawMember(b"..\\a"))],
    "name-absolute": [archive(RawMember(b"/etc/passwd")), archive(RawMember(b"C:/a"))],
    "name-parent": [archive(RawMember(b"../a")), archive(RawMember(b"a/../../b")), archive(RawMember(b"a/.."))],
    "name-not-normal": [archive(RawMember(b"a//b")), archive(RawMember(b"./a")), archive(RawMember(b"a/./b"))],
    "name-empty": [archive(RawMember(b""))],
    "name-control": [archive(RawMember(b"a\x1b[2Jb")), archive(RawMember("a\u202eb".encode()))],
    "name-device": [archive(RawMember(b"pkg/NUL")), archive(RawMember(b"aux.py")), archive(RawMember(b"com1/x"))],
    "name-long": [archive(RawMember(b"x" * 256)), archive(RawMember(b"/".join([b"x" * 100] * 11)))],
    "name-encoding": [archive(RawMember(b"\xff", flags=0x800)), archive(RawMember("ü".encode(), flags=0))],
}


@pytest.mark.parametrize(
    ("rule", "data"),
    [
        pytest.param(rule, data, id=f"{rule}-{index}")
        for rule, cases in STRUCTURES.items()
        for index, data in enumerate(cases)
    ],
)
def test_what_two_readers_could_read_differently_is_refused(rule: str, data: bytes) -> None:
    """Issue 2.9: every structural rule of the intake, by its own code, naming wheel and member."""
    assert refused(data).code == f"intake-{rule}"


def test_a_refusal_names_the_member_without_repeating_its_control_characters() -> None:
    error = refused(archive(RawMember(b"a\x1b[2Jb")))
    assert error.diagnostics[0].details["member"] == "a\x1b[2Jb"
    assert "\x1b" not in str(error)
    assert "a\\x1b[2Jb" in str(error)


def test_long_and_odd_yet_legal_names_are_accepted() -> None:
    names = [
        b"a/" * 90 + b"deep.py",
        b"x" * 200,
        "naïve/ÿ€.py".encode(),
        b"a b.txt",
        b".hidden",
        b"..a",
        b"a..",
        b"con_.py",
    ]
    assert [member.name for member in read_members(archive(*map(RawMember, names)), WHEEL)] == [
        n.decode() for n in names
    ]


FOOTER = struct.pack("<2L", zlib.crc32(CONTENT), len(CONTENT))


@pytest.mark.parametrize("behind", [b"\0", b"\3\0", FOOTER[:1], FOOTER[:4], FOOTER, FOOTER + b"hidden", b"x" * 5000])
@pytest.mark.parametrize("content", [CONTENT, b""])
def test_bytes_behind_the_end_of_the_data_are_refused(behind: bytes, content: bytes) -> None:
    """Inside a member's bounds, where no header tells of them, however they are made to look."""
    data = RawMember(b"a.py", content).compressed()
    assert refused(archive(RawMember(b"a.py", content, data=data + behind))).code == "intake-zip-corrupt"


def with_crc(prefix: bytes, crc: int) -> bytes:
    """``prefix`` and four bytes that give it this CRC: they are the solution of 32 linear equations."""
    base = zlib.crc32(prefix + bytes(4))
    rows = [(zlib.crc32(prefix + (1 << bit).to_bytes(4, "little")) ^ base, 1 << bit) for bit in range(32)]
    wanted, solution = crc ^ base, 0
    for bit in range(32):
        pivot = next(row for row in rows if row[0] >> bit & 1)
        rows = [(a ^ pivot[0], b ^ pivot[1]) if a >> bit & 1 else (a, b) for a, b in rows if (a, b) != pivot]
        if wanted >> bit & 1:
            wanted, solution = wanted ^ pivot[0], solution ^ pivot[1]
    return prefix + solution.to_bytes(4, "little")


def test_data_that_hold_their_own_footer_are_read_all_the_same() -> None:
    """A stored block of deflate may have any bytes in it, those of the member's CRC and size, too."""
    content = with_crc(struct.pack("<2L", 0x12345678, 12), 0x12345678)
    assert content.startswith(struct.pack("<2L", zlib.crc32(content), len(content)))
    compressor = zlib.compressobj(0, zlib.DEFLATED, -15)
    data = compressor.compress(content) + compressor.flush()
    assert read(archive(RawMember(b"a", content, data=data))) == {"a": content}


def test_a_zstd_member_is_expanded_and_checked() -> None:
    import zstandard

    data = zstandard.ZstdCompressor().compress(CONTENT)
    assert read(archive(RawMember(b"a.py", CONTENT, method=93, data=data))) == {"a.py": CONTENT}
    assert refused(archive(RawMember(b"a.py", CONTENT, method=93, data=data[:-4]))).code == "intake-zip-corrupt"
    assert refused(archive(RawMember(b"a.py", CONTENT[:-1], method=93, data=data))).code == "intake-zip-corrupt"


@pytest.mark.parametrize("content", [b"", CONTENT, bytes(3 << 20)])
def test_a_streamed_member_is_checked_like_a_whole_one(content: bytes) -> None:
    data = archive(RawMember(b"a", content))
    (member,) = read_members(data, WHEEL)
    assert b"".join(stream(data, member, WHEEL)) == content == bytes(expand(data, member, WHEEL))
    for lie in (member._replace(size=len(content) + 1), member._replace(crc=member.crc ^ 1)):
        with pytest.raises(EnvdslError, match="not what its headers say"):
            list(stream(data, lie, WHEEL))
    if content:
        for lie in (
            member._replace(size=len(content) - 1),
            member._replace(compressed_size=member.compressed_size - 1),
        ):
            with pytest.raises(EnvdslError, match="not what its headers say"):
                list(stream(data, lie, WHEEL))


def test_streaming_never_yields_more_than_declared() -> None:
    """A bomb that hides its size is cut off at the size that it claims."""
    content = bytes(8 << 20)
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = compressor.compress(content) + compressor.flush()
    member = Member("bomb", 8, zlib.crc32(content), len(data), 100, 0, False)
    taken = 0
    with pytest.raises(EnvdslError, match="more than"):  # noqa: PT012
        for block in stream(data, member, WHEEL):
            taken += len(block)
    assert taken <= 100


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_flipped_or_cut_archive_is_read_as_before_or_refused(data: st.DataObject) -> None:
    """Whatever is done to the bytes, the answer is the same content or a refusal, never another exception."""
    original = archive(A, RawMember(b"pkg/b.py", CONTENT, method=0), RawMember(b"c", CONTENT, mode=0o100755))
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["flip", "insert", "delete", "cut"])):
            case "flip":
                damaged[position] ^= 1 << data.draw(st.integers(0, 7))
            case "insert":
                damaged[position:position] = data.draw(st.binary(min_size=1, max_size=8))
            case "delete":
                del damaged[position : position + data.draw(st.integers(1, 8))]
            case "cut":
                del damaged[max(position, 1) :]
        if not damaged:
            return
    try:
        found = read(bytes(damaged))
    except EnvdslError as error:
        assert error.code.startswith("intake-")  # noqa: PT017 (both outcomes are right)
    else:
        assert set(found.values()) <= {CONTENT}


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes_are_refused(data: bytes) -> None:
    assert refused(data).code.startswith("intake-zip-")


@pytest.mark.parametrize("missing", ["deflate", "isal", "both"])
def test_zlib_does_where_faster_libraries_are_missing(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    if missing in ("deflate", "both"):
        monkeypatch.setattr("envdsl.realise.inflate._whole", None)
        monkeypatch.setattr("envdsl.realise.inflate._crc32", zlib.crc32)
    if missing in ("isal", "both"):
        monkeypatch.setattr("envdsl.realise.inflate._streaming", lambda: zlib)
    assert read(archive(A, RawMember(b"empty"))) == {"a.py": CONTENT, "empty": b""}
    for data in STRUCTURES["zip-corrupt"]:
        assert refused(data).code == "intake-zip-corrupt"
    (member,) = read_members(archive(RawMember(b"a", bytes(3 << 20))), WHEEL)
    assert len(b"".join(stream(archive(RawMember(b"a", bytes(3 << 20))), member, WHEEL))) == 3 << 20

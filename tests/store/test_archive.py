"""The archive format: one way to write it, one way to read it, and tar itself as the oracle."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import zstandard
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.store import archive
from envdsl.store.archive import Member, Reader, Writer

LIST = "list.json"
CONTENT = {"a/one": b"first", "a/two": b"", "b/three": b"\0" * 1000, "é/" + "n" * 120: b"long and not ASCII"}


def file(name: str, content: bytes, *, executable: bool = False) -> Member:
    return Member(name, "file", len(content), blake3(content).hexdigest(), executable)


MEMBERS = [
    *(file(name, content) for name, content in CONTENT.items()),
    file("bin/run", b"#!/bin/sh\n", executable=True),
    Member("bin/again", "link", executable=True, target="bin/run"),
    Member("empty", "directory"),
    Member("way", "symlink", target="a/one"),
    Member("far", "symlink", target="a/" + "x" * 150),
]
BYTES = {**CONTENT, "bin/run": b"#!/bin/sh\n"}


def write(members: Sequence[Member] = MEMBERS, content: bytes = b"[]") -> bytes:
    out = io.BytesIO()
    writer = Writer(out)
    writer.add_list(LIST, content)
    for member in members:
        writer.add(member, [BYTES[member.name]] if member.type == "file" else [])
    writer.finish()
    return out.getvalue()


def read(data: bytes, members: Sequence[Member] = MEMBERS) -> dict[str, bytes]:
    reader = Reader(io.BytesIO(data), "x.tar.zst")
    content = {LIST: reader.read_list(LIST)}
    reader.expect(members)
    content |= {member.name: b"".join(reader.read(member)) for member in members}
    reader.finish()
    return content


def tar_of(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def compress(tar: bytes, **parameters: object) -> bytes:
    """As the writer does it, so that only what is inside differs."""
    out = io.BytesIO()
    parameters = {"window_log": 23, "write_checksum": True, **parameters}
    chosen = zstandard.ZstdCompressionParameters.from_level(3, **parameters)
    with zstandard.ZstdCompressor(compression_params=chosen).stream_writer(out, closefd=False) as stream:
        stream.write(tar)
    return out.getvalue()


def refused(data: bytes, members: Sequence[Member] = MEMBERS) -> str:
    with pytest.raises(EnvdslError) as caught:
        read(data, members)
    assert "x.tar.zst" in str(caught.value)
    return caught.value.code


def test_what_is_written_is_read() -> None:
    content = read(write())
    assert content[LIST] == b"[]"
    assert {name: data for name, data in content.items() if name in BYTES} == BYTES


def test_writing_again_gives_the_same_bytes() -> None:
    """Issue 3.8: one reproducible file."""
    assert write() == write()


def test_any_tar_program_can_look_into_it() -> None:
    """Issue 3.8: the format is tar: the standard library reads the names, sizes, modes, links and contents."""
    with tarfile.open(fileobj=io.BytesIO(tar_of(write()))) as tar:
        found = {item.name: item for item in tar.getmembers()}
        assert list(found) == [LIST, *(member.name for member in MEMBERS)]
        for name, content in BYTES.items():
            extracted = tar.extractfile(name)
            assert extracted is not None
            assert extracted.read() == content
    assert {item.mtime for item in found.values()} == {1}
    assert {(item.uid, item.gid, item.uname) for item in found.values()} == {(0, 0, "")}
    assert found["bin/run"].mode == 0o755
    assert found["a/one"].mode == 0o644
    assert found["bin/again"].islnk()
    assert found["bin/again"].linkname == "bin/run"
    assert found["far"].linkname == "a/" + "x" * 150
    assert found["empty"].isdir()


@pytest.mark.parametrize("size", [0o77777777777, 0o77777777777 + 1, 1 << 40])
def test_sizes_beyond_eight_gibibytes_are_written_as_tar_has_them(size: int) -> None:
    header = Member("big", size=size).header() + bytes(1024)
    with tarfile.open(fileobj=io.BytesIO(header)) as tar:
        first = tar.next()
    assert first is not None
    assert (first.name, first.size) == ("big", size)


@given(st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=300))
def test_any_name_survives_in_tar(name: str) -> None:
    with tarfile.open(fileobj=io.BytesIO(Member(name).header() + bytes(1024))) as tar:
        first = tar.next()
    assert first is not None
    assert first.name == name


@given(st.data())
def test_no_change_of_content_goes_unnoticed(data: st.DataObject) -> None:
    """Issue 3.8: an import checks every hash: whatever bit of the file is another, it is refused, or it is one of those
    that say nothing (compressed data can spell the same content in several ways)."""
    good = write()
    position = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[position] ^= 1 << data.draw(st.integers(0, 7))
    try:
        content = read(bytes(bad))
    except EnvdslError:
        return
    assert content == read(good)
    assert tar_of(bytes(bad)) == tar_of(good)


@given(st.data())
def test_no_change_of_a_byte_inside_goes_unnoticed(data: st.DataObject) -> None:
    """Issue 3.8: the same for who can compute a checksum."""
    tar = bytearray(tar_of(write()))
    # Behind the first header: the caller has to compare the list itself.
    position = data.draw(st.integers(1024, len(tar) - 1))
    tar[position] ^= 1 << data.draw(st.integers(0, 7))
    assert refused(compress(bytes(tar))).startswith("archive-")


def test_a_cut_archive_is_refused() -> None:
    good = write()
    for length in range(0, len(good), 7):
        assert refused(good[:length]) in ("archive-truncated", "archive-format", "archive-damaged"), length
    tar = tar_of(good)
    for length in range(1024, len(tar), 512):
        assert refused(compress(tar[:length])) in ("archive-truncated", "archive-format"), length


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda good: good + b"\0", "archive-trailing"),
        (lambda good: good + good, "archive-trailing"),
        (lambda good: good + b"\x50\x2a\x4d\x18\4\0\0\0evil", "archive-trailing"),  # a skippable frame
        (lambda good: compress(tar_of(good) + b"\0" * 512), "archive-trailing"),
        (lambda good: compress(tar_of(good) + b"evil"), "archive-trailing"),
        (lambda good: b"\x50\x2a\x4d\x18\4\0\0\0evil" + good, "archive-format"),
        (lambda good: b"PK\3\4" + good, "archive-format"),
        (lambda good: compress(tar_of(good), write_checksum=False), "archive-format"),
        (lambda good: compress(tar_of(good), window_log=27), "archive-bomb"),
    ],
)
def test_a_frame_of_another_form_is_refused(change: Callable[[bytes], bytes], code: str) -> None:
    """Issue 3.8: trailing data, hidden data, and frames that would need much memory."""
    assert refused(change(write())) == code


def tar_with(*items: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """The good archive's members in tar, ``items`` behind them, made by the standard library's writer."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in items:
            tar.addfile(info, io.BytesIO(content))
    good = tar_of(write()).removesuffix(bytes(1024))
    return compress(good + out.getvalue().rstrip(b"\0").ljust(512, b"\0") + bytes(2048))


def info(name: str, kind: bytes = tarfile.REGTYPE, **facts: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in facts.items():
        setattr(made, key, value)
    return made


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (info("extra"), "archive-unlisted"),
        (info("../../etc/cron.d/evil"), "archive-unlisted"),
        (info("/etc/passwd"), "archive-unlisted"),
        (info("a/one"), "archive-duplicate"),
        (info("null", tarfile.CHRTYPE, devmajor=1, devminor=3), "archive-type"),
        (info("disk", tarfile.BLKTYPE, devmajor=8), "archive-type"),
        (info("pipe", tarfile.FIFOTYPE), "archive-type"),
        (info("out", tarfile.SYMTYPE, linkname="/etc"), "archive-type"),
        (info("out", tarfile.LNKTYPE, linkname="/etc/shadow"), "archive-type"),
    ],
)
def test_a_member_that_is_not_on_the_list_is_refused(member: tarfile.TarInfo, code: str) -> None:
    """Issue 3.8: hostile archives: absolute, `..`, devices, links, duplicates, unlisted members."""
    assert refused(tar_with((member, b""))) == code


def test_a_member_of_the_list_that_is_missing_is_refused() -> None:
    """Issue 3.8: missing members, at the end and in between."""
    assert refused(write(MEMBERS[:-1])) == "archive-missing"
    assert refused(write([*MEMBERS[:2], *MEMBERS[3:]])) == "archive-missing"


def test_members_in_another_order_are_refused() -> None:
    assert refused(write([MEMBERS[1], MEMBERS[0], *MEMBERS[2:]])) == "archive-missing"


@pytest.mark.parametrize(
    "facts",
    [{"mode": 0o4755}, {"uid": 1000}, {"mtime": 7}, {"uname": "root"}, {"size": 4}],
)
def test_a_header_of_another_form_is_refused(facts: dict[str, object]) -> None:
    """Issue 3.8: setuid bits, owners and times have no place, and a size is the listed one."""
    good = tar_of(write())
    header = info("a/one", size=5, mode=0o644, mtime=1)
    for key, value in facts.items():
        setattr(header, key, value)
    at = good.index(MEMBERS[0].header())
    tar = good[:at] + header.tobuf(tarfile.USTAR_FORMAT) + good[at + 512 :]
    assert refused(compress(tar)) == "archive-header"


@pytest.mark.parametrize("smaller", [True, False])
def test_a_file_of_another_size_than_listed_is_refused(smaller: bool) -> None:
    """Issue 3.8: bombs: declared against real size."""
    listed = [replace(MEMBERS[0], size=4 if smaller else 600), *MEMBERS[1:]]
    assert refused(write(), listed) == "archive-header"
    with pytest.raises(EnvdslError, match="changed on the disk"):
        write(listed)


def test_data_behind_a_member_are_refused() -> None:
    good = bytearray(tar_of(write()))
    end = good.index(b"first") + 5
    good[end : end + 4] = b"evil"
    assert refused(compress(bytes(good))) == "archive-padding"


def test_a_list_that_expands_too_much_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3.8: bombs: ratio, total."""
    reader = Reader(io.BytesIO(write()), "x.tar.zst")
    reader.read_list(LIST)
    with pytest.raises(EnvdslError) as caught:
        reader.expect([Member("zeros", size=1 << 30)])
    assert caught.value.code == "archive-bomb"
    monkeypatch.setattr(archive, "MAX_LIST", 1)
    assert refused(write()) == "archive-list"


def test_what_is_not_the_list_first_is_refused() -> None:
    with pytest.raises(EnvdslError) as caught:
        Reader(io.BytesIO(write()), "x.tar.zst").read_list("bundle.json")
    assert caught.value.code == "archive-list"

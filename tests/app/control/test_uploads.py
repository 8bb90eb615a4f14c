"""Wheels that come with a request are taken in as strictly as those of an index."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from envdsl.app.control import asking, uploads
from envdsl.app.control.uploads import place, prune, receive
from envdsl.errors import EnvdslError
from envdsl.policy.proposal import Upload
from tests.app.control.bench import ADMIN, Bench
from tests.wheels import make_wheel, sha256


def kept(bench: Bench) -> list[str]:
    root = bench.project.store.layout.root / "uploads"
    return sorted(path.name for path in root.rglob("*") if path.is_file()) if root.is_dir() else []


def test_a_wheel_is_kept_under_its_hash_and_its_report_says_what_is_in_it(light_bench: Bench, tmp_path: Path) -> None:
    """Issue 4.8: wheel upload with the intake report."""
    wheel = make_wheel(
        tmp_path,
        "My-Tool",
        "1.2",
        files={"my_tool/__init__.py": "x = 1\n"},
        requires=["foo>=1"],
        entry_points={"mine": "my_tool:main"},
        extra_metadata="License-Expression: MIT\nSummary: A tool\nRequires-Python: >=3.9\n",
    )
    upload, report = receive(light_bench.plane, wheel.name, io.BytesIO(wheel.read_bytes()))
    assert upload.sha256 == sha256(wheel)
    path = place(light_bench.project.store.layout, upload)
    assert path.read_bytes() == wheel.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o444
    facts = report.to_json()
    assert {key: facts[key] for key in ("name", "version", "imports", "scripts", "requires", "licence")} == {
        "name": "my-tool",
        "version": "1.2",
        "imports": ("my_tool",),
        "scripts": ("mine",),
        "requires": ("foo>=1",),
        "licence": "MIT",
    }
    assert facts["requires-python"] == ">=3.9"
    assert receive(light_bench.plane, wheel.name, io.BytesIO(wheel.read_bytes()))[0] == upload


def test_a_session_sends_only_so_much_that_it_does_not_ask_for(
    light_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = light_bench
    bench.session("s")
    monkeypatch.setattr(uploads, "MOST_UNUSED", 2)
    wheels = [make_wheel(tmp_path, "mine", str(number)) for number in range(4)]

    def send(number: int, session: str | None = "s") -> Upload:
        wheel = wheels[number]
        return receive(bench.plane, wheel.name, io.BytesIO(wheel.read_bytes()), session=session)[0]

    first, _ = send(0), send(1)
    before = kept(bench)
    for _ in ("too many", "too large"):
        with pytest.raises(EnvdslError) as caught:
            send(2)
        assert caught.value.code == "app-too-many-uploads"
        assert kept(bench) == before
        monkeypatch.setattr(uploads, "MOST_UNUSED", 1000)
        monkeypatch.setattr(uploads, "MOST_UNUSED_BYTES", first.size + 1)
    monkeypatch.setattr(uploads, "MOST_UNUSED", 2)
    monkeypatch.setattr(uploads, "MOST_UNUSED_BYTES", 1 << 30)
    asked = bench.ask("s", uploads=[first])
    send(2)
    asking.cancel(bench.plane, ADMIN, asked.id)
    with pytest.raises(EnvdslError, match="3 wheels"):
        send(3)
    send(3, None)
    assert len(prune(bench.plane, keep=(), older_than=-60)) == 4
    assert kept(bench) == []


@pytest.mark.parametrize(
    "name",
    ["../evil-1-py3-none-any.whl", "/tmp/evil-1-py3-none-any.whl", "evil.whl", "a\0b-1-py3-none-any.whl", "", "x.exe"],
)
def test_a_name_that_is_no_wheels_is_refused(light_bench: Bench, name: str) -> None:
    """Issue 4.9: safe file names."""
    with pytest.raises(EnvdslError) as caught:
        receive(light_bench.plane, name, io.BytesIO(b"x"))
    assert caught.value.code == "app-upload-name"
    assert kept(light_bench) == []


def test_no_more_is_read_than_the_limit_allows(light_bench: Bench) -> None:
    """Issue 4.9: upload limits."""

    class Endless:
        read_bytes = 0

        def read(self, size: int, /) -> bytes:
            self.read_bytes += size
            return b"x" * size

    endless = Endless()
    with pytest.raises(EnvdslError) as caught:
        receive(light_bench.plane, "big-1-py3-none-any.whl", endless, limit=3 << 20)
    assert caught.value.code == "app-upload-size"
    assert endless.read_bytes <= 5 << 20
    assert kept(light_bench) == []


def test_what_a_build_would_refuse_is_refused_at_once(light_bench: Bench, tmp_path: Path) -> None:
    """Issue 4.2: uploaded wheels pass the whole intake, the content of each member against RECORD too."""
    wheel = make_wheel(tmp_path, "foo", "9")
    renamed = "bar-9-py3-none-any.whl"
    tampered = make_wheel(tmp_path / "t", "mine", "1", files={"mine.py": "good = 1\n"}, compression=0)
    tampered.write_bytes(tampered.read_bytes().replace(b"good = 1", b"evil = 1"))
    for name, content in (
        (renamed, wheel.read_bytes()),
        (wheel.name, wheel.read_bytes()[:-10]),
        (wheel.name, b""),
        (tampered.name, tampered.read_bytes()),
    ):
        with pytest.raises(EnvdslError) as caught:
            receive(light_bench.plane, name, io.BytesIO(content))
        assert caught.value.code.startswith("intake-")
    assert kept(light_bench) == []
    assert not list(light_bench.project.store.layout.tmp.rglob("*.whl"))


def test_old_uploads_that_nobody_asked_for_go(light_bench: Bench, tmp_path: Path) -> None:
    uploads = []
    for name in ("old", "asked", "fresh"):
        wheel = make_wheel(tmp_path, name, "1")
        uploads.append(receive(light_bench.plane, wheel.name, io.BytesIO(wheel.read_bytes()))[0])
    for upload in uploads[:2]:
        then = time.time() - 1000
        os.utime(place(light_bench.project.store.layout, upload), (then, then))
    removed = prune(light_bench.plane, keep=[uploads[1].sha256], older_than=500)
    assert [path.name for path in removed] == [uploads[0].filename]
    assert kept(light_bench) == [uploads[1].filename, uploads[2].filename]


def test_no_more_is_unpacked_than_there_is_room_for(
    light_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4.9: upload limits. A small archive may claim a lot, and is unpacked before a person has looked."""
    wheel = make_wheel(tmp_path, "mine", "1.0", files={"mine.py": "#" * 100_000})
    monkeypatch.setattr("envdsl.app.control.uploads.MOST_UNPACKED", 90_000)
    with wheel.open("rb") as file, pytest.raises(EnvdslError) as caught:
        receive(light_bench.plane, wheel.name, file)
    assert caught.value.code == "app-upload-size"
    assert kept(light_bench) == []
    assert not list(light_bench.project.store.layout.root.rglob("mine.py"))

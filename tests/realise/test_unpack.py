"""How a wheel is laid out."""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from envdsl.realise.unpack import with_shebang
from envdsl.store.treehash import scan
from tests.realise.building import altered, unpacked
from tests.wheels import make_wheel


def test_schemes_go_to_their_places(tmp_path: Path) -> None:
    """Issue 2.9: schemes, scripts, headers, data files and executable bits."""
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo/__init__.py": "", "demo/run.sh": "#!/bin/sh\n", "demo/data.bin": b"\0" * 5000},
        data={
            "purelib/pure.py": "x = 1\n",
            "platlib/plat.py": "x = 2\n",
            "scripts/tool": "#!python -E\nprint(1)\n",
            "headers/demo.h": "#pragma once\n",
            "data/share/demo/x.txt": "shared\n",
            "data/etc/demo.conf": "",
        },
        entry_points={"demo": "demo:main"},
        executable=["demo/run.sh"],
    )
    unpacked(wheel, tmp_path / "out")
    out = tmp_path / "out"
    found = {str(path.relative_to(out)): path.stat() for path in out.rglob("*") if path.is_file()}
    info = "site-packages/demo-1.0.dist-info"
    executables = {"bin/tool", "bin/demo", "site-packages/demo/run.sh"}
    assert set(found) == executables | {
        "site-packages/demo/__init__.py",
        "site-packages/demo/data.bin",
        "site-packages/pure.py",
        "site-packages/plat.py",
        "include/demo/demo.h",
        "share/demo/x.txt",
        "etc/demo.conf",
        *(f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "INSTALLER", "entry_points.txt")),
    }
    for path, status in found.items():
        assert stat.S_IMODE(status.st_mode) == (0o555 if path in executables else 0o444), path
        assert status.st_mtime == 1
    for directory in [path for path in out.rglob("*") if path.is_dir()]:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o555
        assert directory.stat().st_mtime == 1
    assert (out / info / "INSTALLER").read_text() == "envdsl\n"


def test_the_listing_is_what_stands_on_the_disk(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={f"demo/m{number}.py": f"x = {number}\n" * number for number in range(200)},
        data={"scripts/tool": "#!python\n"},
        entry_points={"demo": "demo.m1:x"},
    )
    listing = unpacked(wheel, tmp_path / "out")
    assert listing.entries == scan(tmp_path / "out").entries


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (b"#!python\nx\n", b"#!/usr/bin/env python3\nx\n"),
        (b"#!pythonw\r\nx\r\n", b"#!/usr/bin/env python3\nx\r\n"),
        (b"#!python", b"#!/usr/bin/env python3\n"),
        (b"#!python3 -E\nx\n", b"#!/usr/bin/env python3\nx\n"),
        (b"#!/bin/sh\n", b"#!/bin/sh\n"),
        (b"\x7fELF", b"\x7fELF"),
    ],
)
def test_shebangs_are_found_by_path(script: bytes, expected: bytes) -> None:
    """Issue 2.9: scripts with shebangs that are found by PATH and not by a store path."""
    assert with_shebang(script) == expected


def test_console_scripts_run_wherever_python3_is_on_path(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo.py": "class App:\n    def main():\n        print('ran')\n        return 3\n"},
        entry_points={"demo-run": "demo:App.main"},
    )
    unpacked(wheel, tmp_path / "out")
    python = tmp_path / "bin/python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "PYTHONPATH": str(tmp_path / "out/site-packages")}
    done = subprocess.run([tmp_path / "out/bin/demo-run"], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("ran\n", 3)


def test_record_describes_what_was_written(tmp_path: Path) -> None:
    """Issue 2.9: RECORD names every file with its hash, relative to site-packages."""
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        data={"scripts/tool": "#!python\n", "data/share/ä b": "x"},
        entry_points={"d": "demo:x"},
    )
    unpacked(wheel, tmp_path / "out")
    site = tmp_path / "out/site-packages"
    with (site / "demo-1.0.dist-info/RECORD").open(newline="") as file:
        rows = {path: (digest, size) for path, digest, size in csv.reader(file)}
    assert rows.pop("demo-1.0.dist-info/RECORD") == ("", "")
    named = {os.path.normpath(site / path) for path in rows}
    written = {str(path) for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name != "RECORD"}
    assert named == written
    for path, (digest, size) in rows.items():
        content = (site / path).read_bytes()
        wanted = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={wanted}", str(len(content)))


def test_bytecode_of_a_wheel_is_never_taken_over(tmp_path: Path) -> None:
    wheel = altered(make_wheel(tmp_path, "demo", "1.0"), {"__pycache__/demo.cpython-312.pyc": b"evil"})
    listing = unpacked(wheel, tmp_path / "out", record_mismatch=True)
    assert not [entry.path for entry in listing if "__pycache__" in entry.path]


def test_unpacking_twice_gives_the_same_tree(tmp_path: Path) -> None:
    """Issue 2.8: bit-identical trees."""
    wheel = make_wheel(tmp_path, "demo", "1.0", entry_points={"b": "demo:x", "a": "demo:x"})
    assert unpacked(wheel, tmp_path / "one").tree_hash() == unpacked(wheel, tmp_path / "two").tree_hash()


def test_modes_do_not_depend_on_the_umask(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", data={"scripts/tool": "#!python\n"})
    old = os.umask(0o077)
    try:
        unpacked(wheel, tmp_path / "out")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "out/site-packages/demo.py").stat().st_mode) == 0o444
    assert stat.S_IMODE((tmp_path / "out/bin/tool").stat().st_mode) == 0o555
    assert stat.S_IMODE((tmp_path / "out/bin").stat().st_mode) == 0o555


def test_a_huge_member_costs_little_memory(tmp_path: Path) -> None:
    """Issue 3.1: members are streamed once they are large. 160 MB here, measured in a process of its own."""
    wheel = make_wheel(tmp_path, "demo", "1.0", files={"demo.bin": os.urandom(1 << 20) * 160}, compression=0)
    script = Path(__file__).with_name("peak_memory.py")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, script, wheel, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert int(done.stdout) < 60_000  # KB
    assert (tmp_path / "out/site-packages/demo.bin").stat().st_size == 160 << 20

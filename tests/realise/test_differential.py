"""`installer` is the oracle: the same wheel, unpacked by it and by us, gives the same tree."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.sources import WheelFile

from tests.realise.building import unpacked
from tests.wheels import make_wheel

# What differs on purpose: RECORD names other hashes then, INSTALLER names us.
OURS = ("RECORD", "INSTALLER")
REAL = {
    "numpy": "2.2.1",
    "lxml": "5.3.0",
    "pillow": "11.1.0",
    "setuptools": "75.6.0",
    "matplotlib": "3.10.0",
    "greenlet": "3.1.1",
    "jupyterlab-widgets": "3.0.13",
}


def installed(wheel: Path, root: Path, name: str) -> dict[str, tuple[bytes, bool]]:
    site = str(root / "site-packages")
    schemes = {"purelib": site, "platlib": site, "scripts": str(root / "bin")}
    schemes |= {"headers": str(root / "include" / name), "data": str(root)}
    destination = SchemeDictionaryDestination(schemes, interpreter="python3", script_kind="posix")
    with warnings.catch_warnings(), WheelFile.open(wheel) as source:
        warnings.simplefilter("ignore")  # bytecode that it skips, as we do
        source.validate_record()
        install(source, destination, {})
    return tree(root)


def tree(root: Path) -> dict[str, tuple[bytes, bool]]:
    """Content and executable bit by path; shebangs that point at a Python made equal, scripts always executable."""
    found = {}
    for path in root.rglob("*"):
        relative = path.relative_to(root)
        if not path.is_file() or (relative.parent.suffix == ".dist-info" and path.name in OURS):
            continue
        content = path.read_bytes()
        script = relative.parts[0] == "bin"
        if script and content.startswith((b"#!python3", b"#!/usr/bin/env python3")):
            content = b"#!PYTHON\n" + content.partition(b"\n")[2]
        found[str(relative)] = (content, script or bool(path.stat().st_mode & 0o100))
    return found


def check(wheel: Path, tmp_path: Path, name: str) -> None:
    ours = unpacked(wheel, tmp_path / "ours")
    expected = installed(wheel, tmp_path / "theirs", name)
    found = tree(tmp_path / "ours")
    assert set(found) == set(expected)
    assert [path for path in expected if found[path] != expected[path]] == []
    assert len(ours) >= len(found)


def test_a_wheel_with_everything_in_it_is_laid_out_as_installer_does_it(tmp_path: Path) -> None:
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo/__init__.py": "", "demo/ü.txt": "ü", "demo.pth": "import sys\n", "demo/run": "#!/bin/sh\n"},
        data={
            "purelib/pure.py": "x = 1\n",
            "scripts/tool": "#!python -E\nprint(1)\n",
            "scripts/windowed": "#!pythonw\nprint(1)\n",
            "scripts/shell": "#!/bin/sh\n",
            "headers/sub/demo.h": "h",
            "data/share/x": "x",
        },
        entry_points={"one": "demo:main", "two": "demo.sub:Class.method"},
        executable=["demo/run"],
    )
    check(wheel, tmp_path, "demo")


@pytest.mark.network
@pytest.mark.parametrize("name", REAL)
def test_real_wheels_are_laid_out_as_installer_does_it(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    platform = ["--python-version", "3.12", "--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_28_x86_64"]
    subprocess.run([*command, *platform, "--dest", tmp_path, f"{name}=={REAL[name]}"], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    check(wheel, tmp_path, name)

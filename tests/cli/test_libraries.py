"""Compiled wheels of a base and an x layer, from layer file to sandbox."""

from __future__ import annotations

import platform
from pathlib import Path

from tests.cli.conftest import PYTHON, Cli
from tests.realise.test_libraries import BORROWED, Compiler, compiler, wheels

__all__ = ["compiler"]

PLATFORM = f"manylinux_2_17_{platform.machine()}"
LAYERS = f"""\
base ground {{ python = "{PYTHON}"; platforms = [ "{PLATFORM}" ]; packages = [ "ground" ]; }}
x over on ground {{ packages = [ "over" ]; }}
"""
PROGRAM = """
import ground, over
places = {line.split()[-1] for line in open("/proc/self/maps") if "libstep" in line}
print(ground.count, over.count, len(places))
"""


def test_an_x_layer_imports_against_its_base_in_a_sandbox(run: Cli, project: Path, compiler: Compiler) -> None:
    """Issue 3.3: a real lock, build and sandbox; the library is mapped once, by whichever path."""
    for wheel in wheels(project / "wheels", compiler, tag=f"py3-none-{PLATFORM}"):
        assert wheel.exists()
    (project / "layers.d" / "all.layer").write_text(LAYERS)
    (project / "envdsl.toml").write_text((project / "envdsl.toml").read_text().replace('"core"', '"ground"'))
    assert run("lock").status == 0
    done = run("build")
    assert done.status == 0, done.err
    layer = Path(run("show", "over", "--json").json["path"])
    assert all((layer / path).is_file() for path in BORROWED)
    assert run("session", "create", "libraries", "-l", "ground", "-l", "over").status == 0
    try:
        done = run("run", "libraries", "--", "python3", "-c", PROGRAM)
    finally:
        run("session", "remove", "libraries")
    assert (done.out, done.status) == ("1 2 1\n", 0), done.err

"""What a table was measured on: without that its times mean nothing."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from pathlib import Path

from benchmarks.scratch import UV, Scratch
from envdsl import __version__
from envdsl.sandbox import bwrap


def describe(scratch: Scratch) -> dict[str, str]:
    """Facts by name, in the order to show them in."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {
        "envdsl": __version__,
        "uv": _version([UV, "--version"]),
        "bwrap": _bwrap(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": scratch.file_system,
        "load at the start": " ".join(f"{load:.1f}" for load in os.getloadavg()),
    }


def _bwrap() -> str:
    with tempfile.TemporaryDirectory(prefix="envdsl-bench-") as place:
        return _version([str(bwrap.find(Path(place))), "--version"])


def _version(arguments: list[str]) -> str:
    """The number in ``uv 1.2.3 (abc)``."""
    said = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    return said.split()[1]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())

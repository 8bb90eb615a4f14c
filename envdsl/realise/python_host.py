"""Pythons that stand on the host, or in a directory that an archive was unpacked to: where they are and what they say.

The fallback for managed interpreters copies one of them. Candidates are named explicitly, never looked
up on PATH: a PATH holds shims, virtual environments and other people's choices.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from envdsl.model.names import PythonVersion

# Isolated and without `site`, so that neither the environment nor a virtual environment answers.
_QUESTION = """
import json, platform, sys, sysconfig
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": platform.python_version().rstrip("+"),
    "minor": sys.version_info[1],
    "flags": sys.abiflags,
    "machine": platform.machine(),
    "prefix": sys.base_prefix,
    "libraries": sys.platlibdir,
    "stdlib": sysconfig.get_path("stdlib"),
}))
"""
_ANSWER_SECONDS = 30

# For people: what `candidates` looks through.
SEARCHED = "no other one beside envdsl's own, in uv's, pyenv's and mise's installations, /usr/local, /usr and /opt"


class NotUsableError(Exception):
    """A Python that can't become a managed one; the message says why."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What one Python says of itself. ``executable`` is the real binary below ``prefix``, never a link or shim."""

    executable: Path
    implementation: str
    version: str
    python: PythonVersion
    machine: str
    prefix: Path
    libraries: str
    stdlib: Path


def inspect(executable: Path) -> Installation:
    """Run ``executable`` and ask. Raises :class:`NotUsableError`."""
    try:
        answer = subprocess.run(
            [executable, "-I", "-S", "-c", _QUESTION],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            env={"LC_ALL": "C.UTF-8"},
            check=True,
        )
        facts = json.loads(answer.stdout)
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
        raise NotUsableError(f"it does not run ({last})") from error
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise NotUsableError(f"it does not run ({error})") from error
    prefix = Path(facts["prefix"])
    python = PythonVersion(facts["minor"])
    if facts["implementation"] != "cpython" or facts["flags"]:
        # Wheels are chosen for the plain ABI: free-threaded and debug builds load other ones.
        raise NotUsableError(f"it is {facts['implementation']} with ABI flags {facts['flags']!r}, not plain CPython")
    if facts["machine"] != platform.machine():
        raise NotUsableError(f"it is for {facts['machine']}, and this host is {platform.machine()}")
    binary = prefix / "bin" / f"python{python}"
    if not binary.is_file():
        raise NotUsableError(f"{binary} does not exist")
    return Installation(
        executable=binary.resolve(),
        implementation=facts["implementation"],
        version=facts["version"],
        python=python,
        machine=facts["machine"],
        prefix=prefix,
        libraries=facts["libraries"],
        stdlib=Path(facts["stdlib"]),
    )


def candidates(python: PythonVersion) -> Iterator[Path]:
    """Executables of that feature release that the host may have, the likeliest first, each once.

    The interpreter that envdsl runs on comes first: it is known to work. Then what version managers and
    distributions install.
    """
    seen: set[Path] = set()
    for path in _places(python):
        real = path.resolve()
        if real not in seen and os.access(real, os.X_OK):
            seen.add(real)
            yield path


def _places(python: PythonVersion) -> Iterator[Path]:
    name = f"python{python}"
    yield Path(sys.base_prefix) / "bin" / name
    home = Path(os.environ.get("HOME") or Path.home())
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share")
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    yield from _newest(data / "uv/python", f"cpython-{python}.*/bin/{name}")
    yield from _newest(pyenv / "versions", f"{python}.*/bin/{name}")
    yield from _newest(data / "mise/installs/python", f"{python}.*/bin/{name}")
    yield Path("/usr/local/bin") / name
    yield Path("/usr/bin") / name
    yield from _newest(Path("/opt"), f"*/bin/{name}")
    yield from _newest(Path("/opt/hostedtoolcache/Python"), f"{python}.*/*/bin/{name}")


def _newest(directory: Path, pattern: str) -> list[Path]:
    """Matches with the highest patch release first."""

    def order(path: Path) -> list[tuple[int, int | str]]:
        # Pieces of digits compare as numbers; everything else as text, below them.
        pieces = path.relative_to(directory).parts[0].replace("-", ".").split(".")
        return [(1, int(piece)) if piece.isdigit() else (0, piece) for piece in pieces]

    return sorted(directory.glob(pattern), key=order, reverse=True)

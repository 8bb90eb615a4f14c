"""Which wheel suits a platform best (PEP 425, PEP 600, PEP 656), for platforms other than the one we run on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from envdsl.model.names import Platform, PythonVersion

if TYPE_CHECKING:
    from packaging.tags import Tag

# The names that PEP 513, PEP 571 and PEP 599 gave to manylinux tags before PEP 600 spelled them by glibc version.
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
_LEGACY_MACHINES = {"manylinux2014": ("x86_64", "aarch64"), "manylinux2010": ("x86_64",), "manylinux1": ("x86_64",)}
_OLDEST_GLIBC = {"x86_64": 5, "aarch64": 17}


def platform_tags(platform: Platform) -> Iterator[str]:
    """The platform tags that run on ``platform``, best first."""
    yield f"linux_{platform.machine}"  # built for this very machine, by somebody who says so
    oldest = _OLDEST_GLIBC[platform.machine] if platform.libc == "manylinux" else 0
    for minor in range(platform.minor, oldest - 1, -1):
        yield f"{platform.libc}_{platform.major}_{minor}_{platform.machine}"
        legacy = _LEGACY.get((platform.major, minor))
        if platform.libc == "manylinux" and legacy and platform.machine in _LEGACY_MACHINES[legacy]:
            yield f"{legacy}_{platform.machine}"


@lru_cache(maxsize=64)
def ranks(python: PythonVersion, platform: Platform) -> dict[Tag, int]:
    """The tags that run on CPython ``python`` on ``platform``; the lower the rank, the better."""
    from packaging.tags import compatible_tags, cpython_tags

    version = (3, python.minor)
    platforms = list(platform_tags(platform))
    tags = [
        *cpython_tags(version, [python.tag], platforms),
        *compatible_tags(version, python.tag, platforms),
    ]
    return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}


def rank(filename: str, python: PythonVersion, platform: Platform) -> tuple[int, tuple[int, str]] | None:
    """How good a wheel of this name is there (the greater, the better), or None where it does not run.

    Raises ``packaging.utils.InvalidWheelFilename``.
    """
    from packaging.utils import parse_wheel_filename

    _, _, build, tags = parse_wheel_filename(filename)
    order = ranks(python, platform)
    best = min((order[tag] for tag in tags if tag in order), default=None)
    return None if best is None else (-best, build or (0, ""))


def best(filenames: Iterable[str], python: PythonVersion, platform: Platform) -> str | None:
    """The wheel to take; the first of equals. None where none runs."""
    chosen: tuple[tuple[int, tuple[int, str]], str] | None = None
    for filename in filenames:
        score = rank(filename, python, platform)
        if score is not None and (chosen is None or score > chosen[0]):
            chosen = score, filename
    return chosen[1] if chosen else None

"""Names of layers, interpreters and platforms."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from envdsl.model.digest import STORE_HASH_LENGTH, store_hash

# PEP 751 allows no dot in the middle of `pylock.<name>.toml`.
LAYER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PYTHON = re.compile(r"3\.(0|[1-9][0-9]?)")
MACHINES = ("x86_64", "aarch64")
_PLATFORM = re.compile(rf"(manylinux|musllinux)_([0-9]{{1,2}})_([0-9]{{1,3}})_({'|'.join(MACHINES)})")
_LAYER_ID = re.compile(rf"(base|x|iso)-([0-9a-z]{{{STORE_HASH_LENGTH}}})")


class LayerKind(StrEnum):
    BASE = "base"
    X = "x"
    ISO = "iso"


@dataclass(frozen=True, slots=True, order=True)
class PythonVersion:
    """A Python feature release, ``3.12``."""

    minor: int

    @classmethod
    def parse(cls, text: str) -> PythonVersion:
        """Raises ValueError for anything but ``3.<minor>``."""
        match = _PYTHON.fullmatch(text)
        if match is None:
            raise ValueError(f"not a Python feature release: {text!r}")
        return cls(int(match[1]))

    @property
    def tag(self) -> str:
        """The interpreter tag of PEP 425: ``cp312``."""
        return f"cp3{self.minor}"

    @property
    def cache_tag(self) -> str:
        """The tag in the names of bytecode files (PEP 3147): ``cpython-312``."""
        return f"cpython-3{self.minor}"

    def __str__(self) -> str:
        return f"3.{self.minor}"


@dataclass(frozen=True, slots=True, order=True)
class Platform:
    """A platform tag of PEP 600 or PEP 656, ``manylinux_2_28_x86_64``: a libc, its version, a machine."""

    libc: str
    major: int
    minor: int
    machine: str

    @classmethod
    def parse(cls, text: str) -> Platform:
        """Raises ValueError for anything but a manylinux or musllinux tag of a known machine."""
        match = _PLATFORM.fullmatch(text)
        if match is None:
            raise ValueError(f"not a Linux platform tag: {text!r}")
        return cls(match[1], int(match[2]), int(match[3]), match[4])

    def __str__(self) -> str:
        return f"{self.libc}_{self.major}_{self.minor}_{self.machine}"


# What layers are locked for where neither they nor the project say it.
DEFAULT_PLATFORMS = (Platform("manylinux", 2, 28, "x86_64"), Platform("manylinux", 2, 28, "aarch64"))


@dataclass(frozen=True, slots=True, order=True)
class LayerId:
    """``base-<hash>``, ``x-<hash>`` or ``iso-<hash>``: what a layer is called in the store."""

    kind: LayerKind
    hash: str

    @classmethod
    def of_key(cls, kind: LayerKind, key: str) -> LayerId:
        return cls(kind, store_hash(key))

    @classmethod
    def parse(cls, text: str) -> LayerId:
        """Raises ValueError for anything that is not spelled like a layer id."""
        match = _LAYER_ID.fullmatch(text)
        if match is None:
            raise ValueError(f"not a layer id: {text!r}")
        return cls(LayerKind(match[1]), match[2])

    def __str__(self) -> str:
        return f"{self.kind}-{self.hash}"

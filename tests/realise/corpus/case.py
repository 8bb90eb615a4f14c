"""One case, and the wheel it is built from: a valid one, with what is wrong put into it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.realise.archives import RawMember, archive

Rows = list[str]


@dataclass(frozen=True)
class Wheel:
    """What is in a wheel. ``record`` changes RECORD's rows, ``members`` the members of the archive, both as the last
    thing; ``info`` and ``data_directory`` are the names of the directories, ``filename`` that of the file."""

    files: Mapping[str, bytes] = field(default_factory=lambda: {"demo.py": b"x = 1\n"})
    data: Mapping[str, bytes] = field(default_factory=dict)
    name: str = "demo"
    version: str = "1.0"
    info: str = "demo-1.0.dist-info"
    data_directory: str = "demo-1.0.data"
    filename: str = "demo-1.0-py3-none-any.whl"
    metadata: bytes | None = None
    wheel_version: str = "1.0"
    entry_points: str | None = None
    record: Callable[[Rows], Rows] = lambda rows: rows
    members: Callable[[list[RawMember]], Sequence[RawMember]] = lambda members: members
    finish: Callable[[bytes], bytes] = lambda archive: archive

    def build(self, directory: Path) -> Path:
        contents: dict[str, bytes] = dict(self.files)
        contents |= {f"{self.data_directory}/{path}": content for path, content in self.data.items()}
        metadata = f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n"
        contents[f"{self.info}/METADATA"] = metadata.encode() if self.metadata is None else self.metadata
        wheel = f"Wheel-Version: {self.wheel_version}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        contents[f"{self.info}/WHEEL"] = wheel.encode()
        if self.entry_points is not None:
            contents[f"{self.info}/entry_points.txt"] = self.entry_points.encode()
        rows = [row(path, content) for path, content in contents.items()]
        rows = self.record([*rows, f"{self.info}/RECORD,,"])
        contents[f"{self.info}/RECORD"] = "".join(f"{line}\n" for line in rows).encode()
        members = [RawMember(path.encode(), content) for path, content in contents.items()]
        target = directory / self.filename
        target.write_bytes(self.finish(archive(*self.members(members))))
        return target


@dataclass(frozen=True)
class Case:
    """``code`` is the refusal's, None where the wheel is accepted; ``warning`` is part of what is said then.

    ``waivable`` tells that `allow.record-mismatch` lets it in all the same. ``holds`` looks at what was unpacked.
    """

    name: str
    reference: str
    reason: str
    wheel: Wheel
    code: str | None = None
    warning: str | None = None
    waivable: bool = False
    holds: Callable[[Path], bool] = lambda root: True


def row(path: str, content: bytes, algorithm: str = "sha256") -> str:
    digest = base64.urlsafe_b64encode(hashlib.new(algorithm, content).digest()).rstrip(b"=").decode()
    quoted = f'"{path}"' if "," in path else path
    return f"{quoted},{algorithm}={digest},{len(content)}"


def without(path: str) -> Callable[[Rows], Rows]:
    return lambda rows: [line for line in rows if not line.startswith(f"{path},")]


def replaced(path: str, *lines: str) -> Callable[[Rows], Rows]:
    """The rows with ``lines`` for the one of ``path``."""
    return lambda rows: [*without(path)(rows), *lines]


def with_member(*more: RawMember) -> Callable[[list[RawMember]], Sequence[RawMember]]:
    return lambda members: [*more, *members]


def changed(name: str, **facts: object) -> Callable[[list[RawMember]], Sequence[RawMember]]:
    """The members with attributes of the one called ``name`` set."""

    def change(members: list[RawMember]) -> Sequence[RawMember]:
        for member in members:
            if member.name == name.encode():
                for attribute, value in facts.items():
                    setattr(member, attribute, value)
        return members

    return change

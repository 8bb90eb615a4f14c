"""What is known of managed interpreters: the type, where they stand, which one is meant.

Three things stand beside the prefixes in ``python/``: ``<name>.json`` says for each where it came from (beside the
prefix and not in it, so that one build has one tree hash wherever it came from), ``SOURCE`` says it for all of
them, for people, and ``current`` points at the one that was chosen last.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from envdsl.model.canonical import canonical_json
from envdsl.model.names import PythonVersion
from envdsl.store.store import Store, StorePath

_FORMAT = 1
_NAME = re.compile(
    r"(?P<implementation>[a-z]+)-(?P<version>3\.(?P<minor>\d+)\.(?P<patch>\d+)(?P<rest>[^-]*))-[0-9a-z]+"
)


@dataclass(frozen=True, slots=True)
class PythonSource:
    """Where an interpreter came from: ``kind`` is ``standalone`` (through uv), ``archive`` or ``fallback``.

    ``origin`` is for people: the archive's file name, or the path and system of the host's Python. ``missing``
    names standard modules that the origin lacks.
    """

    kind: Literal["standalone", "archive", "fallback"]
    origin: str
    sha256: str | None = None
    missing: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = {
            "standalone": f"python-build-standalone, through uv ({self.origin})",
            "archive": f"python-build-standalone archive {self.origin}, sha256 {self.sha256}",
            "fallback": f"FALLBACK: a copy of {self.origin}",
        }[self.kind]
        return text + (f"; lacks the modules {', '.join(self.missing)}" if self.missing else "")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A managed interpreter in the store. ``name`` is its directory's, ``full_version`` such as ``3.12.13``."""

    python: PythonVersion
    full_version: str
    implementation: str
    name: str
    prefix: Path
    source: PythonSource
    key: str
    tree_hash: str

    @property
    def executable(self) -> Path:
        """The absolute path of what sandboxes run as ``python3``."""
        return self.prefix / "bin" / "python3"

    @property
    def fallback(self) -> bool:
        return self.source.kind == "fallback"


def installed(store: Store) -> list[Interpreter]:
    """All interpreters of ``store``: by feature release, the preferred one of each release first."""
    found = [read(store, path) for path in store.paths("python") if store.layout.absolute(path.path).is_dir()]
    return sorted(found, key=_preference)


def find(store: Store, python: PythonVersion) -> Interpreter | None:
    """The preferred interpreter of that feature release: a real build before a fallback, then the newest."""
    return next((interpreter for interpreter in installed(store) if interpreter.python == python), None)


def current(store: Store) -> Interpreter | None:
    """What ``python/current`` points at."""
    link = store.layout.python / "current"
    name = link.readlink().name if link.is_symlink() else None
    return next((interpreter for interpreter in installed(store) if interpreter.name == name), None)


def use(store: Store, interpreter: Interpreter) -> None:
    """Let ``python/current`` point at ``interpreter``."""
    link = store.layout.python / "current"
    if link.is_symlink() and link.readlink().name == interpreter.name:
        return
    new = link.with_name(f".current-{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(interpreter.name)
    new.replace(link)


def note(store: Store, name: str, source: PythonSource) -> None:
    """Write down where the interpreter ``name`` comes from."""
    _write(_note(store, name), canonical_json({"format": _FORMAT, **asdict(source)}) + b"\n")


def write_source(store: Store) -> None:
    """``python/SOURCE``: one line an interpreter."""
    lines = [f"{item.name}\t{item.source}\n" for item in installed(store)]
    _write(store.layout.python / "SOURCE", "".join(lines).encode())


def read(store: Store, path: StorePath) -> Interpreter:
    """The interpreter that stands at the valid path ``path``."""
    prefix = store.layout.absolute(path.path)
    name = _NAME.fullmatch(prefix.name)
    assert name is not None, "python.py names them"
    return Interpreter(
        python=PythonVersion(int(name["minor"])),
        full_version=name["version"],
        implementation=name["implementation"],
        name=prefix.name,
        prefix=prefix,
        source=_source(store, prefix.name),
        key=path.key,
        tree_hash=path.tree_hash,
    )


def _source(store: Store, name: str) -> PythonSource:
    try:
        facts: dict[str, Any] = json.loads(_note(store, name).read_bytes())
        return PythonSource(facts["kind"], facts["origin"], facts["sha256"], tuple(facts["missing"]))
    except (OSError, ValueError, KeyError, TypeError):
        # It runs all the same; what is not known is not trusted to be a build that others have.
        return PythonSource("fallback", "something that is not on record any more")


def _note(store: Store, name: str) -> Path:
    return store.layout.python / f"{name}.json"


def _preference(interpreter: Interpreter) -> tuple[Any, ...]:
    name = _NAME.fullmatch(interpreter.name)
    release, prerelease = (int(name["patch"]), name["rest"]) if name else (0, "")
    return (interpreter.python, interpreter.fallback, -release, prerelease, interpreter.name)


def _write(path: Path, content: bytes) -> None:
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_bytes(content)
    new.replace(path)

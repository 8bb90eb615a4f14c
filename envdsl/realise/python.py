"""Managed interpreters: the Pythons that sandboxes run.

Each stands in the store as ``python/<implementation>-<version>-<hash>``, immutable like a layer. Its key is
the blake3 of what the prefix holds apart from bytecode, so the same build is the same path however it came.
Three sources, in this order:

1. a python-build-standalone archive that the caller gives, with its sha256;
2. uv's download of such an archive (from a mirror, where one is named);
3. the fallback: a copy of a Python of that feature release on this host.

``python.json`` in a prefix says what it is; ``python/SOURCE`` says it for all of them, for people.
``python/current`` points at the one that was chosen last.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex, is_sha256, store_hash
from envdsl.model.names import PythonVersion
from envdsl.realise import python_download
from envdsl.realise.python_host import SEARCHED, Installation, NotUsableError, candidates, inspect
from envdsl.realise.python_prefix import PYTHON_RECIPE, assemble, compile_bytecode
from envdsl.reporter import Reporter
from envdsl.store.store import Store, StorePath
from envdsl.store.treehash import scan

FACTS = "python.json"
_FORMAT = 1


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
    found = [_read(store, path) for path in store.paths("python")]
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


def install(
    store: Store,
    python: PythonVersion,
    *,
    archive: Path | None = None,
    sha256: str | None = None,
    mirror: str | None = None,
    offline: bool = False,
    reporter: Reporter | None = None,
) -> Interpreter:
    """Make a managed interpreter of that feature release, or return the one that answers already.

    With ``archive`` and ``sha256`` exactly that build; otherwise uv's download (not when ``offline``), otherwise
    the fallback, with a warning. Raises EnvdslError: ``realise-python-missing`` (nothing worked; every attempt with
    its reason), ``realise-python-archive`` and ``-archive-hash``, ``realise-python-arguments``.
    """
    reporter = reporter or Reporter()
    if (archive is None) != (sha256 is None) or (sha256 is not None and not is_sha256(sha256.lower())):
        raise EnvdslError.of(
            "realise-python-arguments",
            "an archive of a Python and its sha256 (64 hexadecimal digits) go together",
            hint="envdsl python install 3.12 --archive FILE --sha256 DIGEST",
            exit_status=ExitStatus.USAGE,
        )
    with store.lease(), store.building(blake3_hex(f"python {python}".encode())):
        present = _answering(store, python, sha256)
        if present is not None:
            return present
        with reporter.task(f"Python {python}") as task:
            if archive is not None and sha256 is not None:
                task.describe(archive.name)
                interpreter = _from_archive(store, python, archive, sha256.lower())
            else:
                interpreter = _from_uv_or_host(store, python, mirror, offline, reporter)
        _write_notes(store)
        if current(store) is None:
            use(store, interpreter)
    return interpreter


def _answering(store: Store, python: PythonVersion, sha256: str | None) -> Interpreter | None:
    for interpreter in installed(store):
        if interpreter.python != python:
            continue
        if sha256 is None and not interpreter.fallback:
            return interpreter
        if sha256 is not None and interpreter.source.sha256 == sha256.lower():
            return interpreter
    return None


def _from_archive(store: Store, python: PythonVersion, archive: Path, sha256: str) -> Interpreter:
    with _workspace(store) as work:
        executable = python_download.unpack(archive, sha256, work / "archive")
        try:
            origin = inspect(executable)
            if origin.python != python:
                raise NotUsableError(f"it holds Python {origin.version}")
            return _register(store, work, origin, PythonSource("archive", archive.name, sha256))
        except NotUsableError as error:
            raise EnvdslError.of(
                "realise-python-archive", f"{archive.name} gives no Python {python}: {error}"
            ) from error


def _from_uv_or_host(
    store: Store, python: PythonVersion, mirror: str | None, offline: bool, reporter: Reporter
) -> Interpreter:
    attempts: list[tuple[str, str]] = []
    if offline:
        attempts.append(("python-build-standalone through uv", "offline"))
    else:
        try:
            with _workspace(store) as work:
                executable = python_download.download(python, work / "uv", mirror=mirror)
                origin = inspect(executable)
                return _register(store, work, origin, PythonSource("standalone", executable.parent.parent.name))
        except NotUsableError as error:
            attempts.append(("python-build-standalone through uv", str(error)))
    present = find(store, python)  # a fallback made earlier: still nothing better to be had
    if present is not None:
        return present
    for candidate in candidates(python):
        try:
            origin = inspect(candidate)
            if origin.python != python:
                raise NotUsableError(f"it is Python {origin.version}")
            with _workspace(store) as work:
                where = f"{candidate} ({_system()})"
                interpreter = _register(store, work, origin, PythonSource("fallback", where))
        except NotUsableError as error:
            attempts.append((str(candidate), str(error)))
            continue
        reporter.warn(_fallback_warning(interpreter, attempts))
        return interpreter
    attempts.append(("a Python of this host", SEARCHED))
    raise _nothing_worked(python, attempts)


def _register(store: Store, work: Path, origin: Installation, source: PythonSource) -> Interpreter:
    """Assemble ``origin`` in ``work`` and hand it to the store."""
    prefix = work / "prefix"
    missing = assemble(origin, prefix)
    content = blake3_hex(
        canonical_json(
            {
                "format": _FORMAT,
                "implementation": origin.implementation,
                "kind": "python",
                "recipe": PYTHON_RECIPE,
                "tree": scan(prefix).tree_hash(),
                "version": origin.version,
            }
        )
    )
    name = f"{origin.implementation}-{origin.version}-{store_hash(content)}"
    present = store.lookup(content)
    if present is not None:
        return _read(store, present)
    compile_bytecode(prefix, str(origin.python))
    facts = {
        "format": _FORMAT,
        "implementation": origin.implementation,
        "key": content,
        "name": name,
        "python": str(origin.python),
        "source": {"kind": source.kind, "missing": list(missing), "origin": source.origin, "sha256": source.sha256},
        "version": origin.version,
    }
    (prefix / FACTS).write_bytes(canonical_json(facts) + b"\n")
    path = store.register(
        prefix, store.layout.python_path(name), key=content, kind="python", listing=scan(prefix), references=()
    )
    return _read(store, path)


def _read(store: Store, path: StorePath) -> Interpreter:
    prefix = store.layout.root / path.path
    facts: dict[str, Any] = json.loads((prefix / FACTS).read_bytes())
    source = facts["source"]
    return Interpreter(
        python=PythonVersion.parse(facts["python"]),
        full_version=facts["version"],
        implementation=facts["implementation"],
        name=prefix.name,
        prefix=prefix,
        source=PythonSource(source["kind"], source["origin"], source["sha256"], tuple(source["missing"])),
        key=path.key,
        tree_hash=path.tree_hash,
    )


def _preference(interpreter: Interpreter) -> tuple[Any, ...]:
    patch = re.match(r"3\.\d+\.(\d+)(.*)", interpreter.full_version)
    release, prerelease = (int(patch[1]), patch[2]) if patch else (0, "")
    return (interpreter.python, interpreter.fallback, -release, prerelease, interpreter.name)


@contextmanager
def _workspace(store: Store) -> Iterator[Path]:
    work = store.temporary("python")
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _fallback_warning(interpreter: Interpreter, attempts: Sequence[tuple[str, str]]) -> Diagnostic:
    return Diagnostic(
        "realise-python-fallback",
        f"Python {interpreter.python} is a copy of a Python of this host ({interpreter.source.origin}), because "
        f"{attempts[0][0]} was not to be had: {attempts[0][1]}",
        hint=f"for the same interpreter on every host: envdsl python install {interpreter.python} "
        "with --mirror URL, or with --archive FILE --sha256 DIGEST",
        severity="warning",
        details={"interpreter": interpreter.name, "attempts": [list(attempt) for attempt in attempts]},
    )


def _nothing_worked(python: PythonVersion, attempts: Sequence[tuple[str, str]]) -> EnvdslError:
    tried = "".join(f"\n  {what}: {why}" for what, why in attempts)
    return EnvdslError.of(
        "realise-python-missing",
        f"there is no Python {python} to be had; tried:{tried}",
        hint=f"let envdsl reach a mirror (envdsl python install {python} --mirror URL), bring an archive "
        f"(--archive FILE --sha256 DIGEST), or install Python {python} on this host",
        exit_status=ExitStatus.ENVIRONMENT,
        details={"python": str(python), "attempts": [list(attempt) for attempt in attempts]},
    )


def _write_notes(store: Store) -> None:
    """``python/SOURCE``: one line an interpreter."""
    lines = [f"{item.name}\t{item.source}\n" for item in installed(store)]
    notes = store.layout.python / "SOURCE"
    new = notes.with_name(f".SOURCE-{os.getpid()}")
    new.write_text("".join(lines), encoding="utf-8")
    new.replace(notes)

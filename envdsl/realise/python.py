"""Managed interpreters: the Pythons that sandboxes run.

Each stands in the store as ``python/<implementation>-<version>-<hash>``, immutable like a layer. Its key is
the blake3 of what the prefix holds apart from bytecode, so the same build is the same path however it came.
Three sources, in this order:

1. a python-build-standalone archive that the caller gives, with its sha256;
2. uv's download of such an archive (from a mirror, where one is named);
3. the fallback: a copy of a Python of that feature release on this host.

What is known of each stands in :mod:`envdsl.realise.python_registry`.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex, is_sha256, store_hash
from envdsl.model.names import PythonVersion
from envdsl.realise import python_download, python_registry
from envdsl.realise.python_host import SEARCHED, Installation, NotUsableError, candidates, inspect
from envdsl.realise.python_prefix import PYTHON_RECIPE, assemble, compile_bytecode
from envdsl.realise.python_registry import Interpreter, PythonSource, current, find, installed, use
from envdsl.reporter import Reporter
from envdsl.store.failures import failures
from envdsl.store.store import Store
from envdsl.store.treehash import Listing, scan

__all__ = ["Interpreter", "PythonSource", "content_key", "current", "find", "install", "installed", "use"]

_FORMAT = 1


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
    lock = blake3_hex(f"python {python}".encode())
    with store.lease(), store.building(lock), failures(f"make Python {python}", store.layout.root):
        present = _answering(store, python, sha256)
        if present is not None:
            return present
        with reporter.task(f"Python {python}") as task:
            if archive is not None and sha256 is not None:
                task.describe(archive.name)
                interpreter = _from_archive(store, python, archive, sha256.lower())
            else:
                interpreter = _from_uv_or_host(store, python, mirror, offline, reporter)
        python_registry.write_source(store)
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
    content = content_key(origin.implementation, origin.version, scan(prefix))
    name = f"{origin.implementation}-{origin.version}-{store_hash(content)}"
    source = replace(source, missing=missing)
    present = store.lookup(content)
    if present is not None:
        known = python_registry.read(store, present)
        if known.fallback:  # the same bytes, and now it is known whose build they are
            python_registry.note(store, name, source)
        return python_registry.read(store, present)
    compile_bytecode(prefix, str(origin.python))
    python_registry.note(store, name, source)  # first: an interpreter that is valid has its note
    path = store.register(
        prefix, store.layout.python_path(name), key=content, kind="python", listing=scan(prefix), references=()
    )
    return python_registry.read(store, path)


def content_key(implementation: str, version: str, listing: Listing) -> str:
    """The key of an interpreter that holds ``listing``: its bytecode, which follows from the rest, takes no part."""
    tree = Listing(entry for entry in listing if "__pycache__" not in entry.path.split("/"))
    return blake3_hex(
        canonical_json(
            {
                "format": _FORMAT,
                "implementation": implementation,
                "kind": "python",
                "recipe": PYTHON_RECIPE,
                "tree": tree.tree_hash(),
                "version": version,
            }
        )
    )


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

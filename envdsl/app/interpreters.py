"""Managed interpreters, as the commands and the builds need them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import PythonVersion

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.realise.python import Interpreter


def preference(project: Project, python: PythonVersion) -> tuple[int, int]:
    """How well a feature release suits this machine: installed, before to be had without network, before the rest.

    Of several that suit equally the newest is best.
    """
    from envdsl.realise import python as managed
    from envdsl.realise.python_host import candidates

    if managed.find(project.store, python) is not None:
        rank = 2
    elif python in project.config.python_archives or any(True for _ in candidates(python)):
        rank = 1
    else:
        rank = 0
    return rank, python.minor


def provide(project: Project, python: PythonVersion, *, offline: bool) -> Interpreter:
    """The interpreter of a feature release, installed now if it is missing.

    Raises :class:`EnvdslError` (exit status ENVIRONMENT) when there is none to be had.
    """
    from envdsl.realise import python_registry  # what installs has no part in a build that has its interpreter

    found = python_registry.find(project.store, python)
    if found is not None:
        return found
    interpreter = _install(project, python, offline=offline or project.downloads_failed)
    # Where one download failed the next would fail too, and each costs its retries.
    project.downloads_failed |= interpreter.fallback
    return interpreter


def install(
    project: Project, version: str, *, archive: Path | None, sha256: str | None, mirror: str | None, offline: bool
) -> Interpreter:
    """``envdsl python install``: what the command line says goes before what ``envdsl.toml`` says."""
    from envdsl.realise import python as managed

    interpreter = _install(project, parse(version), archive=archive, sha256=sha256, mirror=mirror, offline=offline)
    managed.use(project.store, interpreter)
    return interpreter


def _install(
    project: Project,
    python: PythonVersion,
    *,
    archive: Path | None = None,
    sha256: str | None = None,
    mirror: str | None = None,
    offline: bool,
) -> Interpreter:
    from envdsl.realise import python as managed

    configured = project.config.python_archives.get(python)
    if archive is None and mirror is None and configured is not None:
        archive, sha256 = configured.path, configured.sha256
    interpreter = managed.install(
        project.store,
        python,
        archive=archive,
        sha256=sha256,
        mirror=mirror or project.config.python_mirror,
        offline=offline,
        reporter=project.reporter,
    )
    project.store.flush()
    return interpreter


def installed(project: Project) -> list[Interpreter]:
    from envdsl.realise import python as managed

    return managed.installed(project.store)


def show(project: Project, version: str | None) -> Interpreter:
    """The interpreter of ``version``, or ``python/current``. Raises ``app-no-interpreter``."""
    from envdsl.realise import python as managed

    found = managed.find(project.store, parse(version)) if version else managed.current(project.store)
    if found is None:
        raise EnvdslError.of(
            "app-no-interpreter",
            f"no interpreter of Python {version} is installed" if version else "no interpreter is installed",
            hint=f"envdsl python install {version or '3.12'}",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return found


def parse(version: str) -> PythonVersion:
    try:
        return PythonVersion.parse(version)
    except ValueError as error:
        raise EnvdslError.of(
            "app-python-version",
            f"{error}; layers are made for a feature release",
            hint="write it like 3.12",
            exit_status=ExitStatus.USAGE,
        ) from error


def to_json(interpreter: Interpreter) -> dict[str, Any]:
    return {
        "python": str(interpreter.python),
        "version": interpreter.full_version,
        "executable": str(interpreter.executable),
        "source": str(interpreter.source),
        "fallback": interpreter.fallback,
        "key": interpreter.key,
        "tree-hash": interpreter.tree_hash,
    }

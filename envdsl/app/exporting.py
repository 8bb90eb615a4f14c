"""``envdsl export``: what is locked, for installers that know nothing of envdsl.

A layer is exported with its base, a session with all that it is bound to: one version of each distribution. Every form
but ``constraints`` pins wheels by sha256.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app.subject import Subject, subject_of
from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.lock.lock import Lock, LockedPackage, LockedWheel
    from envdsl.model.names import Platform

WHEELHOUSE = "wheelhouse"


@dataclass(frozen=True, slots=True)
class Exported:
    """``text`` is the file's, empty for an environment. ``files`` were written below ``directory``, if there is one."""

    text: str
    directory: Path | None
    files: tuple[str, ...] = ()


def export(
    project: Project,
    wanted: str,
    style: str,
    *,
    directory: Path | None = None,
    all_platforms: bool = False,
    offline: bool = False,
) -> Exported:
    """Export a layer or session as ``pylock``, ``requirements``, ``constraints`` or ``venv``.

    ``directory`` gets the file and a wheelhouse beside it, or becomes the environment; it must be empty or not there.
    ``all_platforms``: wheels of all locked platforms, not this machine's. Raises EnvdslError ``app-export-directory``,
    ``app-export-venv``, and what :func:`envdsl.app.subject.subject_of` and fetching raise.
    """
    subject = subject_of(project, wanted)
    lock = subject.merged()
    if directory is not None and directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise EnvdslError.of(
            "app-export-directory",
            f"{directory} is there already, and not empty",
            hint="name a new directory",
            exit_status=ExitStatus.USAGE,
        )
    if style == "venv":
        assert directory is not None
        _make_environment(project, subject, lock, directory, offline=offline)
        return Exported("", directory)
    name, write = _WRITERS[style]
    text = write(lock)
    if directory is None:
        return Exported(text, None)
    platforms = lock.platforms if all_platforms else (subject.platform,)
    directory.mkdir(parents=True, exist_ok=True)
    wheels = _fill(project, subject, lock, platforms, directory / WHEELHOUSE, offline=offline)
    name = name.format(name=subject.name)
    (directory / name).write_text(text, encoding="utf-8")
    return Exported(text, directory, (name, *(f"{WHEELHOUSE}/{wheel}" for wheel in wheels)))


def pylock(lock: Lock) -> str:
    """PEP 751, without what envdsl alone understands; wheels stand in ``wheelhouse/`` beside it."""
    from dataclasses import replace

    import tomlkit

    from envdsl.lock.pylock import render

    packages = tuple(
        replace(
            package,
            platforms=tuple((platform, replace(wheel, path=None, url=None)) for platform, wheel in package.platforms),
        )
        for package in lock.packages
    )
    document = tomlkit.parse(render(replace(lock, packages=packages)))
    del document["tool"]
    text = tomlkit.dumps(document)
    return f"# Exported by `envdsl export` from {lock.layer}.\n{text[text.index('lock-version') :]}"


def requirements(lock: Lock) -> str:
    """A requirements file in pip's hash-checking mode."""
    return "".join(f"{line}\n" for line in _requirements(lock))


def constraints(lock: Lock) -> str:
    """Versions alone."""
    return "".join(f"{package.name}=={package.version}\n" for package in lock.packages)


_WRITERS: dict[str, tuple[str, Callable[[Lock], str]]] = {
    "pylock": ("pylock.{name}.toml", pylock),
    "requirements": ("requirements.txt", requirements),
    "constraints": ("constraints.txt", constraints),
}
STYLES = (*_WRITERS, "venv")


def _requirements(lock: Lock) -> Iterator[str]:
    yield f"# Exported by `envdsl export` from {lock.layer}, for Python {lock.python}."
    for package in lock.packages:
        hashes = sorted({wheel.sha256 for _, wheel in package.platforms})
        lines = [
            f"{package.name}=={package.version}{_marker(package, lock)}",
            *(f"--hash=sha256:{item}" for item in hashes),
        ]
        yield " \\\n    ".join(lines)


def _marker(package: LockedPackage, lock: Lock) -> str:
    """For which machines, where not for all."""
    machines = sorted({platform.machine for platform, _ in package.platforms})
    if machines == sorted({platform.machine for platform in lock.platforms}):
        return ""
    return " ; " + " or ".join(f'platform_machine == "{machine}"' for machine in machines)


def _fill(
    project: Project, subject: Subject, lock: Lock, platforms: Iterable[Platform], place: Path, *, offline: bool
) -> tuple[str, ...]:
    """Put the wheels into ``place``; their names. As copies: what lies there is somebody else's to change."""
    wanted = _wheels(lock, platforms)
    with project.store.lease():
        found = _fetched(project, subject, wanted, offline=offline)
        place.mkdir(parents=True)
        for wheel, source in found:
            shutil.copyfile(source, place / wheel.filename)
    return tuple(wheel.filename for wheel in wanted)


def _wheels(lock: Lock, platforms: Iterable[Platform]) -> list[LockedWheel]:
    chosen = set(platforms)
    found = {
        wheel.filename: wheel
        for package in lock.packages
        for platform, wheel in package.platforms
        if platform in chosen
    }
    return [found[name] for name in sorted(found)]


def _fetched(
    project: Project, subject: Subject, wanted: Iterable[LockedWheel], *, offline: bool
) -> list[tuple[LockedWheel, Path]]:
    """Each wheel with its file, fetched if it is not here."""
    from envdsl.app.building import fetcher
    from envdsl.app.control.bound_locks import kept_wheel
    from envdsl.graph.derivation import WheelFile

    layout = project.store.layout
    layers = [project.spec.layers[lock.layer] for lock in subject.locks if lock.layer in project.spec.layers]
    missing = [wheel for wheel in wanted if kept_wheel(layout, wheel) is None]
    fetcher(project, layers, offline)([WheelFile(item.filename, item.sha256, item.size) for item in missing])
    return [(wheel, path) for wheel in wanted if (path := kept_wheel(layout, wheel)) is not None]


def _make_environment(project: Project, subject: Subject, lock: Lock, directory: Path, *, offline: bool) -> None:
    """A virtual environment of the managed interpreter, filled by uv from the very wheels, without an index."""
    from tempfile import TemporaryDirectory

    from envdsl.app import interpreters
    from envdsl.lock.uv import find_uv

    interpreter = interpreters.provide(project, lock.python, offline=offline)
    uv = str(find_uv())
    with TemporaryDirectory(prefix="envdsl-export-") as scratch:
        place = Path(scratch)
        _fill(project, subject, lock, (subject.platform,), place / WHEELHOUSE, offline=offline)
        (place / "requirements.txt").write_text(requirements(lock), encoding="utf-8")
        common = ["--no-config", "--offline", "--quiet", "--python"]
        install = [uv, "pip", "install", *common, str(directory), "--no-index", "--find-links", str(place / WHEELHOUSE)]
        install += ["--no-deps", "--require-hashes", "--link-mode", "copy", "--cache-dir", str(place / "cache")]
        install += ["--requirement", str(place / "requirements.txt")]
        for command in ([uv, "venv", *common, str(interpreter.executable), str(directory)], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=_clean_environment())
            if done.returncode != 0:
                raise EnvdslError.of(
                    "app-export-venv",
                    f"uv could not make the environment: {done.stderr.strip()}",
                    hint="`envdsl export --format requirements --dir` gives what any installer takes",
                )


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "VIRTUAL_ENV"))}

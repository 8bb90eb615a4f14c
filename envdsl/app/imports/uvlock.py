"""``uv.lock``: uv exports it to PEP 751, and what the project itself requires is read beside that.

The export reads ``uv.lock`` and ``pyproject.toml`` and nothing else: no network, no build, no interpreter of the
project's own environment (uv would run that one to ask for its version).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from envdsl.app.imports.found import Found, Target, environment
from envdsl.app.imports.pylock import of_pylock, unreadable
from envdsl.model.names import PythonVersion
from envdsl.redaction import redact

_INHERITED = ("HOME", "PATH", "TMPDIR", "UV_CACHE_DIR")
_OWN = ("editable", "virtual", "directory")


def read_uv_lock(path: Path, target: Target, *, extras: Sequence[str] = (), groups: Sequence[str] = ()) -> Found:
    """The packages that the project of ``path`` (a ``uv.lock``, or the directory of one) needs, with these extras and
    dependency groups, and no others.

    Raises what :func:`envdsl.app.imports.pylock.read_pylock` raises; ``import-unreadable`` with uv's words.
    """
    path = path.absolute()  # uv runs elsewhere
    lock = path / "uv.lock" if path.is_dir() else path
    if lock.name != "uv.lock" or not lock.is_file():
        raise unreadable(str(path), "it is no uv.lock")
    if not (lock.parent / "pyproject.toml").is_file():
        raise unreadable(str(lock), "uv needs the pyproject.toml beside it")
    try:
        data = tomllib.loads(lock.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise unreadable(str(lock), str(error)) from error
    exported = _export(lock.parent, extras, groups)
    found = of_pylock(exported, "uv.lock", target, roots=())
    roots = {root for package in _projects(data) for root in _roots(package, found.python, target, extras, groups)}
    own = {str(package["name"]): "the project's own code; a layer has it by `sources`" for package in _projects(data)}
    return Found(
        found.label,
        found.python,
        found.pins,
        roots=tuple(sorted(roots)) or None,
        hashed=True,
        left_out={**found.left_out, **own},
    )


def _export(project: Path, extras: Sequence[str], groups: Sequence[str]) -> bytes:
    from envdsl.lock.uv import find_uv

    with TemporaryDirectory(prefix="envdsl-import-") as name:
        output = Path(name) / "pylock.toml"
        command = [str(find_uv()), "export", "--frozen", "--format", "pylock.toml", "--output-file", str(output)]
        command += ["--project", str(project), "--no-emit-workspace", "--no-default-groups", "--no-header", "--offline"]
        command += ["--no-config", "--no-progress", "--color", "never"]
        # Any interpreter does; naming ours keeps uv from running one that it finds in the project.
        command += ["--python", sys.executable, "--no-python-downloads"]
        command += [word for extra in extras for word in ("--extra", extra)]
        command += [word for group in groups for word in ("--group", group)]
        inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        done = subprocess.run(
            command,
            cwd=name,
            env=inherited,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise unreadable("uv.lock", f"uv could not export it: {redact(done.stderr).strip()}")
        return output.read_bytes()


def _projects(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The entries of the project itself and of the members of its workspace."""
    for package in data.get("package", ()):
        if any(kind in package.get("source", {}) for kind in _OWN):
            yield package


def _roots(
    package: dict[str, Any], python: PythonVersion, target: Target, extras: Sequence[str], groups: Sequence[str]
) -> Iterator[str]:
    """What ``package`` requires from others, as requirements without versions."""
    from packaging.markers import Marker

    listed = list(package.get("dependencies", ()))
    for extra in extras:
        listed += package.get("optional-dependencies", {}).get(extra, ())
    for group in groups:
        listed += package.get("dev-dependencies", {}).get(group, ())
    for item in listed:
        chosen = f"[{','.join(sorted(item['extra']))}]" if item.get("extra") else ""
        marker = item.get("marker")
        needed = [
            platform
            for platform in target.platforms
            if marker is None or Marker(marker).evaluate(dict(environment(python, platform)))
        ]
        if needed:
            condition = "" if len(needed) == len(target.platforms) else f"; {marker}"
            yield f"{item['name']}{chosen}{condition}"

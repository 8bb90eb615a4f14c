"""A virtual environment, by its metadata alone: nothing of it is executed, no interpreter, no ``.pth`` file.

Read are ``pyvenv.cfg`` and, of each distribution, METADATA, WHEEL, REQUESTED and ``direct_url.json`` (the packaging
specifications "Recording installed projects" and "Direct URL data structure").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from envdsl.app.imports.found import OWN_CODE, VENDORED, Findings, Found, Pin, Target
from envdsl.app.imports.pylock import unreadable
from envdsl.model.names import PythonVersion

_LIMIT = 16 << 20
_LIBRARY = re.compile(r"python(3\.\d+)t?")
# What an environment brings for itself; a sandbox has no index to install from.
_OF_THE_ENVIRONMENT = {"pip": "the environment's own installer; a sandbox has no use for one"}


def read_venv(directory: Path, target: Target) -> Found:
    """The distributions that are installed in ``directory``, from wheels of an index.

    Raises EnvdslError ``import-unreadable``, ``import-empty``, and for packages ``import-editable``,
    ``import-direct-url``, ``import-not-a-wheel``, ``import-duplicate``.
    """
    settings = _settings(directory)
    libraries, said = _site_packages(directory, settings)
    python = target.release(said, str(directory))
    findings = Findings(directory.name, target.without)
    names: dict[str, str] = {}
    requested = []
    for info in _distributions(libraries):
        name, version = _identity(info)
        if name in names:
            findings.refuse(name, "duplicate", f"is installed twice ({names[name]} and {info.name})")
            continue
        names[name] = info.name
        if name in _OF_THE_ENVIRONMENT:
            findings.left_out[name] = _OF_THE_ENVIRONMENT[name]
        elif _is_from_an_index(info, name, findings):
            findings.pin(Pin(name, version, frozenset(target.platforms)))
            if (info / "REQUESTED").exists():
                requested.append(name)
    for legacy in _legacy(libraries):
        findings.refuse(
            legacy.name,
            "not-a-wheel",
            "was not installed from a wheel",
            VENDORED,
        )
    if settings.get("include-system-site-packages") == "true":
        findings.left_out["system site-packages"] = "packages of the system's Python are not looked at"
    pins = findings.pins()
    return Found(directory.name, python, pins, roots=tuple(sorted(requested)) or None, left_out=findings.left_out)


def _settings(directory: Path) -> dict[str, str]:
    text = _text(directory / "pyvenv.cfg")
    if text is None:
        raise unreadable(str(directory), "it is no virtual environment (it has no pyvenv.cfg)")
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip().lower() for key, _, value in pairs}


def _site_packages(directory: Path, settings: dict[str, str]) -> tuple[list[Path], PythonVersion | None]:
    """The directories with distributions, and the Python that they are for."""
    found: dict[Path, str] = {}
    for library in ("lib", "lib64"):
        for entry in sorted((directory / library).glob("python3.*/site-packages")):
            match = _LIBRARY.fullmatch(entry.parent.name)
            if match is not None:
                found.setdefault(entry.resolve(), match[1])
    if not found:
        raise unreadable(str(directory), "it has no lib/python3.*/site-packages")
    version = settings.get("version_info") or settings.get("version") or ""
    said = re.match(r"3\.\d+", version)
    text = said[0] if said else next(iter(found.values()))
    return list(found), PythonVersion.parse(text)


def _distributions(libraries: list[Path]) -> Iterator[Path]:
    for library in libraries:
        yield from sorted(path for path in library.glob("*.dist-info") if path.is_dir())


def _legacy(libraries: list[Path]) -> Iterator[Path]:
    """What distutils and setuptools left: eggs, and links to source trees."""
    for library in libraries:
        for pattern in ("*.egg-info", "*.egg", "*.egg-link"):
            yield from sorted(library.glob(pattern))


def _identity(info: Path) -> tuple[str, str]:
    from packaging.metadata import parse_email
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion, Version

    text = _text(info / "METADATA")
    if text is None:
        raise unreadable(str(info), "it has no METADATA")
    raw, _ = parse_email(text)
    try:
        return canonicalize_name(raw["name"], validate=True), str(Version(raw["version"]))
    except (KeyError, ValueError, InvalidVersion) as error:
        raise unreadable(str(info), f"its METADATA has no valid name and version ({error})") from error


def _is_from_an_index(info: Path, name: str, findings: Findings) -> bool:
    origin = _direct_url(info)
    if origin is not None:
        if origin.get("dir_info", {}).get("editable"):
            findings.refuse(name, "editable", "is an editable installation", OWN_CODE)
        elif "dir_info" in origin:
            findings.refuse(name, "direct-url", "was installed from a directory", OWN_CODE)
        else:
            what = "version control" if "vcs_info" in origin else "a URL or a file"
            findings.refuse(name, "direct-url", f"was installed from {what}, not from an index", VENDORED)
        return False
    if not (info / "WHEEL").is_file():
        findings.refuse(name, "not-a-wheel", "was not installed from a wheel", VENDORED)
        return False
    return True


def _direct_url(info: Path) -> dict[str, Any] | None:
    text = _text(info / "direct_url.json")
    if text is None:
        return None
    try:
        value = json.loads(text)
        if not isinstance(value, dict) or not isinstance(value.get("dir_info", {}), dict):
            raise ValueError("it is no direct URL")
    except (ValueError, RecursionError) as error:
        raise unreadable(str(info / "direct_url.json"), str(error)) from error
    return value


def _text(path: Path) -> str | None:
    """The content of a small file; None where there is none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise unreadable(str(path), "it is larger than 16 MiB")
    return data.decode("utf-8", "replace")

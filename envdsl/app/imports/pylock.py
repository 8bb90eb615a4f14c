"""``pylock.toml`` (PEP 751), of whatever tool."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl.app.imports.found import OWN_CODE, VENDORED, Findings, Found, Pin, Target, environment, release_of
from envdsl.errors import EnvdslError
from envdsl.model.names import Platform, PythonVersion

if TYPE_CHECKING:
    from packaging.pylock import Package, Pylock


def read_pylock(path: Path, target: Target) -> Found:
    """The packages of the default installation (no extras, the default groups) on the target's platforms.

    Raises EnvdslError ``import-unreadable``, ``import-python``, ``import-empty``, and for packages
    ``import-sdist-only``, ``import-no-hash``, ``import-wrong-platform``, ``import-direct-url``, ``import-editable``,
    ``import-not-pinned``.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path.name, error.strerror or str(error)) from error
    return of_pylock(data, path.name, target)


def of_pylock(data: bytes, label: str, target: Target, *, roots: Iterable[str] | None = None) -> Found:
    """The same for the content of a file."""
    pylock = _parse(data, label)
    python = target.release(release_of(str(pylock.requires_python or "")), label)
    findings = Findings(label, target.without)
    for package in pylock.packages:
        _take(package, pylock, python, target.platforms, findings)
    pins = findings.pins()
    if roots is None:
        required = {str(item["name"]) for package in pylock.packages for item in package.dependencies or ()}
        # Without any dependencies written down, nobody can tell who asked for what.
        roots = [pin.name for pin in pins if pin.name not in required] if required else None
    return Found(
        label,
        python,
        pins,
        roots=tuple(sorted(roots)) if roots is not None else None,
        hashed=True,
        left_out=findings.left_out,
    )


def _parse(data: bytes, label: str) -> Pylock:
    from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError

    try:
        return Pylock.from_dict(tomllib.loads(data.decode("utf-8")))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise unreadable(label, str(error)) from error
    except (PylockValidationError, PylockUnsupportedVersionError) as error:
        raise unreadable(label, f"it is no lock file of PEP 751: {error}") from error


def _take(
    package: Package, pylock: Pylock, python: PythonVersion, platforms: Iterable[Platform], findings: Findings
) -> None:
    from envdsl.lock import tags

    name = str(package.name)
    needed = [platform for platform in platforms if _applies(package, pylock, python, platform)]
    if not needed:
        findings.left_out.setdefault(name, "not needed on these platforms")
        return
    if package.vcs is not None:
        findings.refuse(name, "direct-url", "comes from version control, not from an index", VENDORED)
    elif package.directory is not None:
        kind = "editable" if package.directory.editable else "directory"
        findings.refuse(name, "editable", f"is a directory ({kind}), not a wheel", OWN_CODE)
    elif package.archive is not None:
        findings.refuse(name, "direct-url", "comes from a URL or a file, not from an index", VENDORED)
    elif not package.wheels:
        findings.refuse(name, "sdist-only", "has a source distribution only", VENDORED)
    elif package.version is None:
        findings.refuse(name, "not-pinned", "has no version")
    elif missing := [item for item in needed if not tags.best((w.filename for w in package.wheels), python, item)]:
        reason = f"{package.version} has no wheel for {', '.join(map(str, missing))} with Python {python}"
        findings.refuse(name, "wrong-platform", reason, "import for other platforms (--platform), or another Python")
    else:
        hashes = frozenset(wheel.hashes["sha256"] for wheel in package.wheels if "sha256" in wheel.hashes)
        if not hashes:
            findings.refuse(name, "no-hash", "has no sha256", "lock it again with a tool that writes them")
        else:
            findings.pin(Pin(name, str(package.version), frozenset(needed), hashes))


def _applies(package: Package, pylock: Pylock, python: PythonVersion, platform: Platform) -> bool:
    if package.marker is None:
        return True
    facts: dict[str, str | frozenset[str]] = {
        **environment(python, platform),
        "extras": frozenset(),
        "dependency_groups": frozenset(pylock.default_groups or ()),
    }
    return package.marker.evaluate(facts, context="lock_file")


def unreadable(label: str, why: str) -> EnvdslError:
    """The error for a source that cannot be read at all."""
    return EnvdslError.of("import-unreadable", f"{label} cannot be imported: {why}")

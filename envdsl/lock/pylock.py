"""The lock file, ``pylock.<layer>.toml``: PEP 751, with envdsl's own facts under ``[tool.envdsl]``.

By default a wheel's place is ``wheelhouse/<file name>``: a name and a hash, and no host, so that the same
lock works behind any mirror. Which of a package's wheels is meant for which platform is not written down:
it follows from the wheels' tags, as it does for every reader of a lock file.

Two digests guard against what git cannot see when it merges two locks without a conflict: that of the inputs
and that of the pins. Both branches change them, so that a merge of two changes always ends here, in a
conflict or in an error that says to lock again.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from envdsl.errors import EnvdslError
from envdsl.lock import tags
from envdsl.lock.lock import BaseReference, Lock, LockedPackage, LockedWheel
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.model.span import Source, Span

if TYPE_CHECKING:
    from packaging.pylock import Package, PackageWheel

FORMAT = 1
WHEELHOUSE = "wheelhouse/"

_NAME = re.compile(r"pylock\.([^.]+)\.toml")
_CONFLICT = re.compile(r"^(<{7}|\|{7}|={7}|>{7})( |$)", re.MULTILINE)
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")
_HEADER = """\
# Written by `envdsl lock` from the declaration of the layer; commit it, and do not edit it.
# After a merge that touches it, run `envdsl lock` again.
"""


def read_lock(path: Path) -> Lock:
    """The lock at ``path``, validated.

    Raises EnvdslError: ``lock-merge-conflict`` (git's conflict markers), ``lock-damaged`` (no TOML, not PEP 751, no
    wheel for a platform), ``lock-inconsistent`` (packages that were not resolved together), ``lock-foreign``
    (not written by envdsl), ``lock-format`` (by a newer one), ``lock-unreadable``.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise EnvdslError.of("lock-unreadable", f"the lock {path} cannot be read: {error.strerror}") from error
    return parse_lock(data, path)


def parse_lock(data: bytes, path: Path) -> Lock:
    """The lock with the bytes ``data``, which stand at ``path`` or are to stand there. Raises as read_lock."""
    from packaging.pylock import Pylock, PylockUnsupportedVersionError, PylockValidationError

    match = _NAME.fullmatch(path.name)
    if match is None:
        raise _error("lock-foreign", path, "its name is not pylock.<layer>.toml")
    table = _parse_toml(data, path)
    facts = table.get("tool", {}).get("envdsl") if isinstance(table.get("tool"), dict) else None
    if not isinstance(facts, dict) or not isinstance(facts.get("format"), int):
        raise _error("lock-foreign", path, "it has no [tool.envdsl] with a format, so envdsl did not write it")
    if facts["format"] != FORMAT:
        raise _error("lock-format", path, f"it has format {facts['format']}, and this envdsl reads format {FORMAT}")
    try:
        pylock = Pylock.from_dict(table)
    except PylockUnsupportedVersionError as error:
        raise _error("lock-format", path, str(error)) from error
    except PylockValidationError as error:
        raise _error("lock-damaged", path, str(error)) from error
    try:
        python = PythonVersion.parse(facts["python"])
        platforms = tuple(sorted(Platform.parse(text) for text in facts["platforms"]))
        base = BaseReference(facts["base"]["name"], facts["base"]["lock"]) if "base" in facts else None
        lock = Lock(
            layer=match[1],
            kind=LayerKind(facts["kind"]),
            python=python,
            platforms=platforms,
            inputs=str(facts["inputs-digest"]),
            base=base,
            packages=tuple(_package(package, python, platforms) for package in pylock.packages),
            digest=blake3_hex(data),
            recorded={**facts["inputs"], **{key: facts[key] for key in ("kind", "python", "platforms")}}
            | ({"base": base.name} if base else {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        missing = f"{error} is missing in [tool.envdsl]" if isinstance(error, KeyError) else str(error)
        raise _error("lock-damaged", path, missing) from error
    if facts.get("pins-digest") != _pins_digest(lock):
        raise _error("lock-inconsistent", path, "its packages are not those that were resolved together")
    return lock


def render(lock: Lock) -> str:
    """The text of a lock file: the same for equal locks. ``lock.digest`` takes no part."""
    import tomlkit

    document = tomlkit.document()
    document["lock-version"] = "1.0"
    environments = sorted({_environment(platform) for platform in lock.platforms})
    document["environments"] = _lines(environments)
    document["requires-python"] = f">={lock.python},<3.{lock.python.minor + 1}"
    document["created-by"] = "envdsl"
    document["tool"] = {"envdsl": _facts(lock)}
    packages = tomlkit.aot()
    names = {package.name for package in lock.packages}
    for package in sorted(lock.packages, key=lambda package: package.name):
        packages.append(_package_table(package, lock, names))
    text = tomlkit.dumps(document)
    if packages:
        text += "\n" + tomlkit.dumps({"packages": packages})
    else:
        text = text.replace("created-by =", "packages = []\ncreated-by =", 1)
    return _HEADER + text


def finish(lock: Lock, path: Path) -> tuple[str, Lock]:
    """The text for ``lock`` and the lock that reading it at ``path`` gives, which proves that it can be read."""
    text = render(lock)
    return text, parse_lock(text.encode(), path)


def write_lock(path: Path, text: str) -> bool:
    """Make ``text`` the lock file at ``path``: wholly or, if anything fails, not at all.

    Returns whether anything was written; a file that holds these bytes already is left alone.
    """
    data = text.encode()
    try:
        if path.read_bytes() == data:
            return False
    except FileNotFoundError:
        pass
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return True


def _facts(lock: Lock) -> Any:
    import tomlkit

    facts = tomlkit.table()
    facts["format"] = FORMAT
    facts["kind"] = lock.kind.value
    facts["python"] = str(lock.python)
    facts["platforms"] = _lines([str(platform) for platform in sorted(lock.platforms)])
    facts["inputs-digest"] = lock.inputs
    facts["pins-digest"] = _pins_digest(lock)
    if lock.base is not None:
        base = tomlkit.table()
        base["name"] = lock.base.name
        base["lock"] = lock.base.digest
        facts["base"] = base
    inputs = tomlkit.table()
    for key, value in sorted(lock.recorded.items()):
        if key not in ("kind", "python", "platforms", "base"):
            inputs[key] = _lines(value) if isinstance(value, list) else value
    facts["inputs"] = inputs
    return facts


def _package_table(package: LockedPackage, lock: Lock, names: set[str]) -> Any:
    import tomlkit

    table = tomlkit.table()
    table["name"] = package.name
    table["version"] = package.version
    machines = sorted({platform.machine for platform, _ in package.platforms})
    if machines != sorted({platform.machine for platform in lock.platforms}):
        table["marker"] = " or ".join(f"platform_machine == '{machine}'" for machine in machines)
    own = sorted(name for name in package.dependencies if name in names)
    if own:
        table["dependencies"] = _lines([_inline({"name": name}) for name in own])
    wheels = {wheel.filename: wheel for _, wheel in package.platforms}
    table["wheels"] = _lines([_wheel_table(wheel) for _, wheel in sorted(wheels.items())])
    of_base = sorted(name for name in package.dependencies if name not in names)
    if of_base:
        # PEP 751 lets `dependencies` name packages of this file only.
        table["tool"] = {"envdsl": {"base-dependencies": of_base}}
    return table


def _wheel_table(wheel: LockedWheel) -> Any:
    if wheel.path is not None:
        place = {"path": wheel.path}
    elif wheel.url is not None:
        place = {"url": wheel.url}
        if unquote(urlsplit(wheel.url).path.rpartition("/")[2]) != wheel.filename:
            place = {"name": wheel.filename, **place}
    else:
        place = {"path": f"{WHEELHOUSE}{wheel.filename}"}
    return _inline({**place, "size": wheel.size, "hashes": _inline({"sha256": wheel.sha256})})


def _package(package: Package, python: PythonVersion, platforms: tuple[Platform, ...]) -> LockedPackage:
    if package.version is None or not package.wheels:
        raise ValueError(f"{package.name} has no version or no wheels")
    wheels = {wheel.filename: wheel for wheel in package.wheels}
    needed = []
    for platform in platforms:
        if package.marker is not None and not package.marker.evaluate({"platform_machine": platform.machine}):
            continue
        filename = tags.best(wheels, python, platform)
        if filename is None:
            raise ValueError(f"no wheel of {package.name} runs on {platform}")
        needed.append((platform, _wheel(wheels[filename])))
    facts = (package.tool or {}).get("envdsl", {})
    of_base = cast("list[str]", facts.get("base-dependencies", []))
    own = [str(dependency["name"]) for dependency in package.dependencies or ()]
    return LockedPackage(package.name, str(package.version), tuple(needed), tuple(sorted({*own, *of_base})))


def _wheel(wheel: PackageWheel) -> LockedWheel:
    sha256 = wheel.hashes.get("sha256")
    if sha256 is None or wheel.size is None:
        raise ValueError(f"{wheel.filename} has no sha256 or no size")
    local = wheel.path is not None and not wheel.path.startswith(WHEELHOUSE)
    return LockedWheel(wheel.filename, sha256, wheel.size, wheel.url, wheel.path if local else None)


def _pins_digest(lock: Lock) -> str:
    pins = [
        {
            "name": package.name,
            "version": package.version,
            "dependencies": list(package.dependencies),
            "wheels": [[str(platform), wheel.filename, wheel.sha256] for platform, wheel in package.platforms],
        }
        for package in sorted(lock.packages, key=lambda package: package.name)
    ]
    return blake3_hex(canonical_json(pins))


def _environment(platform: Platform) -> str:
    return f"sys_platform == 'linux' and platform_machine == '{platform.machine}' and implementation_name == 'cpython'"


def _lines(items: Any) -> Any:
    """An array with an item on each line, so that two changes to it are two lines to git."""
    import tomlkit

    array = tomlkit.array()
    array.extend(items)
    return array.multiline(bool(items))


def _inline(values: Mapping[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.inline_table()
    table.update(values)
    return table


def _parse_toml(data: bytes, path: Path) -> dict[str, Any]:
    text = data.decode("utf-8", errors="replace")
    if conflict := _CONFLICT.search(text):
        raise _error(
            "lock-merge-conflict", path, "it holds the conflict of a merge", _span(path, text, conflict.start())
        )
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _error("lock-damaged", path, "it is not UTF-8", _span(path, text, error.start)) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        span = None
        if position := _POSITION.search(str(error)):
            source = Source(str(path), text)
            line = min(int(position[1]), len(source.line_starts))
            span = _span(path, text, source.line_starts[line - 1] + int(position[2]) - 1)
        raise _error("lock-damaged", path, _POSITION.sub("", str(error)).strip(), span) from error


def _span(path: Path, text: str, offset: int) -> Span:
    offset = min(offset, max(len(text) - 1, 0))
    return Span(Source(str(path), text), offset, offset + 1)


def _error(code: str, path: Path, why: str, span: Span | None = None) -> EnvdslError:
    match = _NAME.fullmatch(path.name)
    hints = {
        "lock-format": "use the envdsl that wrote it, or a newer one",
        "lock-foreign": "move the file away if `envdsl lock` is to write its own",
    }
    hint = hints.get(code, f"`envdsl lock {match[1] if match else ''}` makes it good, keeping the pins that it finds")
    return EnvdslError.of(code, f"the lock {path} cannot be used: {why}", span=span, hint=hint)

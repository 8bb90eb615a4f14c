"""The wheels of the project itself: ``wheels = [ ./x.whl ]``, of a layer and of the base it stands on.

A distribution that has a local wheel comes from there and from nowhere else, whatever an index offers under
its name. What is local to a base is so to the x layers above it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from envdsl.errors import EnvdslError
from envdsl.evaluate.spec import LayerSpec
from envdsl.lock import tags
from envdsl.lock.freshness import wheel_sha256
from envdsl.lock.lock import Lock
from envdsl.model.names import Platform, PythonVersion
from envdsl.model.span import Span


@dataclass(frozen=True, slots=True)
class LocalWheel:
    """A wheel file of the project. ``label`` is its path as the project spells it."""

    name: str
    version: str
    path: Path
    label: str
    sha256: str
    span: Span | None = None

    @property
    def requirement(self) -> str:
        """That the distribution be this file."""
        return f"{self.name} @ {self.path.as_uri()}"


class LocalWheels:
    """All local wheels that a layer can see, by distribution."""

    def __init__(self, wheels: Iterable[LocalWheel]) -> None:
        self._by_name: dict[str, list[LocalWheel]] = {}
        for wheel in wheels:
            self._by_name.setdefault(wheel.name, []).append(wheel)

    @classmethod
    def of(cls, spec: LayerSpec, root: Path, base: Lock | None, locks: Path) -> LocalWheels:
        """Those of ``spec`` (relative to ``root``) and of its base's lock (relative to the directory ``locks``).

        Raises EnvdslError: ``lock-wheel-name``, ``lock-wheel-missing``.
        """
        wheels = [_declared(spec, root, index) for index in range(len(spec.wheels))]
        own = {wheel.name for wheel in wheels}
        for package in base.packages if base else ():
            for _, wheel in package.platforms:
                if wheel.path is not None and package.name not in own:
                    path = (locks / wheel.path).resolve()
                    if not path.is_file():
                        raise _missing(wheel.path, spec)
                    wheels.append(LocalWheel(package.name, package.version, path, wheel.path, wheel.sha256))
        return cls(dict.fromkeys(wheels))

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._by_name)

    def of_name(self, name: str) -> Sequence[LocalWheel]:
        return self._by_name.get(name, ())

    def best(self, name: str, python: PythonVersion, platform: Platform) -> LocalWheel | None:
        """The wheel of the newest version of ``name`` that runs on ``platform``."""
        from packaging.version import Version

        by_version: dict[Version, dict[str, LocalWheel]] = {}
        for wheel in self._by_name.get(name, ()):
            by_version.setdefault(Version(wheel.version), {})[wheel.path.name] = wheel
        for version in sorted(by_version, reverse=True):
            filename = tags.best(by_version[version], python, platform)
            if filename is not None:
                return by_version[version][filename]
        return None


def _declared(spec: LayerSpec, root: Path, index: int) -> LocalWheel:
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    declared = spec.wheels[index]
    path = (root / declared.path).resolve()
    try:
        name, version, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise EnvdslError.of(
            "lock-wheel-name",
            f"{declared.path} is not named like a wheel: {error}",
            span=declared.span,
            hint="a wheel is called <name>-<version>-<python>-<abi>-<platform>.whl",
        ) from error
    return LocalWheel(name, str(version), path, declared.path, wheel_sha256(root, declared), declared.span)


def _missing(path: str, spec: LayerSpec) -> EnvdslError:
    return EnvdslError.of(
        "lock-wheel-missing",
        f"the wheel {path}, which the lock of the base `{spec.base}` pins, is not there",
        span=spec.span,
        hint=f"bring it back, or lock `{spec.base}` again",
    )

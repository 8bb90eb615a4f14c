"""The output of the room ``lock``: the pinned wheels of one layer, for all its platforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from envdsl.model.names import LayerKind, Platform, PythonVersion


@dataclass(frozen=True, slots=True)
class LockedWheel:
    """A wheel by content. ``url`` is given only where ``lock.urls`` asked for it; ``path`` (POSIX,
    relative to the lock file) only for a wheel of the project itself (``wheels = [ ./x.whl ]``)."""

    filename: str
    sha256: str
    size: int
    url: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One distribution at one version, with the best wheel for each platform that needs it.

    ``dependencies`` are the normalised names of the distributions that it requires *in this lock or in
    its base's*. ``platforms`` maps each platform of the layer where the package is needed to its wheel.
    """

    name: str
    version: str
    platforms: tuple[tuple[Platform, LockedWheel], ...]
    dependencies: tuple[str, ...] = ()

    def wheel(self, platform: Platform) -> LockedWheel | None:
        """The wheel for ``platform``, or None where the package is not needed there."""
        for candidate, wheel in self.platforms:
            if candidate == platform:
                return wheel
        return None


@dataclass(frozen=True, slots=True)
class BaseReference:
    """The base that an x layer was resolved under: its name and the blake3 of its lock file's bytes."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Lock:
    """A parsed and validated ``pylock.<layer>.toml``; packages are sorted by name.

    ``inputs`` is the digest of what was resolved (:func:`envdsl.lock.freshness.inputs_digest`);
    ``digest`` is the blake3 of the file's bytes. ``recorded`` is what was resolved, in the form that
    :func:`envdsl.lock.freshness.resolution_inputs` gives, so that a stale lock can say what has changed.
    """

    layer: str
    kind: LayerKind
    python: PythonVersion
    platforms: tuple[Platform, ...]
    inputs: str
    base: BaseReference | None
    packages: tuple[LockedPackage, ...]
    digest: str
    recorded: Mapping[str, object] = field(default_factory=dict, repr=False, hash=False)

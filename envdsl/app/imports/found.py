"""What a reader of existing work finds: exact versions, and a reason for each package that cannot be taken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.names import Platform, PythonVersion
from envdsl.redaction import redact

OWN_CODE = "your own code goes into `sources`; leave it out here with --without NAME"
VENDORED = "bring a wheel of it into the project and name it: wheels = [ ./x.whl ];"


@dataclass(frozen=True, slots=True)
class Target:
    """What to import for. ``python`` None: what the source itself says. ``without`` are normalised names of packages
    to leave out, whether they could be taken or not."""

    python: PythonVersion | None
    platforms: tuple[Platform, ...]
    without: frozenset[str] = frozenset()

    def release(self, said: PythonVersion | None, source: str) -> PythonVersion:
        """The feature release; raises EnvdslError ``import-python`` where neither the user nor the source says one."""
        chosen = self.python or said
        if chosen is None:
            raise EnvdslError.of(
                "import-python",
                f"{source} does not say which Python it is for",
                hint="name the feature release: --python 3.12",
                exit_status=ExitStatus.USAGE,
            )
        return chosen


@dataclass(frozen=True, slots=True)
class Pin:
    """One package. ``name`` is normalised; ``hashes`` are the sha256 of the files that the source accepts, empty where
    it says none; ``platforms`` are those that need it."""

    name: str
    version: str
    platforms: frozenset[Platform]
    hashes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Found:
    """A source that was read. ``label`` is its name for messages.

    ``roots`` are the requirements that somebody asked for, without versions; None where the source does not tell them
    from what they brought along. ``hashed``: the source vouches for hashes, so nothing may come without.
    ``left_out`` says why something of it is not for a layer.
    """

    label: str
    python: PythonVersion
    pins: tuple[Pin, ...]
    roots: tuple[str, ...] | None = None
    hashed: bool = False
    left_out: dict[str, str] = field(default_factory=dict)


class Findings:
    """Gathers pins and reasons, so that all of a source's are reported together."""

    def __init__(self, label: str, without: frozenset[str] = frozenset()) -> None:
        self._label = label
        self._without = without
        self._pins: dict[str, Pin] = {}
        self._refusals: list[Diagnostic] = []
        self.left_out: dict[str, str] = {}

    def pin(self, pin: Pin) -> None:
        """Take ``pin``; two versions of one package are refused, since a layer has one."""
        if pin.name in self._without:
            self.left_out[pin.name] = "--without"
            return
        known = self._pins.get(pin.name)
        if known is not None and known.version != pin.version:
            versions = " and ".join(
                f"{item.version} for {', '.join(map(str, sorted(item.platforms)))}" for item in (known, pin)
            )
            self.refuse(pin.name, "wrong-platform", f"has two versions: {versions}", "import for one platform alone")
            return
        platforms = pin.platforms | (known.platforms if known else frozenset())
        hashes = pin.hashes | (known.hashes if known else frozenset())
        self._pins[pin.name] = Pin(pin.name, pin.version, platforms, hashes)

    def refuse(self, name: str, rule: str, reason: str, hint: str | None = None) -> None:
        """``name`` cannot be taken; ``reason`` completes "<name> ..."."""
        if name in self._without:
            self.left_out[name] = "--without"
            return
        hint = hint or "leave it out: --without NAME"
        self._refusals.append(refusal(self._label, name, rule, reason, hint))

    def pins(self) -> tuple[Pin, ...]:
        """The pins, sorted by name. Raises EnvdslError with all refusals."""
        if self._refusals:
            raise EnvdslError(*self._refusals)
        if not self._pins:
            raise EnvdslError.of("import-empty", f"{self._label} has no packages for these platforms")
        for name in self._pins:
            self.left_out.pop(name, None)  # another entry of it applies
        return tuple(pin for _, pin in sorted(self._pins.items()))


def refusal(label: str, name: str, rule: str, reason: str, hint: str | None = None) -> Diagnostic:
    """Why the package ``name`` of the source ``label`` cannot be imported. Credentials in URLs are taken out."""
    name = redact(name)
    facts = {"package": name, "rule": rule, "source": label}
    return Diagnostic(f"import-{rule}", f"{label}: {name} {redact(reason)}", hint=hint, details=facts)


def environment(python: PythonVersion, platform: Platform) -> dict[str, str]:
    """The variables of PEP 508 in a layer of that Python and platform, as locking has them."""
    from envdsl.lock.uv import newest_patch

    release = newest_patch(python)
    return {
        "implementation_name": "cpython",
        "implementation_version": release,
        "os_name": "posix",
        "platform_machine": platform.machine,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_system": "Linux",
        "platform_version": "",
        "python_full_version": release,
        "python_version": str(python),
        "sys_platform": "linux",
    }


def release_of(specifiers: str | None) -> PythonVersion | None:
    """The one feature release that ``requires-python`` leaves (``>=3.12,<3.13``, ``==3.12.*``); None for several."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        allowed = SpecifierSet(specifiers or "")
    except InvalidSpecifier:
        return None
    found = [minor for minor in range(100) if _allows(allowed, minor)]
    return PythonVersion(found[0]) if len(found) == 1 else None


def _allows(allowed: Iterable[object], minor: int) -> bool:
    from packaging.specifiers import SpecifierSet

    assert isinstance(allowed, SpecifierSet)
    # A bound may stand at any patch release.
    return any(allowed.contains(f"3.{minor}.{patch}") for patch in (0, 1, 5, 20))

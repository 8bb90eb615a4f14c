"""The output of the room ``session``: the binding of a session to exact layers, as data.

Everything that a launcher needs stands in it, and what an audit asks for: which lock each layer was built
from, and every wheel with its sha256. ``docs/manifest.schema.json`` is the published schema, made from these
records; ``docs/manifest.md`` says how to launch a sandbox from one.

Whatever changes the meaning of a manifest, a new field included, raises :data:`VERSION`: a launcher that
does not know a restriction must not start a sandbox without it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LayerId, LayerKind, Platform, PythonVersion
from envdsl.sandbox.limits import Limits
from envdsl.sandbox.plan import Mount, MountKind
from envdsl.session import record
from envdsl.session.record import ABSOLUTE, HEX, Described, RecordError, Variables

VERSION = 1
SCHEMA_ID = "urn:envdsl:manifest:1"


@dataclass(frozen=True, slots=True)
class BoundPackage:
    """A distribution of a layer, and the wheel that it was unpacked from."""

    name: Annotated[str, Described("Normalised name of the distribution (PEP 503).", pattern=r"[a-z0-9]+(-[a-z0-9]+)*")]
    version: Annotated[str, Described("Its version (PEP 440).", pattern=r"\S+")]
    filename: Annotated[str, Described("File name of the wheel.", pattern=r"[^/]+\.whl")]
    sha256: Annotated[str, Described("sha256 of the wheel.", pattern=HEX)]


@dataclass(frozen=True, slots=True)
class BoundSource:
    """A directory of the project that a layer brings along, copied into the store."""

    key: Annotated[str, Described("Key of the derivation, blake3.", pattern=HEX)]
    tree_hash: Annotated[str, Described("Tree hash of the copy, blake3.", pattern=HEX)]
    path: Annotated[str, Described("Absolute path, in the store and in the sandbox.", pattern=ABSOLUTE)]


@dataclass(frozen=True, slots=True)
class BoundLayer:
    """A layer that the session is bound to, exactly."""

    kind: Annotated[LayerKind, Described("What kind of layer it is.")]
    name: Annotated[str, Described("What the project called it when the session was bound.")]
    id: Annotated[LayerId, Described("Its name in the store.")]
    key: Annotated[str, Described("Key of the derivation, blake3; the id is a shorter form of it.", pattern=HEX)]
    tree_hash: Annotated[str, Described("Tree hash of the layer, blake3.", pattern=HEX)]
    path: Annotated[str, Described("Absolute path, in the store and in the sandbox.", pattern=ABSOLUTE)]
    python: Annotated[PythonVersion, Described("The Python feature release that its wheels are for.")]
    platform: Annotated[Platform, Described("The platform tag that its wheels are for.")]
    base: Annotated[LayerId | None, Described("The base that an x layer stands on; null for the other kinds.")]
    lock: Annotated[
        str | None, Described("blake3 of the lock file that it was built from; null where it had none.", pattern=HEX)
    ]
    packages: Annotated[tuple[BoundPackage, ...], Described("Its distributions, by name.")]
    sources: Annotated[tuple[BoundSource, ...], Described("Its source trees, in the order in which they are searched.")]
    environment: Annotated[Variables, Described("Variables that the layer sets.")]
    directories: Annotated[tuple[str, ...], Described("Which directories it has: bin, share, site-packages …")]


@dataclass(frozen=True, slots=True)
class InterpreterSource:
    """Where an interpreter came from."""

    kind: Annotated[
        Literal["standalone", "archive", "fallback"],
        Described("A python-build-standalone build through uv, an archive of one, or a copy of a Python of the host."),
    ]
    origin: Annotated[str, Described("The build, the archive's file name, or where the host's Python stood.")]
    sha256: Annotated[str | None, Described("sha256 of the archive.", pattern=HEX)]


@dataclass(frozen=True, slots=True)
class BoundInterpreter:
    """The managed interpreter that runs as ``python3``."""

    name: Annotated[str, Described("Its directory's name in the store.", pattern=r"[^/]+")]
    implementation: Annotated[str, Described("As in sys.implementation.name.")]
    version: Annotated[str, Described("The full version.")]
    python: Annotated[PythonVersion, Described("The feature release.")]
    key: Annotated[str, Described("Key of the interpreter, blake3.", pattern=HEX)]
    tree_hash: Annotated[str, Described("Tree hash of the prefix, blake3.", pattern=HEX)]
    prefix: Annotated[str, Described("Absolute path of the prefix, in the store and in the sandbox.", pattern=ABSOLUTE)]
    executable: Annotated[str, Described("Absolute path of what sandboxes run as python3.", pattern=ABSOLUTE)]
    source: Annotated[InterpreterSource, Described("Where it came from.")]


@dataclass(frozen=True, slots=True)
class BoundMount:
    """One mount. A read-only or writable mount binds ``source``, a path on the host; the others have none."""

    kind: Annotated[MountKind, Described("What is mounted; a procfs is read-only.")]
    target: Annotated[str, Described("Absolute path in the sandbox.", pattern=ABSOLUTE)]
    source: Annotated[str | None, Described("Absolute path on the host.", pattern=ABSOLUTE)]
    size: Annotated[int | None, Described("Most bytes that a tmpfs takes; null for the kernel's default.", minimum=1)]
    mode: Annotated[int | None, Described("Permission bits of a tmpfs's root directory.", minimum=0)]

    def __post_init__(self) -> None:
        self.mount()

    @classmethod
    def of(cls, mount: Mount) -> BoundMount:
        return cls(mount.kind, mount.target, mount.source, mount.size, mount.mode)

    def mount(self) -> Mount:
        """Raises ValueError where the fields do not go together."""
        return Mount(self.kind, self.target, self.source, self.size, self.mode)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The directory that a session works in; it outlives every run."""

    source: Annotated[str, Described("Absolute path on the host.", pattern=ABSOLUTE)]
    target: Annotated[str, Described("Absolute path in the sandbox.", pattern=ABSOLUTE)]


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Limits of one run, for the launcher to enforce. null is no limit."""

    memory: Annotated[int | None, Described("Bytes of memory.", minimum=1)]
    cpu_percent: Annotated[
        int | None, Described("Processor time in percent of one processor: 150 is one and a half.", minimum=1)
    ]
    pids: Annotated[int | None, Described("Processes and threads.", minimum=1)]
    timeout: Annotated[
        int | None, Described("Seconds until the whole process tree is ended, with exit status 124.", minimum=1)
    ]
    cache: Annotated[int | None, Described("Bytes that the session's cache may hold when a run begins.", minimum=0)]

    def of_run(self) -> Limits:
        """As the room ``sandbox`` takes them. Raises ValueError for a limit that nothing could run under."""
        cpus = None if self.cpu_percent is None else self.cpu_percent / 100
        return Limits(memory=self.memory, cpus=cpus, pids=self.pids, timeout=self.timeout)


@dataclass(frozen=True, slots=True)
class Isolation:
    """What a sandbox is beside its mounts and environment."""

    hostname: Annotated[str, Described("Host name in the sandbox.")]
    uid: Annotated[int, Described("User id in the sandbox, mapped to the launching user.", minimum=0)]
    gid: Annotated[int, Described("Group id in the sandbox, mapped to the launching group.", minimum=0)]
    cwd: Annotated[str, Described("Working directory in the sandbox.", pattern=ABSOLUTE)]
    unshare: Annotated[tuple[str, ...], Described("Namespaces that the sandbox has of its own.")]
    network: Annotated[Literal[False], Described("No network but a loopback device.")]
    capabilities: Annotated[tuple[str, ...], Described("Capabilities that processes keep: none.")]
    nested_user_namespaces: Annotated[Literal[False], Described("No further user namespaces can be made.")]
    seccomp: Annotated[
        str | None,
        Described("Absolute path on the host of the compiled seccomp filter (bwrap --seccomp FD).", pattern=ABSOLUTE),
    ]
    lock_files: Annotated[
        tuple[str, ...], Described("Paths in the sandbox to hold a POSIX read lock on (bwrap --lock-file).")
    ]
    command: Annotated[tuple[str, ...], Described("What runs where no command is given.")]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of an envdsl session: all that a launcher needs to start its sandbox."""

    version: Annotated[Literal[1], Described("Version of this format.")]
    session: Annotated[str, Described("Name of the session.", pattern=r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")]
    store: Annotated[str, Described("Absolute path of the store.", pattern=ABSOLUTE)]
    interpreter: Annotated[BoundInterpreter, Described("The interpreter.")]
    layers: Annotated[tuple[BoundLayer, ...], Described("The layers: a base or an iso layer first, then x layers.")]
    workspace: Annotated[Workspace | None, Described("The workspace; null where it is memory that ends with the run.")]
    cache: Annotated[
        str | None,
        Described("Absolute path on the host of the session's cache directory; null for none.", pattern=ABSOLUTE),
    ]
    root_mounts: Annotated[
        tuple[BoundMount, ...],
        Described("The mounts of the minimal root, in the order to make them; the first is the root itself."),
    ]
    mounts: Annotated[
        tuple[BoundMount, ...],
        Described("The session's own mounts, in the order to make them, after those of the root."),
    ]
    environment: Annotated[Variables, Described("The whole environment.")]
    limits: Annotated[SessionLimits, Described("Limits of one run.")]
    isolation: Annotated[Isolation, Described("The other properties of the sandbox.")]

    def to_json(self) -> str:
        """The file's text: keys in the order of the fields, two spaces of indentation, a newline at the end."""
        return json.dumps(record.encode(self), indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, *, name: str = "manifest.json") -> Manifest:
        """Parse and validate. ``name`` is what errors call the document.

        Raises EnvdslError: ``session-manifest-invalid``, ``session-manifest-version``.
        """
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _invalid(name, f"is not JSON: {error}") from error
        version = value.get("version") if isinstance(value, dict) else None
        if type(version) is int and version != VERSION:
            raise EnvdslError.of(
                "session-manifest-version",
                f"{name} has version {version} of the format, and this envdsl reads version {VERSION}",
                hint="use the envdsl that wrote it, or remove the session and create it again",
                exit_status=ExitStatus.USAGE,
            )
        try:
            return record.decode(cls, value)
        except RecordError as error:
            raise _invalid(name, f"is not a manifest: {error}") from error

    @property
    def foundation(self) -> BoundLayer:
        """The base or iso layer."""
        return self.layers[0]

    def store_keys(self) -> tuple[str, ...]:
        """Keys of the store paths that the session needs, itself; what those need is the store's to know."""
        layers = [key for layer in self.layers for key in (layer.key, *(source.key for source in layer.sources))]
        return tuple(dict.fromkeys([self.interpreter.key, *layers]))

    def name_of(self, key: str) -> str:
        """What people call the store path with that key (one of :meth:`store_keys`)."""
        if key == self.interpreter.key:
            return f"the interpreter {self.interpreter.name}"
        layer = next((layer for layer in self.layers if layer.key == key), None)
        return f"the layer {layer.name} ({layer.id})" if layer is not None else f"a source tree ({key})"

    def on_host(self, root: tuple[Mount, ...], seccomp: Path) -> Manifest:
        """The same manifest with what depends on the host: the mounts of the minimal root, and the file of the
        system call filter."""
        isolation = replace(self.isolation, seccomp=str(seccomp))
        return replace(self, root_mounts=tuple(map(BoundMount.of, root)), isolation=isolation)


def manifest_schema() -> dict[str, Any]:
    """What ``docs/manifest.schema.json`` holds."""
    return record.schema(Manifest, identifier=SCHEMA_ID, title="envdsl session manifest")


def _invalid(name: str, problem: str) -> EnvdslError:
    return EnvdslError.of(
        "session-manifest-invalid",
        f"{name} {problem}",
        hint="the file was changed or cut short: remove the session and create it again",
    )

"""Bind layers to a session: the rules, and what a sandbox gets from them. Pure: facts in, manifest out.

The rules:

- one base or iso layer, the foundation; every other layer is an x layer that stands on that very layer;
- one Python feature release and one platform, the interpreter's release among them;
- a distribution has one version, and one wheel, across all layers: that is why their order has no meaning;
- no two layers give one variable different values, and none sets a variable that the session sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.names import SESSION_NAME, LayerKind
from envdsl.realise.python import Interpreter
from envdsl.realise.python_site import SITE_DIRS_VARIABLE
from envdsl.sandbox.plan import GID, HOME, UID, USER, WORKSPACE, Mount, SandboxPlan
from envdsl.session.manifest import (
    BoundInterpreter,
    BoundLayer,
    BoundMount,
    InterpreterSource,
    Isolation,
    Manifest,
    SessionLimits,
    Workspace,
)
from envdsl.store.layout import Layout

CACHE = f"{HOME}/.cache"
ROOT_LOCK = "/etc/passwd"  # a file of the minimal root that is never replaced
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
# What the session sets itself (but LANG and TZ, which a layer may choose), or what would change the interpreter.
_RESERVED = frozenset(
    {
        "HOME",
        "LOGNAME",
        "MPLCONFIGDIR",
        "PATH",
        "PIP_DISABLE_PIP_VERSION_CHECK",
        "PIP_NO_INDEX",
        "PYTHONHOME",
        "PYTHONPATH",
        "USER",
        "XDG_CACHE_HOME",
    }
)
_RESERVED_PREFIXES = ("ENVDSL_", "LD_")
_UNSHARED = ("cgroup", "ipc", "mount", "net", "pid", "user", "uts")
# Of a run: none, but for what is left behind on the host's disk.
DEFAULT_LIMITS = SessionLimits(memory=None, cpu_percent=None, pids=None, timeout=None, cache=1 << 30)


def compose(
    session: str,
    layers: Sequence[BoundLayer],
    interpreter: Interpreter,
    layout: Layout,
    *,
    workspace: Path | None = None,
    ephemeral: bool = False,
    limits: SessionLimits = DEFAULT_LIMITS,
    time_zone: str = "UTC",
    command: Sequence[str] = ("/bin/sh",),
) -> Manifest:
    """The manifest of a session that binds ``layers``, without what depends on the host: the mounts of the
    minimal root and the file of the seccomp filter (:meth:`Manifest.on_host` adds them).

    ``workspace`` is an absolute, resolved directory of the host. An ``ephemeral`` session has no directory in the
    store, and so no cache that outlives a run: for probes. Raises EnvdslError with every rule that is
    broken: ``session-name``, ``session-layers``, ``session-base-mismatch``, ``session-python-mismatch``,
    ``session-platform-mismatch``, ``session-version-conflict``, ``session-environment-conflict``,
    ``session-environment-reserved``, ``session-workspace``, ``session-store``.
    """
    ordered = _order(layers)
    problems = [
        *_name_problems(session),
        *_stacking_problems(ordered, interpreter),
        *_version_problems(ordered),
        *_environment_problems(ordered),
        *_place_problems(workspace, layout),
    ]
    if problems:
        raise EnvdslError(*problems)
    cache = None if ephemeral else layout.sessions / session / "cache"
    mounts = _mounts(ordered, interpreter, layout, workspace, cache)
    return Manifest(
        version=1,
        session=session,
        store=str(layout.root),
        interpreter=bind_interpreter(interpreter),
        layers=tuple(ordered),
        workspace=Workspace(str(workspace), WORKSPACE) if workspace else None,
        cache=str(cache) if cache else None,
        root_mounts=(),
        mounts=tuple(BoundMount.of(mount) for mount in mounts),
        environment=tuple(sorted(_environment(session, ordered, interpreter, layout, time_zone).items())),
        limits=limits,
        isolation=Isolation(
            hostname="sandbox",
            uid=UID,
            gid=GID,
            cwd=WORKSPACE,
            unshare=_UNSHARED,
            network=False,
            capabilities=(),
            nested_user_namespaces=False,
            seccomp=None,
            # Whoever wants to remove a layer, or the root, asks the kernel who holds these, and nobody else.
            lock_files=tuple(sorted([ROOT_LOCK, *(f"{layer.path}/layer.json" for layer in ordered)])),
            command=tuple(command),
        ),
    )


def check(session: str, workspace: Path | None, layout: Layout) -> None:
    """What :func:`compose` refuses whatever the layers are, so that nothing is built for it first.

    Raises EnvdslError: ``session-name``, ``session-workspace``, ``session-store``.
    """
    if problems := [*_name_problems(session), *_place_problems(workspace, layout)]:
        raise EnvdslError(*problems)


def plan(manifest: Manifest) -> SandboxPlan:
    """What the room ``sandbox`` carries out.

    Raises EnvdslError (``session-manifest-invalid``) for a manifest that describes no sandbox.
    """
    isolation = manifest.isolation
    try:
        return SandboxPlan(
            base=tuple(item.mount() for item in manifest.root_mounts),
            mounts=tuple(item.mount() for item in manifest.mounts),
            environment=manifest.environment,
            cwd=isolation.cwd,
            hostname=isolation.hostname,
            lock_files=isolation.lock_files,
            seccomp=isolation.seccomp is not None,
            command=isolation.command,
        )
    except ValueError as error:
        raise EnvdslError.of(
            "session-manifest-invalid",
            f"the manifest of session {manifest.session} describes no sandbox: {error}",
            hint="remove the session and create it again",
        ) from error


def bind_interpreter(interpreter: Interpreter) -> BoundInterpreter:
    """An interpreter as the manifest records it."""
    source = interpreter.source
    return BoundInterpreter(
        name=interpreter.name,
        implementation=interpreter.implementation,
        version=interpreter.full_version,
        python=interpreter.python,
        key=interpreter.key,
        tree_hash=interpreter.tree_hash,
        prefix=str(interpreter.prefix),
        executable=str(interpreter.executable),
        source=InterpreterSource(source.kind, source.origin, source.sha256),
    )


def _order(layers: Sequence[BoundLayer]) -> list[BoundLayer]:
    """The foundation first; a layer that was named twice, or under two names, once."""
    foundations = [layer for layer in layers if layer.kind is not LayerKind.X]
    extensions = [layer for layer in layers if layer.kind is LayerKind.X]
    unique = list({layer.id: layer for layer in reversed([*foundations, *extensions])}.values())[::-1]
    count = sum(layer.kind is not LayerKind.X for layer in unique)
    if count == 1:
        return unique
    names = ", ".join(layer.name for layer in foundations)
    bases = sorted({str(layer.base) for layer in extensions})
    raise EnvdslError.of(
        "session-layers",
        f"a session stands on one base or iso layer; these are {count}: {names}"
        if count
        else "a session stands on one base or iso layer, and none is given"
        + (f"; its x layers stand on {', '.join(bases)}" if bases else ""),
        hint="name one of them, and x layers that stand on it" if count else "add --layer with the name of a base",
        exit_status=ExitStatus.USAGE,
    )


def _name_problems(session: str) -> Iterable[Diagnostic]:
    if SESSION_NAME.fullmatch(session) is None:
        yield Diagnostic(
            "session-name",
            f"{session!r} can't name a session",
            hint="use letters, digits, '.', '_' and '-', beginning with a letter or digit, 100 characters at most",
            exit_status=ExitStatus.USAGE,
        )


def _stacking_problems(layers: Sequence[BoundLayer], interpreter: Interpreter) -> Iterable[Diagnostic]:
    foundation, *extensions = layers
    for layer in extensions:
        if layer.base == foundation.id:
            continue
        if foundation.kind is LayerKind.ISO:
            yield Diagnostic(
                "session-base-mismatch",
                f"the x layer {layer.name} stands on {layer.base}, and the session on the iso layer {foundation.name}",
                hint=f"declare an iso layer that holds what {foundation.name} and {layer.name} hold",
            )
        else:
            yield Diagnostic(
                "session-base-mismatch",
                f"the x layer {layer.name} stands on {layer.base}, "
                f"and the session on {foundation.name} ({foundation.id})",
                hint="lock and build both again (envdsl lock && envdsl build), or name the base that it stands on",
            )
    for layer in layers:
        if layer.platform != foundation.platform:
            yield Diagnostic(
                "session-platform-mismatch",
                f"{layer.name} is for {layer.platform}, and {foundation.name} for {foundation.platform}",
                hint="build all layers of a session on one machine",
            )
        if layer.python != interpreter.python:
            yield Diagnostic(
                "session-python-mismatch",
                f"{layer.name} is for Python {layer.python}, and the interpreter is {interpreter.full_version}",
                hint=f"envdsl python install {layer.python}",
            )


def _version_problems(layers: Sequence[BoundLayer]) -> Iterable[Diagnostic]:
    seen: dict[str, tuple[BoundLayer, str, str]] = {}
    for layer in layers:
        for package in layer.packages:
            first, version, sha256 = seen.setdefault(package.name, (layer, package.version, package.sha256))
            if (version, sha256) == (package.version, package.sha256):
                continue
            what = f"{version} and {package.version}"
            if version == package.version:
                what = f"{version} from different wheels"
            yield Diagnostic(
                "session-version-conflict",
                f"{first.name} and {layer.name} bring {package.name} {what}",
                hint=_joint_layer(layers[0], first, layer),
                details={
                    "package": package.name,
                    "layers": [first.name, layer.name],
                    "versions": [version, package.version],
                },
            )


def _joint_layer(foundation: BoundLayer, first: BoundLayer, second: BoundLayer) -> str:
    if first.kind is not LayerKind.X:
        return f"lock {second.name} again under its base (envdsl lock {second.name}), then build it"
    return (
        f"resolve both needs together, in one joint x layer: x {first.name}-{second.name} on {foundation.name} "
        f"{{ packages = [ … ]; }} with the packages of {first.name} and of {second.name}; "
        "where their requirements contradict each other, use two sessions"
    )


def _environment_problems(layers: Sequence[BoundLayer]) -> Iterable[Diagnostic]:
    seen: dict[str, tuple[BoundLayer, str]] = {}
    for layer in layers:
        for name, value in layer.environment:
            if name in _RESERVED or name.startswith(_RESERVED_PREFIXES):
                yield Diagnostic(
                    "session-environment-reserved",
                    f"{layer.name} sets {name}, which belongs to the session",
                    hint=f"take {name} out of the layer's env",
                )
            first, other = seen.setdefault(name, (layer, value))
            if other != value:
                yield Diagnostic(
                    "session-environment-conflict",
                    f"{first.name} sets {name} to {other!r}, and {layer.name} to {value!r}",
                    hint="give both layers the same value, or let one of them set it",
                )


def _place_problems(workspace: Path | None, layout: Layout) -> Iterable[Diagnostic]:
    if ":" in str(layout.root) or not _is_text(layout.root):
        yield Diagnostic(
            "session-store",
            f"sandboxes can't use a store at {str(layout.root)!r}: its path must be text without ':', which separates "
            "the entries of PATH and PYTHONPATH",
            hint="move the store, or name another one with --store",
            exit_status=ExitStatus.USAGE,
        )
    if workspace is None:
        return
    problem = None
    if not workspace.is_absolute() or workspace == Path("/"):
        problem = "it is the root of the host" if workspace.is_absolute() else "it is not an absolute path"
    elif workspace.is_relative_to(layout.root):
        problem = "it lies in the store, which no sandbox may write to"
    elif not _is_text(workspace):
        problem = "its path is not UTF-8"
    if problem is not None:
        yield Diagnostic(
            "session-workspace",
            f"{str(workspace)!r} can't be a workspace: {problem}",
            hint="name a directory for the work of this session, outside the store",
            exit_status=ExitStatus.USAGE,
        )


def _is_text(path: Path) -> bool:
    try:
        return bool(str(path).encode())
    except UnicodeEncodeError:
        return False


def _mounts(
    layers: Sequence[BoundLayer], interpreter: Interpreter, layout: Layout, workspace: Path | None, cache: Path | None
) -> list[Mount]:
    """The session's own mounts. What comes out of the store comes last: the masks before it (a tmpfs home, the
    workspace, the mask over a store in the workspace) may cover the place where the store stands."""
    mounts = [Mount.writable(str(cache), CACHE)] if cache else []
    if workspace is None:
        mounts.append(Mount.tmpfs(WORKSPACE))
    else:
        mounts.append(Mount.writable(str(workspace), WORKSPACE))
        if layout.root.is_relative_to(workspace):
            # Through a writable mount of the project the sandbox would reach every layer, and other sessions.
            mounts.append(Mount.tmpfs(str(PurePosixPath(WORKSPACE) / layout.root.relative_to(workspace))))
    sources = [source.path for layer in layers for source in layer.sources]
    places = [str(interpreter.prefix), *(layer.path for layer in layers), *dict.fromkeys(sources), str(layout.bin)]
    return mounts + [Mount.read_only(place, place) for place in places]


def _environment(
    session: str, layers: Sequence[BoundLayer], interpreter: Interpreter, layout: Layout, time_zone: str
) -> dict[str, str]:
    sites = [f"{layer.path}/site-packages" for layer in layers if "site-packages" in layer.directories]
    sources = [source.path for layer in layers for source in layer.sources]
    programs = [f"{layer.path}/bin" for layer in layers if "bin" in layer.directories]
    environment = {name: value for layer in layers for name, value in layer.environment}
    return environment | {
        "ENVDSL_SESSION": session,
        SITE_DIRS_VARIABLE: ":".join([*sites, *dict.fromkeys(sources)]),
        "HOME": HOME,
        "LANG": environment.get("LANG", "C.UTF-8"),
        "LOGNAME": USER,
        "MPLCONFIGDIR": f"{CACHE}/matplotlib",
        "PATH": ":".join([f"{interpreter.prefix}/bin", *programs, str(layout.bin), *_SYSTEM_PATH]),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INDEX": "1",
        "PYTHONPATH": ":".join([*sites, *dict.fromkeys(sources)]),
        "TZ": environment.get("TZ", time_zone),
        "USER": USER,
        "XDG_CACHE_HOME": CACHE,
    }

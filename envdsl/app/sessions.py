"""``envdsl session`` and ``envdsl run``."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from envdsl.app import bound_layers
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LayerId, LayerKind, PythonVersion

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.realise.python import Interpreter
    from envdsl.sandbox.doctor import Finding
    from envdsl.sandbox.launch import Outcome
    from envdsl.sandbox.limits import Limits
    from envdsl.sandbox.plan import Mount
    from envdsl.session.bindings import Session
    from envdsl.session.difference import Difference
    from envdsl.session.manifest import BoundLayer, Manifest


def create(project: Project, name: str, layers: Sequence[str], workspace: Path | None) -> Session:
    """Bind ``name`` to ``layers`` (names, families or ids); layers of the project are built first if need be.

    ``workspace`` is the directory at ``/workspace``; without it that is memory, gone with each run. A name or a
    workspace that is no good is refused before anything is built.
    """
    from envdsl.session import bindings

    workspace = _place(project, name, workspace)
    with project.store.lease():
        manifest = compose(project, name, bound_layers.bind(project, layers), workspace)
        return bindings.create(project.store, manifest)


def _place(project: Project, name: str, workspace: Path | None) -> Path | None:
    from envdsl.session import bindings
    from envdsl.session.compose import check

    resolved = workspace.resolve() if workspace is not None else None
    check(name, resolved, project.store.layout)
    if resolved is not None:
        bindings.require_workspace(resolved)
    return resolved


def names(project: Project) -> list[str]:
    from envdsl.session import bindings

    return bindings.names(project.store.layout)


def show(project: Project, name: str) -> Session:
    from envdsl.session import bindings

    return bindings.show(project.store.layout, name)


def listing(project: Project) -> list[Session]:
    return [show(project, name) for name in names(project)]


def _packages(layer: BoundLayer) -> str:
    count = len(layer.packages)
    return "1 package" if count == 1 else f"{count} packages"


def rows(session: Session) -> list[list[str]]:
    """Labels and values for a person."""
    manifest = session.manifest
    return [
        ["session", session.name],
        ["directory", str(session.directory)],
        ["start with", str(session.run)],
        ["interpreter", f"{manifest.interpreter.version}  {manifest.interpreter.executable}"],
        ["workspace", manifest.workspace.source if manifest.workspace else "in memory"],
        *(["layer", f"{layer.name}  {layer.id}  ({_packages(layer)})"] for layer in manifest.layers),
    ]


@dataclass(frozen=True, slots=True)
class Change:
    """What a rebase does beside following the project: another ``base``, x layers to ``add`` and to ``drop`` (names,
    families or ids), another ``workspace``. None and nothing leave all as it is."""

    base: str | None = None
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    workspace: Path | None = None


def rebase(
    project: Project, name: str, change: Change = Change(), *, dry_run: bool = False, expected: str | None = None
) -> Difference:
    """Bind a session to its layers as they are declared and locked now.

    x layers follow: those of the same name, or of the same family on the new base; those that were bound by id, or
    that the project does not declare, are kept as they are. ``dry_run`` builds and writes nothing. Raises EnvdslError
    ``app-rebase-other`` where the difference has another digest than the one that is ``expected``.
    """
    from envdsl.session import bindings

    present = show(project, name).manifest
    if dry_run:
        return bindings.preview(project.store.layout, rebased(project, present, change, dry_run=True))
    with project.store.lease():
        manifest = rebased(project, present, change)
        check_expected(project, manifest, expected)
        return bindings.rebase(project.store, manifest)


def check_expected(project: Project, manifest: Manifest, expected: str | None) -> None:
    """Raises EnvdslError ``app-rebase-other`` unless to bind ``manifest`` is what was shown as ``expected``."""
    from envdsl.session import bindings

    if expected is None:
        return
    found = bindings.preview(project.store.layout, manifest).digest
    if found != expected:
        raise EnvdslError.of(
            "app-rebase-other",
            f"the rebase of {manifest.session} is not the one that was shown: {found[:16]}…, not {expected[:16]}…",
            hint=f"look again: `envdsl session rebase {manifest.session} --dry-run`",
            details={"digest": found},
        )


def rebased(
    project: Project,
    present: Manifest,
    change: Change = Change(),
    *,
    apart: Collection[LayerId] = (),
    dry_run: bool = False,
) -> Manifest:
    """The manifest that :func:`rebase` writes, with its layers built unless it is a ``dry_run``.

    The layers ``apart`` are left out: somebody else knows how they follow. Raises ``app-not-bound`` for a layer to
    drop that is not there.
    """
    workspace = Path(present.workspace.source) if present.workspace else None
    if change.workspace is not None:
        workspace = _place(project, present.session, change.workspace)
    wanted = _wanted(project, present, change, apart)
    layers = bound_layers.foresee(project, wanted) if dry_run else bound_layers.bind(project, wanted)
    layers = [_named(layer, present) for layer in layers]
    return like(project, present, layers, workspace=workspace, dry_run=dry_run)


def like(
    project: Project,
    present: Manifest,
    layers: Sequence[BoundLayer],
    *,
    workspace: Path | None,
    dry_run: bool = False,
) -> Manifest:
    """A manifest of the session ``present`` over ``layers`` and ``workspace``; all else stays as it is."""
    manifest = compose(project, present.session, layers, workspace, dry_run=dry_run)
    isolation = replace(manifest.isolation, command=present.isolation.command)
    return replace(manifest, limits=present.limits, isolation=isolation)


def _wanted(project: Project, present: Manifest, change: Change, apart: Collection[LayerId]) -> list[str]:
    """The names and ids to bind: the foundation, the x layers that follow, and what is added."""
    dropped = set(change.drop)
    for item in dropped:
        if not any(is_called(layer, item) for layer in present.layers[1:]):
            raise EnvdslError.of(
                "app-not-bound",
                f"the session {present.session} has no x layer {item}",
                hint="its x layers: " + (", ".join(layer.name for layer in present.layers[1:]) or "none"),
                exit_status=ExitStatus.USAGE,
            )
    kept = [
        layer
        for layer in present.layers[1:]
        if layer.id not in apart and not any(is_called(layer, item) for item in dropped)
    ]
    foundation = change.base if change.base is not None else _reference(project, present.foundation)
    following = [_reference(project, layer) for layer in kept]
    if change.base is not None:
        following = [bound_layers.family(item) for item in following]
    return list(dict.fromkeys([foundation, *following, *change.add]))  # what is added may be there already


def is_called(layer: BoundLayer, text: str) -> bool:
    """Whether ``text`` names a bound layer: by name, family or id."""
    return text in (layer.name, str(layer.id), bound_layers.family(layer.name))


def _reference(project: Project, layer: BoundLayer) -> str:
    """The name under which the project declares a bound layer today, else its id: it stays what it is."""
    return layer.name if layer.name in project.spec.layers else str(layer.id)


def _named(layer: BoundLayer, present: Manifest) -> BoundLayer:
    """A layer that is bound by its id keeps the name, and the lock, that it was bound with before."""
    before = next((item for item in present.layers if item.id == layer.id), None)
    if before is None or layer.name != str(layer.id):
        return layer
    return replace(layer, name=before.name, lock=before.lock)


def remove(project: Project, name: str) -> None:
    from envdsl.session import bindings

    bindings.remove(project.store, name)


def _limits(
    session: Session, *, timeout: float | None, memory: str | None, cpus: float | None, pids: int | None
) -> Limits:
    """Limits of one run: the session's own where none is asked for. Raises ``app-limit`` for one without sense."""
    from envdsl.sandbox.limits import parse_size

    try:
        asked = {"timeout": timeout, "memory": parse_size(memory) if memory else None, "cpus": cpus, "pids": pids}
        given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        return replace(session.manifest.limits.of_run(), **given)
    except ValueError as error:
        raise EnvdslError.of("app-limit", str(error), exit_status=ExitStatus.USAGE) from error


def run(
    project: Project,
    name: str,
    command: Sequence[str],
    *,
    timeout: float | None = None,
    memory: str | None = None,
    cpus: float | None = None,
    pids: int | None = None,
    environment: Sequence[str] = (),
    mounts: Sequence[str] = (),
) -> int:
    """Run ``command`` in the session's sandbox, with our standard streams; returns its exit status.

    The options are spelled as on the command line. Raises :class:`EnvdslError` (``app-limit``, ``app-variable``,
    ``app-mount``: exit status USAGE) for one that makes no sense.
    """
    from envdsl.sandbox import bwrap, launch
    from envdsl.session import bindings
    from envdsl.session.compose import plan

    session = show(project, name)
    limits = _limits(session, timeout=timeout, memory=memory, cpus=cpus, pids=pids)
    bindings.trim_cache(session)
    outcome = launch.run(
        plan(session.manifest),
        command,
        bwrap=bwrap.find(bindings.shared_directory(project.store.layout)),
        limits=limits,
        environment=dict(_variable(item) for item in environment),
        mounts=[_mount(item) for item in mounts],
        reporter=project.reporter,
    )
    return outcome.status


def run_once(project: Project, layers: Sequence[str], command: Sequence[str], *, timeout: float) -> Outcome:
    """Run ``command`` in a sandbox of built ``layers`` that leaves nothing behind; output is captured."""
    from envdsl.session import bindings

    manifest = compose(project, "probe", bound_layers.bind_built(project, layers), None, ephemeral=True)
    return _run_captured(project, bindings.on_host(project.store, manifest), command, timeout)


def import_probe(project: Project, session: Session) -> Finding:
    """Whether what a session is bound to can be imported: its layers' probes, else a start of the interpreter."""
    from envdsl.sandbox.doctor import Finding, Status

    modules = _declared_probes(project, session)
    program = "".join(f"import {module}\n" for module in modules) or "import sys, ssl, json"
    outcome = _run_captured(project, session.manifest, ["python3", "-c", program], 300)
    foundation = session.manifest.foundation
    if outcome.status == 0:
        what = ", ".join(modules) if modules else "the interpreter"
        return Finding("session", Status.OK, f"{foundation.name}: {what} can be imported in the sandbox")
    said = outcome.stderr.decode(errors="replace").strip().splitlines()
    return Finding(
        "session",
        Status.FAILED,
        f"{foundation.name}: {said[-1] if said else f'exit status {outcome.status}'}",
        "`envdsl verify` finds damage in the store; `envdsl session rebase` binds what is built now",
        {"stderr": "\n".join(said)},
    )


def _declared_probes(project: Project, session: Session) -> list[str]:
    """The probes of the layers that ``session`` is bound to, as far as this project declares them as they are bound."""
    from envdsl.app.compiling import compile_layers

    bound = {layer.name: layer.id for layer in session.manifest.layers}
    try:
        known = [layer for layer in project.select(()) if layer.name in bound]
        graph = compile_layers(project, known)
    except EnvdslError:
        return []  # the project is broken, or locked for another time
    same = [layer for layer in known if layer.name in graph.layers and graph.layers[layer.name].id == bound[layer.name]]
    return sorted({module for layer in same for module in layer.probe})


def _run_captured(project: Project, manifest: Manifest, command: Sequence[str], timeout: float) -> Outcome:
    from envdsl.sandbox import bwrap, launch
    from envdsl.sandbox.limits import Limits
    from envdsl.session.bindings import shared_directory
    from envdsl.session.compose import plan

    return launch.run(
        plan(manifest),
        command,
        bwrap=bwrap.find(shared_directory(project.store.layout)),
        limits=Limits(timeout=timeout),
        capture=True,
        reporter=project.reporter,
    )


def compose(
    project: Project,
    name: str,
    layers: Sequence[BoundLayer],
    workspace: Path | None,
    *,
    ephemeral: bool = False,
    dry_run: bool = False,
) -> Manifest:
    """The manifest of a session over ``layers``, with the interpreter of its foundation's Python.

    A ``dry_run`` installs no interpreter: ``app-interpreter-absent`` where there is none yet.
    """
    from envdsl.app import interpreters
    from envdsl.session.compose import compose

    foundation = next((layer for layer in layers if layer.kind is not LayerKind.X), layers[0])
    provide = _present_interpreter if dry_run else partial(interpreters.provide, offline=False)
    return compose(
        name,
        layers,
        provide(project, foundation.python),
        project.store.layout,
        workspace=workspace,
        ephemeral=ephemeral,
    )


def _present_interpreter(project: Project, python: PythonVersion) -> Interpreter:
    from envdsl.realise import python_registry

    found = python_registry.find(project.store, python)
    if found is None:
        raise EnvdslError.of(
            "app-interpreter-absent",
            f"the store has no Python {python} yet, and a dry run installs none",
            hint=f"envdsl python install {python}",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    return found


def _variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise EnvdslError.of(
            "app-variable",
            f"not an assignment: {text!r}",
            hint="write --env NAME=VALUE",
            exit_status=ExitStatus.USAGE,
        )
    return name, value


def _mount(text: str) -> Mount:
    """``SOURCE:TARGET``, read-only, or ``SOURCE:TARGET:rw``."""
    from envdsl.sandbox.plan import Mount

    source, _, rest = text.partition(":")
    target, _, mode = rest.partition(":")
    resolved = Path(source).resolve()
    if not source or not PurePosixPath(target).is_absolute() or mode not in ("", "ro", "rw"):
        problem, hint = f"not a mount: {text!r}", "write --mount SOURCE:/TARGET, or SOURCE:/TARGET:rw"
    elif not resolved.exists():
        problem, hint = f"{source} does not exist", "name a file or directory of this machine"
    else:
        make = Mount.writable if mode == "rw" else Mount.read_only
        try:
            return make(str(resolved), os.path.normpath(target))
        except ValueError as error:
            problem, hint = str(error), "name one directory of the host, and an absolute place for it"
    raise EnvdslError.of("app-mount", problem, hint=hint, exit_status=ExitStatus.USAGE)

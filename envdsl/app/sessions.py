"""``envdsl session`` and ``envdsl run``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LayerId, LayerKind

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.sandbox.doctor import Finding
    from envdsl.sandbox.launch import Outcome
    from envdsl.sandbox.limits import Limits
    from envdsl.sandbox.plan import Mount
    from envdsl.session.bindings import Session
    from envdsl.session.difference import Difference
    from envdsl.session.manifest import BoundLayer, Manifest


def create(project: Project, name: str, layers: Sequence[str], workspace: Path | None) -> Session:
    """Bind ``name`` to ``layers`` (names, families or ids); layers of the project are built first if need be.

    ``workspace`` is the directory at ``/workspace``; without it that is memory, gone with each run.
    """
    from envdsl.session import bindings

    with project.store.lease():
        manifest = _compose(project, name, _bind(project, layers), workspace.resolve() if workspace else None)
        return bindings.create(project.store, manifest)


def names(project: Project) -> list[str]:
    from envdsl.session import bindings

    return bindings.names(project.store.layout)


def show(project: Project, name: str) -> Session:
    from envdsl.session import bindings

    return bindings.show(project.store.layout, name)


def listing(project: Project) -> list[Session]:
    return [show(project, name) for name in names(project)]


def rows(session: Session) -> list[list[str]]:
    """Labels and values for a person."""
    manifest = session.manifest
    return [
        ["session", session.name],
        ["directory", str(session.directory)],
        ["start with", str(session.run)],
        ["interpreter", f"{manifest.interpreter.version}  {manifest.interpreter.executable}"],
        ["workspace", manifest.workspace.source if manifest.workspace else "in memory"],
        *(["layer", f"{layer.name}  {layer.id}  ({len(layer.packages)} packages)"] for layer in manifest.layers),
    ]


def rebase(project: Project, name: str, *, base: str | None, dry_run: bool) -> Difference:
    """Bind a session to its layers as they are declared and locked now; ``base`` names another foundation.

    x layers follow: those of the same name, or of the same family on the new base.
    """
    from envdsl.session import bindings

    present = show(project, name).manifest
    wanted = [layer.name for layer in present.layers]
    if base is not None:
        wanted = [base, *(_family(layer.name) for layer in present.layers[1:])]
    with project.store.lease():
        workspace = Path(present.workspace.source) if present.workspace else None
        manifest = _compose(project, name, _bind(project, wanted), workspace)
        manifest = replace(manifest, limits=present.limits)
        if dry_run:
            return bindings.preview(project.store.layout, manifest)
        return bindings.rebase(project.store, manifest)


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

    manifest = _compose(project, "probe", _bind_built(project, layers), None, ephemeral=True)
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


def _compose(
    project: Project, name: str, layers: Sequence[BoundLayer], workspace: Path | None, *, ephemeral: bool = False
) -> Manifest:
    from envdsl.app import interpreters
    from envdsl.session.compose import compose

    foundation = next((layer for layer in layers if layer.kind is not LayerKind.X), layers[0])
    return compose(
        name,
        layers,
        interpreters.provide(project, foundation.python, offline=False),
        project.store.layout,
        workspace=workspace,
        ephemeral=ephemeral,
    )


def _bind(project: Project, wanted: Sequence[str]) -> list[BoundLayer]:
    """Bind layers by name, family or id. Named ones are built if they are not; the family of an x layer is read
    as the variant that stands on the chosen base."""
    from envdsl.app import building

    identifiers, named = _identifiers(wanted)
    chosen = _on_one_base(project, named)
    if chosen:
        building.build(project, chosen)
    return [*_bind_built(project, chosen), *(_bind_id(project, identifier) for identifier in identifiers)]


def _identifiers(wanted: Sequence[str]) -> tuple[list[LayerId], list[str]]:
    identifiers: list[LayerId] = []
    named: list[str] = []
    for item in wanted:
        try:
            identifiers.append(LayerId.parse(item))
        except ValueError:
            named.append(item)
    return identifiers, named


def _on_one_base(project: Project, wanted: Sequence[str]) -> list[str]:
    layers = project.spec.layers
    chosen = [name if name in layers else project.layer(name).name for name in wanted]
    foundation = next((layers[name] for name in chosen if layers[name].kind is not LayerKind.X), None)
    if foundation is None:
        _refuse_without_base(layers, chosen)
        return chosen
    suffix = f"-py3{foundation.python.minor}"
    return [
        f"{asked}{suffix}" if asked not in layers and _stands_on(layers.get(f"{asked}{suffix}"), foundation) else name
        for asked, name in zip(wanted, chosen, strict=True)
    ]


def _refuse_without_base(layers: Mapping[str, LayerSpec], chosen: Sequence[str]) -> None:
    bases = sorted({base for name in chosen if (base := layers[name].base) is not None})
    if bases:
        what = "is an x layer" if len(chosen) == 1 else "are x layers"
        raise EnvdslError.of(
            "app-session-without-base",
            f"a session stands on a base or an iso layer, and {' and '.join(chosen)} {what}",
            hint=f"add {' or '.join(f'--layer {base}' for base in bases)}",
            exit_status=ExitStatus.USAGE,
        )


def _stands_on(layer: LayerSpec | None, foundation: LayerSpec) -> bool:
    return layer is not None and layer.base == foundation.name


def _family(name: str) -> str:
    """``data`` of ``data-py312``; any other name as it is."""
    family, separator, minor = name.rpartition("-py3")
    return family if separator and minor.isdecimal() else name


def _bind_built(project: Project, names: Sequence[str]) -> list[BoundLayer]:
    from envdsl.app.compiling import compile_layers
    from envdsl.session.layers import bind_layer

    if not names:
        return []
    graph = compile_layers(project, project.select(names))
    bound = []
    for name in names:
        lock = project.lock(name)
        bound.append(bind_layer(project.store, name, graph.layers[name].id, lock=lock.digest if lock else None))
    return bound


def _bind_id(project: Project, identifier: LayerId) -> BoundLayer:
    from envdsl.session.layers import bind_layer

    return bind_layer(project.store, str(identifier), identifier)


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

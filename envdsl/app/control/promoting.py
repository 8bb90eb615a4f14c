"""A request that proved useful becomes the project's: a layer file and its lock, for git to keep.

What is written declares the very layer that the session is bound to: building it gives the same id, or nothing is
written at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from envdsl.app.control import extending
from envdsl.app.control.asking import find
from envdsl.app.control.authorising import require
from envdsl.app.control.deciding import plan_of
from envdsl.app.control.following import uploads_of
from envdsl.app.control.uploads import place
from envdsl.app.curated import refuse_curated
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LAYER_NAME, LayerId, LayerKind
from envdsl.policy.access import Action, Principal
from envdsl.policy.proposal import Choice, Plan, Proposal, Upload
from envdsl.state.records import RequestRecord, Status

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.app.project import Project
    from envdsl.lock.lock import Lock, LockedWheel

_LISTS = ("constraints", "overrides", "excludes", "index")


def promote(plane: ControlPlane, principal: Principal, request_id: str, *, name: str | None = None) -> tuple[Path, ...]:
    """Write the layer of a request that is READY, called ``name`` (default: what the session calls it), and its lock.

    Returns the paths that were written: the layer file, the lock, and wheels that were uploaded. Raises EnvdslError:
    ``app-forbidden``, ``app-not-ready``, ``app-layer-exists``, ``app-promoted-already``, ``app-wheel-exists`` where
    another wheel stands where one that was uploaded would, ``app-base-moved-on`` where the project does not declare the
    base any more that the layer stands on, ``app-no-project`` for the curated layers.
    """
    refuse_curated(plane.project)
    record = find(plane, principal, request_id)
    require(plane, principal, Action.PROMOTE, record.session)
    plan = _plan(record)
    project = plane.project
    project.reread()
    _refuse_second(plane, record)
    uploads = uploads_of(record)
    name = name or extending.layer_name(record.requirements, uploads)
    file = _file(project, name)
    lock = _parsed(plane, plan)
    base = _base(plane, record) if lock.kind is LayerKind.X else None
    with _all_or_nothing(project) as written:
        wheels = {upload.sha256: _copied(plane, upload, file.parent / "wheels", written) for upload in uploads}
        _create(file, _text(project, record, name, base, lock, wheels), written)
        _write_lock(project, name, lock, wheels, written)
        _check(project, name, record)
    with plane.state.transaction() as transaction:
        transaction.audit.append(
            actor=principal.name,
            action="request.promoted",
            session=record.session,
            subject=record.id,
            data={"store": plane.store_id, "name": name, "layer": record.layer},
        )
    return tuple(written)


def _plan(record: RequestRecord) -> Plan:
    from envdsl.policy import encoding

    plan = None
    if record.status is Status.READY and record.layer is not None and record.decision is not None:
        plan = plan_of(encoding.from_json(Proposal, record.proposal), Choice(record.decision.choice))
    if plan is None:
        raise EnvdslError.of(
            "app-not-ready",
            f"{record.id} has no layer that could be promoted",
            hint="what is promoted is a request that is ready, and was not there already",
            exit_status=ExitStatus.USAGE,
        )
    return plan


def _refuse_second(plane: ControlPlane, record: RequestRecord) -> None:
    """Raises ``app-promoted-already`` where the project declares the layer that ``record`` was promoted to."""
    with plane.state.reading() as transaction:
        events = transaction.audit.newest(limit=1000, store=plane.store_id, subject=record.id)
    for event in events:
        spec = plane.project.spec.layers.get(str(event.data.get("name")))
        if event.action == "request.promoted" and spec is not None:
            raise EnvdslError.of(
                "app-promoted-already",
                f"{record.id} was promoted to the layer `{spec.name}` before",
                span=spec.span,
                hint="use that one, or remove it and its lock first",
                exit_status=ExitStatus.USAGE,
            )


def _file(project: Project, name: str) -> Path:
    """Where a layer called ``name`` is declared: in the first directory of layer files whose pattern it fits."""
    if LAYER_NAME.fullmatch(name) is None:
        raise EnvdslError.of(
            "app-layer-name",
            f"{name!r} cannot name a layer",
            hint="use letters, digits, '_' and '-', beginning with a letter or digit",
            exit_status=ExitStatus.USAGE,
        )
    if name in project.spec.layers:
        raise EnvdslError.of(
            "app-layer-exists",
            f"a layer `{name}` is declared already",
            span=project.spec.layers[name].span,
            hint="choose another name with --name",
            exit_status=ExitStatus.USAGE,
        )
    for pattern in project.config.layers:
        path = PurePosixPath(pattern).parent / f"{name}.layer"
        file = project.config.root / path
        if path.match(pattern) and not file.exists() and not project.config.lock_path(name).exists():
            return file
    raise EnvdslError.of(
        "app-layer-exists",
        f"there is a file {name}.layer or its lock already, or no directory for one",
        hint="choose another name with --name; `layers` in envdsl.toml says where layer files stand",
        exit_status=ExitStatus.USAGE,
    )


def _parsed(plane: ControlPlane, plan: Plan) -> Lock:
    from envdsl.lock.pylock import parse_lock

    return parse_lock(plan.lock.encode(), plane.project.store.layout.locks / "pylock.request.toml")


def _base(plane: ControlPlane, record: RequestRecord) -> str:
    """The name under which the project declares the base that the layer of ``record`` stands on."""
    from envdsl.app.compiling import compile_layers
    from envdsl.session.layers import bind_layer

    project = plane.project
    layer = bind_layer(project.store, "request", LayerId.parse(str(record.layer)))
    bases = [item for item in project.select(()) if item.kind is LayerKind.BASE and project.lock(item.name) is not None]
    graph = compile_layers(project, bases)
    found = next((name for name, item in graph.layers.items() if item.id == layer.base), None)
    if found is None:
        raise EnvdslError.of(
            "app-base-moved-on",
            f"the layer of {record.id} stands on {layer.base}, which is no base of this project as it is locked now",
            hint=f"`envdsl session rebase {record.session}` resolves it on the present base; promote it then",
        )
    return found


def _text(
    project: Project, record: RequestRecord, name: str, base: str | None, lock: Lock, wheels: Mapping[str, Path]
) -> str:
    from envdsl.app.imports.layer import comment, declared, literal
    from envdsl.model.span import Source
    from envdsl.syntax.printer import format_file

    def listed(key: str) -> list[str]:
        value = lock.recorded.get(key)
        return [str(item) for item in value] if isinstance(value, list) else []

    why = f": {record.reason}" if record.reason else "."
    lines = [
        f"# Asked for in the session {comment(record.session)}{comment(why)}",
        f"# Promoted from {record.id}.",
        f"{lock.kind.value} {declared(name)} {f'on {declared(base)} ' if base else ''}{{",
    ]
    if base is None:
        lines.append(f"python = {literal(str(lock.python))};")
        lines.append(f"platforms = [ {' '.join(literal(str(item)) for item in lock.platforms)} ];")
    lines.append(f"packages = [ {' '.join(map(literal, listed('packages')))} ];")
    lines += [f"{key} = [ {' '.join(map(literal, listed(key)))} ];" for key in _LISTS if listed(key)]
    if lock.recorded.get("prereleases"):
        lines.append("prereleases = true;")
    if wheels:
        lines.append(f"wheels = [ {' '.join(f'./wheels/{path.name}' for path in wheels.values())} ];")
    return format_file(Source(f"{name}.layer", "\n".join([*lines, "}", ""])))


def _write_lock(project: Project, name: str, lock: Lock, wheels: Mapping[str, Path], written: list[Path]) -> None:
    """The lock with the pins of ``lock``, as an answer to the declaration; more platforms are resolved to the same."""
    from envdsl.app import locking
    from envdsl.lock.freshness import digest_of, resolution_inputs
    from envdsl.lock.lock import BaseReference
    from envdsl.lock.pylock import finish, write_lock

    project.reread()
    path = project.config.lock_path(name)
    spec = project.spec.layers[name]
    base = project.lock(spec.base) if spec.base is not None else None
    inputs = resolution_inputs(spec, project.config.root) | {"platforms": sorted(map(str, lock.platforms))}
    packages = [
        replace(package, platforms=tuple((item, _local(wheel, path, wheels)) for item, wheel in package.platforms))
        for package in lock.packages
    ]
    promoted = replace(
        lock,
        layer=name,
        inputs=digest_of(inputs),
        recorded=inputs,
        base=BaseReference(base.layer, base.digest) if base is not None else None,
        packages=tuple(packages),
        digest="",
    )
    text, _ = finish(promoted, path)
    written.append(path)
    write_lock(path, text)
    if set(spec.platforms) != set(lock.platforms):  # the lock is stale, and says which platforms it lacks
        locking.lock(project, [name])


def _local(wheel: LockedWheel, lock: Path, wheels: Mapping[str, Path]) -> LockedWheel:
    """A wheel that was uploaded stands in the project now; what other local wheels there were, an index has."""
    if (copy := wheels.get(wheel.sha256)) is not None:
        return replace(wheel, path=Path(os.path.relpath(copy, lock.parent)).as_posix())
    return replace(wheel, path=None)


def _check(project: Project, name: str, record: RequestRecord) -> None:
    """Raises ``app-promoted-other`` unless a build of the layer gives what the session is bound to."""
    from envdsl.app import locking
    from envdsl.app.compiling import compile_layers

    project.reread()
    locking.require_current(project, [name])
    layer = compile_layers(project, project.select([name])).layers[name]
    if str(layer.id) != record.layer:
        raise EnvdslError.of(
            "app-promoted-other",
            f"the layer file would give {layer.id}, and the session is bound to {record.layer}: nothing was written",
            hint="declare the layer by hand; `envdsl requests show` has its packages",
        )


def _copied(plane: ControlPlane, upload: Upload, directory: Path, written: list[Path]) -> Path:
    target = directory / upload.filename
    if target.exists():
        with target.open("rb") as present:
            digest = hashlib.file_digest(present, "sha256").hexdigest()
        if digest != upload.sha256:
            raise EnvdslError.of(
                "app-wheel-exists",
                f"another wheel stands at {target}: its sha256 is {digest[:16]}…, the layer's {upload.sha256[:16]}…",
                hint="move it away, or declare the layer by hand",
            )
        return target
    directory.mkdir(parents=True, exist_ok=True)
    written.append(target)
    shutil.copyfile(place(plane.project.store.layout, upload), target)
    return target


def _create(file: Path, text: str, written: list[Path]) -> None:
    with file.open("x", encoding="utf-8") as stream:
        written.insert(0, file)
        stream.write(text)


@contextmanager
def _all_or_nothing(project: Project) -> Iterator[list[Path]]:
    """A list of files; they are removed again where the block raises."""
    written: list[Path] = []
    try:
        yield written
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    finally:
        project.reread()

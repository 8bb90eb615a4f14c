"""``envdsl check`` and ``envdsl eval``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.config import FILE_NAME
from envdsl.errors import Diagnostic, EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec, Spec


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was checked and found; ``diagnostics`` holds errors and warnings in the order of their places."""

    files: tuple[str, ...]
    layers: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def check(project: Project, paths: Sequence[Path]) -> CheckReport:
    """Check all layer files of the project, or those in ``paths`` (files and directories) with what they import.

    The whole project is evaluated either way, since an x layer's base may stand in another file; what is
    reported is limited to ``paths``; without any, the catalog is checked, too. Raises :class:`EnvdslError` for a path
    outside of the project.
    """
    chosen = _layer_files(project, paths) if paths else project.layer_files
    try:
        spec = project.evaluate(sorted({*project.layer_files, *chosen}))
    except EnvdslError as error:
        found = error.diagnostics
        layers: tuple[str, ...] = ()
    else:
        found = (*spec.warnings, *_unknown_names(project, spec))
        layers = tuple(
            name
            for name, layer in spec.layers.items()
            if not paths or (layer.span is not None and layer.span.source.path in chosen)
        )
    if paths:
        found = tuple(item for item in found if item.span is None or item.span.source.path in chosen)
    elif project.config.catalog.is_file():
        from envdsl.app.control import catalogue

        return CheckReport(
            (*chosen, catalogue.file_of(project)), layers, (*found, *catalogue.check(project).diagnostics)
        )
    return CheckReport(tuple(chosen), layers, found)


def _unknown_names(project: Project, spec: Spec) -> Iterator[Diagnostic]:
    """What layers and settings name, and is declared nowhere: indexes, and the default base."""
    from envdsl.app.locking import index_configuration
    from envdsl.app.project import family, unknown_layer

    known = {*spec.layers, *map(family, spec.layers.values())}
    default = project.config.default_base
    if default is not None and default not in known:
        (unknown,) = unknown_layer(default, known).diagnostics
        yield Diagnostic(
            "app-default-base",
            f"`default-base` in {FILE_NAME} names a layer that is not declared: `{default}`",
            hint=unknown.hint,
        )
    asking = [layer for layer in spec.layers.values() if layer.index]
    indexes = index_configuration(project) if asking else None
    for layer in asking:
        try:
            assert indexes is not None
            indexes.restricted(layer.index, layer.span)
        except EnvdslError as error:
            yield from error.diagnostics


def _layer_files(project: Project, paths: Sequence[Path]) -> tuple[str, ...]:
    root = project.config.root.resolve()
    found: set[str] = set()
    for path in paths:
        resolved = path.resolve()
        if not resolved.is_relative_to(root):
            raise EnvdslError.of(
                "app-outside-project",
                f"{path} lies outside of the project {project.config.root}",
                hint="run envdsl in that project, or name it with --project",
                exit_status=ExitStatus.USAGE,
            )
        files = sorted(resolved.rglob("*.layer")) if resolved.is_dir() else [resolved]
        found.update(file.relative_to(root).as_posix() for file in files)
    return tuple(sorted(found))


def evaluate_file(project: Project, file: Path, *, as_json: bool) -> str:
    """The value of the one expression in ``file``; it may lie anywhere, and reads in its own project or directory."""
    from envdsl.config import find_root
    from envdsl.evaluate.reader import DirectoryReader
    from envdsl.syntax.parser import decode

    resolved = file.resolve()
    root = find_root(resolved.parent) or resolved.parent
    source = decode(str(file), resolved.read_bytes())
    directory = resolved.parent.relative_to(root).as_posix()
    return _evaluate(project, source, DirectoryReader(root), directory, as_json)


def evaluate_text(project: Project, text: str, *, as_json: bool, name: str = "<expr>") -> str:
    """The value of an expression from no file (``name`` in errors); paths in it are relative to the project's root."""
    from envdsl.evaluate.reader import DirectoryReader
    from envdsl.model.span import Source

    return _evaluate(project, Source(name, text), DirectoryReader(project.config.root), ".", as_json)


def _evaluate(project: Project, source: Any, reader: Any, directory: str, as_json: bool) -> str:
    from envdsl.evaluate.expression import evaluate_expression, evaluate_json
    from envdsl.evaluate.render import render_nix

    place = "" if directory == "." else directory
    trace = project.reporter.trace
    if as_json:
        return evaluate_json(source, reader, directory=place, trace=trace)
    return render_nix(evaluate_expression(source, reader, directory=place, trace=trace))


def layer_specification(project: Project, name: str) -> dict[str, Any]:
    """One layer as it was evaluated and validated, in the spelling of layer files."""
    return specification(project.layer(name))


def specification(layer: LayerSpec) -> dict[str, Any]:
    """``layer`` as plain data."""
    return {
        "name": layer.name,
        "kind": layer.kind.value,
        "base": layer.base,
        "python": str(layer.python),
        "platforms": [str(platform) for platform in layer.platforms],
        "packages": [requirement.text for requirement in layer.packages],
        "constraints": [requirement.text for requirement in layer.constraints],
        "overrides": [requirement.text for requirement in layer.overrides],
        "excludes": list(layer.excludes),
        "wheels": [wheel.path for wheel in layer.wheels],
        "sources": [source.path for source in layer.sources],
        "env": dict(layer.env),
        "probe": list(layer.probe),
        "index": list(layer.index),
        "exclude-newer": layer.exclude_newer,
        "prereleases": layer.prereleases,
        "allow": {
            "record-mismatch": list(layer.allow.record_mismatch),
            "collisions": list(layer.allow.collisions),
        },
        "bytecode": layer.bytecode,
        "description": layer.description,
        "meta": json.loads(json.dumps(layer.meta)),
    }

"""Options that commands share, and the decorator that gives a command its project."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from envdsl.cli import output

if TYPE_CHECKING:
    from envdsl.app.project import Project

F = TypeVar("F", bound=Callable[..., Any])


def common(function: F) -> Callable[..., Any]:
    """Add ``--project --store --quiet --verbose`` and call ``function`` with the opened project first."""

    @click.option(
        "--project",
        "directory",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        envvar="ENVDSL_PROJECT",
        help="The project's directory.  [default: the nearest with envdsl.toml or layers.d]",
    )
    @click.option(
        "--store",
        type=click.Path(file_okay=False, path_type=Path),
        help="The environment root.  [default: ENVDSL_STORE, then envdsl.toml, then store/]",
    )
    @click.option("-q", "--quiet", is_flag=True, help="Errors and results only.")
    @click.option("-v", "--verbose", is_flag=True, help="Say what is being done, and why.")
    @functools.wraps(function)
    def wrapper(
        *args: Any, directory: Path | None, store: Path | None, quiet: bool, verbose: bool, **kwargs: Any
    ) -> Any:
        output.configure(quiet=quiet, verbose=verbose, as_json=bool(kwargs.get("as_json")))
        from envdsl.app.project import Project
        from envdsl.cli.progress import reporter

        project = Project.find(directory or Path.cwd(), store=store, reporter=reporter())
        project.reporter.note(f"project {project.config.root}, store {project.config.store}")
        try:
            return function(project, *args, **kwargs)
        finally:
            project.close()

    return wrapper


def looks(function: F) -> Callable[..., Any]:
    """For a command that only looks (below :func:`common`): where there is no store, it makes none."""

    @functools.wraps(function)
    def wrapper(project: Project, *args: Any, **kwargs: Any) -> Any:
        project.looks_only = True
        return function(project, *args, **kwargs)

    return wrapper


def as_json(function: F) -> F:
    """``--json``: the result as one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def offline(function: F) -> F:
    """``--offline``: no network, the wheelhouse and what is cached only."""
    return click.option("--offline", is_flag=True, help="Use no network.")(function)


def complete_layers(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of the names of layers and families; an unreadable project completes nothing."""
    from envdsl.app.project import Project, family
    from envdsl.errors import EnvdslError
    from envdsl.reporter import Reporter

    try:
        directory = ctx.params.get("directory") or Path.cwd()
        layers = Project.find(directory, store=None, reporter=Reporter()).spec.layers
    except (EnvdslError, OSError):
        return []
    names = dict.fromkeys([*layers, *map(family, layers.values())])
    return [name for name in names if name.startswith(incomplete)]


def complete_ids(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of layers, and of ids and keys of what they are made of."""
    from envdsl.app.inspect import ids
    from envdsl.app.project import Project
    from envdsl.errors import EnvdslError
    from envdsl.reporter import Reporter

    try:
        directory = ctx.params.get("directory") or Path.cwd()
        return ids(Project.find(directory, store=None, reporter=Reporter()), incomplete)
    except (EnvdslError, OSError):
        return []


def complete_sessions(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of session names."""
    from envdsl.app.project import Project
    from envdsl.errors import EnvdslError
    from envdsl.reporter import Reporter
    from envdsl.session import bindings
    from envdsl.store.layout import Layout

    try:
        directory = ctx.params.get("directory") or Path.cwd()
        project = Project.find(directory, store=ctx.params.get("store"), reporter=Reporter())
        names = bindings.names(Layout(project.config.store))
    except (EnvdslError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def layer_arguments(function: F) -> F:
    """``[LAYER]…``."""
    return click.argument("layers", nargs=-1, metavar="[LAYER]...", shell_complete=complete_layers)(function)

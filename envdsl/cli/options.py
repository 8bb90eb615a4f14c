"""Options that commands share, and the decorator that gives a command its project."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from envdsl.cli import output

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
        try:
            return function(project, *args, **kwargs)
        finally:
            project.close()

    return wrapper


def as_json(function: F) -> F:
    """``--json``: the result as one JSON document."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(function)


def offline(function: F) -> F:
    """``--offline``: no network, the wheelhouse and what is cached only."""
    return click.option("--offline", is_flag=True, help="Use no network.")(function)


def complete_layers(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Shell completion of layer names; an unreadable project completes nothing."""
    from envdsl.app.project import Project
    from envdsl.errors import EnvdslError
    from envdsl.reporter import Reporter

    try:
        directory = ctx.params.get("directory") or Path.cwd()
        names = Project.find(directory, store=None, reporter=Reporter()).spec.layers
    except (EnvdslError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


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

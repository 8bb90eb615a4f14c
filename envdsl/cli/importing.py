"""``envdsl import``: existing work as a layer with the same versions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, offline

if TYPE_CHECKING:
    from envdsl.app.imports.found import Found, Target
    from envdsl.app.project import Project

_file = click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group("import")
def import_() -> None:
    """Take over what another tool has locked or installed: a layer file and its lock, with the same versions.

    Where a package cannot be had as it is there, nothing is written, and each gets its reason.
    """


def _command(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that all importers share."""
    decorators: tuple[Callable[[Any], Any], ...] = (
        common,
        as_json,
        offline,
        click.option("--without", multiple=True, metavar="NAME", help="Leave out a package, such as your own."),
        click.option(
            "--kind",
            type=click.Choice(["base", "iso"]),
            default="base",
            show_default=True,
            help="What others can stand on, or not.",
        ),
        click.option(
            "--platform", "platforms", multiple=True, metavar="TAG", help="manylinux_2_28_x86_64 …  [default: this one]"
        ),
        click.option("--python", help="The feature release, 3.12.  [default: what the source says]"),
        click.option("--name", required=True, help="What to call the layer."),
    )
    for decorate in decorators:
        function = decorate(function)
    return function


@import_.command(epilog="\b\nExample:\n  envdsl import pylock pylock.toml --name tools --python 3.12")
@_file
@_command
def pylock(project: Project, source: Path, **options: Any) -> None:
    """Take over FILE, a pylock.toml (PEP 751)."""
    from envdsl.app.imports.pylock import read_pylock

    _run(project, functools.partial(read_pylock, source), **options)


@import_.command(epilog="\b\nExample:\n  envdsl import requirements requirements.txt --name tools --python 3.12")
@_file
@_command
def requirements(project: Project, source: Path, **options: Any) -> None:
    """Take over FILE, a requirements.txt with exact versions; its hashes must hold where it has any."""
    from envdsl.app.imports.requirements import read_requirements

    _run(project, functools.partial(read_requirements, source), **options)


@import_.command(epilog="\b\nExample:\n  envdsl import venv .venv --name tools")
@click.argument("source", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_command
def venv(project: Project, source: Path, **options: Any) -> None:
    """Take over what is installed in DIR, a virtual environment. Nothing of it is executed."""
    from envdsl.app.imports.venv import read_venv

    _run(project, functools.partial(read_venv, source), **options)


@import_.command(
    epilog="\b\nExamples:\n  envdsl import uv --name app --python 3.12\n  envdsl import uv ../app/uv.lock --name app"
)
@click.argument("source", metavar="[FILE]", default="uv.lock", type=click.Path(exists=True, path_type=Path))
@click.option("--extra", "extras", multiple=True, metavar="NAME", help="Of the project's optional dependencies.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="Of the project's dependency groups.")
@_command
def uv(project: Project, source: Path, extras: tuple[str, ...], groups: tuple[str, ...], **options: Any) -> None:
    """Take over FILE, a uv.lock with its pyproject.toml beside it, through uv's own export."""
    from envdsl.app.imports.uvlock import read_uv_lock

    _run(project, functools.partial(read_uv_lock, source, extras=extras, groups=groups), **options)


import_.add_command(uv, "uv.lock")


def _run(
    project: Project,
    read: Callable[[Target], Found],
    *,
    name: str,
    python: str | None,
    platforms: tuple[str, ...],
    without: tuple[str, ...],
    kind: str,
    offline: bool,
    as_json: bool,
) -> None:
    from packaging.utils import canonicalize_name

    from envdsl.app import interpreters
    from envdsl.app.imports import found, take
    from envdsl.app.workplace import workplace
    from envdsl.model.names import LayerKind, Platform

    given = click.get_current_context().params
    home = workplace(given["directory"] or Path.cwd(), store=given["store"], reporter=project.reporter)
    try:
        chosen = tuple(Platform.parse(tag) for tag in platforms) or take.default_platforms(home)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    release = interpreters.parse(python) if python else None
    target = found.Target(release, chosen, frozenset(canonicalize_name(item) for item in without))
    done = take.take(home, read(target), name, chosen, kind=LayerKind(kind), offline=offline)
    if as_json:
        output.result_json(done.to_json())
        return
    output.result(f"created\t{done.layer}\ncreated\t{done.lock}")
    for package, version, compared in done.packages:
        output.result(f"  {package} {version}{'' if compared else '  (hash from the index)'}")
    for package, reason in done.left_out.items():
        output.message(f"left out: {package}: {reason}")
    output.message(f"{output.count(len(done.packages), 'package')}; `envdsl build {done.name}` builds them")

"""``envdsl python``: managed interpreters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, looks, offline

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.group()
def python() -> None:
    """Managed interpreters: what sandboxes run, never the host's own `python3`."""


@python.command(epilog="\b\nExample:\n  envdsl python install 3.12 --archive cpython.tar.gz --sha256 …")
@click.argument("version")
@click.option("--archive", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A local archive.")
@click.option("--sha256", help="The sha256 of --archive.")
@click.option("--mirror", help="Where builds are fetched from.")
@offline
@as_json
@common
def install(
    project: Project,
    version: str,
    archive: Path | None,
    sha256: str | None,
    mirror: str | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Install an interpreter of VERSION (3.12) into the store.

    A python-build-standalone build through uv, or --archive; where neither can be had, a copy of a
    Python on this machine, and `python/SOURCE` says so.
    """
    from envdsl.app import interpreters

    if (archive is None) != (sha256 is None):
        raise click.UsageError("--archive and --sha256 go together")
    found = interpreters.install(project, version, archive=archive, sha256=sha256, mirror=mirror, offline=offline)
    if as_json:
        output.result_json(interpreters.to_json(found))
    else:
        output.result(f"{found.full_version}\t{found.executable}\t{found.source}")


@python.command("list", epilog="\b\nExample:\n  envdsl python list --json")
@as_json
@common
@looks
def list_(project: Project, as_json: bool) -> None:
    """List the interpreters in the store."""
    from envdsl.app import interpreters

    found = interpreters.installed(project)
    if as_json:
        output.result_json({"interpreters": [interpreters.to_json(item) for item in found]})
        return
    for item in found:
        output.result(f"{item.full_version}\t{item.executable}\t{item.source}")
    if not found:
        output.message("none yet: `envdsl python install 3.12`, or `envdsl build`, which does it by itself")


@python.command(epilog="\b\nExample:\n  $(envdsl python show --path) -c 'print(1)'")
@click.argument("version", required=False)
@click.option("--path", "only_path", is_flag=True, help="Print the path of the executable alone.")
@as_json
@common
@looks
def show(project: Project, version: str | None, only_path: bool, as_json: bool) -> None:
    """Show one interpreter: of VERSION, or the one of `python/current`."""
    from envdsl.app import interpreters

    found = interpreters.show(project, version)
    if as_json:
        output.result_json(interpreters.to_json(found))
    elif only_path:
        output.result(str(found.executable))
    else:
        rows = [[name, str(value)] for name, value in interpreters.to_json(found).items()]
        output.result(output.table(rows))

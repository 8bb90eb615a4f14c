"""``envdsl fetch`` and ``envdsl bundle``: what a machine without a network needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, layer_arguments, offline

if TYPE_CHECKING:
    from envdsl.app.project import Project

_NOUNS = {"python": "interpreter", "unpack": "unpacked wheel", "bytecode": "compiled wheel"}
_all_platforms = click.option("--all-platforms", is_flag=True, help="Wheels of every locked platform, not this one's.")
_interpreter = click.option("--interpreter/--no-interpreter", default=True, help="Interpreters, too.  [default: yes]")


@click.command(epilog="\b\nExamples:\n  envdsl fetch && envdsl build --offline\n  envdsl fetch office --all-platforms")
@layer_arguments
@_all_platforms
@_interpreter
@offline
@as_json
@common
def fetch(
    project: Project, layers: tuple[str, ...], all_platforms: bool, interpreter: bool, offline: bool, as_json: bool
) -> None:
    """Put the wheels that locks pin into the wheelhouse, and list them.

    After it `build --offline` works. What is fetched is kept from `gc` while a lock of the project pins it.
    """
    from envdsl.app import fetching, interpreters

    done = fetching.fetch(project, layers, all_platforms=all_platforms, interpreter=interpreter, offline=offline)
    if as_json:
        output.result_json(
            {
                "wheels": [wheel.to_json() for wheel in done.wheels],
                "interpreters": [interpreters.to_json(item) for item in done.interpreters],
            }
        )
        return
    for wheel in done.wheels:
        output.result(f"{'present' if wheel.present else 'fetched'}\t{wheel.filename}\t{wheel.path}")
    for item in done.interpreters:
        output.result(f"python\t{item.full_version}\t{item.executable}")
    new = [wheel for wheel in done.wheels if not wheel.present]
    size = output.size(sum(wheel.size for wheel in new))
    output.message(f"{output.count(len(done.wheels), 'wheel')}, {len(new)} of them fetched ({size})")


@click.group()
def bundle() -> None:
    """One file with all that a machine without a network needs to build layers."""


@bundle.command(
    epilog="\b\nExamples:\n  envdsl bundle create -o all.tar.zst\n"
    "  envdsl bundle create office -o office.tar.zst --layers --sign builder.key"
)
@layer_arguments
@click.option("--output", "-o", "file", required=True, type=click.Path(dir_okay=False, path_type=Path), help="FILE.")
@_all_platforms
@_interpreter
@click.option("--layers", "realised", is_flag=True, help="Build the layers, and put in what was built.")
@click.option(
    "--sign", "key", metavar="KEY", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Sign with KEY."
)
@offline
@as_json
@common
def create(
    project: Project,
    layers: tuple[str, ...],
    file: Path,
    all_platforms: bool,
    interpreter: bool,
    realised: bool,
    key: Path | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Write the locks of layers, the layer files, their wheels and interpreters into one file, a .tar.zst.

    The same project and store give the same bytes. The sha256 that is printed is for whoever imports the file.
    """
    from envdsl.app.bundles.create import create as run

    done = run(
        project,
        layers,
        file,
        all_platforms=all_platforms,
        interpreter=interpreter,
        layers=realised,
        offline=offline,
        key=key,
    )
    if as_json:
        output.result_json(done.to_json())
        return
    output.result(f"{done.sha256}\t{done.size}\t{done.file}")
    counts = ", ".join(output.count(count, _NOUNS.get(kind, kind)) for kind, count in done.kinds.items())
    output.message(f"{', '.join(done.layers)}: {counts or 'no wheels'} ({output.size(done.size)})")
    if done.signer is not None:
        output.message(f"signed with the key {done.signer}")


@bundle.command(
    "import",
    epilog="\b\nExamples:\n  envdsl bundle import all.tar.zst\n"
    "  envdsl bundle import all.tar.zst --trust builder.key.pub\n"
    "  envdsl bundle import all.tar.zst --project . --sha256 … && envdsl build --offline",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--sha256", help="What FILE must have: from whoever made it, by another way than FILE.")
@click.option(
    "--trust",
    "trusted",
    metavar="PUBKEY",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Refuse FILE (exit status 3) unless PUBKEY's owner signed it; more than one may be trusted.",
)
@click.option("--files/--no-files", default=True, help="The project's files, where they are missing.  [default: yes]")
@click.option("--layers/--no-layers", default=True, help="What was built, if it is in FILE.  [default: yes]")
@_interpreter
@as_json
@common
def import_(
    project: Project,
    file: Path,
    sha256: str | None,
    trusted: tuple[Path, ...],
    files: bool,
    layers: bool,
    interpreter: bool,
    as_json: bool,
) -> None:
    """Import what `bundle create` wrote: into the store, and into the project the files that it lacks.

    Every hash is checked first, and nothing is used of a bundle in which one is wrong. Where there is no
    project, the current directory (or --project) becomes one. No network is used.
    """
    from envdsl.app.bundles.receive import Options, receive
    from envdsl.app.workplace import workplace

    given = click.get_current_context().params
    home = workplace(given["directory"] or Path.cwd(), store=given["store"], reporter=project.reporter)
    try:
        done = receive(home, file, Options(files, layers, interpreter, sha256, trusted))
    finally:
        home.close()
    if as_json:
        output.result_json(done.to_json())
        return
    for status, paths in (("imported", done.imported), ("present", done.present), ("written", done.written)):
        for path in paths:
            output.result(f"{status}\t{path}")
    for path, reason in done.left_out.items():
        output.result(f"left out\t{path}\t{reason}")
    output.message(f"{', '.join(done.layers)}: run `envdsl build --offline {' '.join(done.layers)}`")


@bundle.command(epilog="\b\nExample:\n  envdsl bundle keygen builder.key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def keygen(file: Path) -> None:
    """Make a pair of ed25519 keys: FILE to sign with, which stays secret, and FILE.pub for who imports.

    Whoever trusts FILE.pub should get it, or compare the printed key, by another way than the bundles.
    """
    from envdsl.app.bundles.signing import generate

    public, key = generate(file)
    output.result(f"{key}\t{public}")

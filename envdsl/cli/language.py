"""``envdsl check`` and ``envdsl eval``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, complete_layers
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples:\n  envdsl check\n  envdsl check layers.d/office.layer --json\n  envdsl check --format github"
)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="[PATH]...")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "github"]),
    default="text",
    show_default=True,
    help="github: annotations in a workflow.",
)
@as_json
@common
def check(project: Project, paths: tuple[Path, ...], style: str, as_json: bool) -> int:
    """Parse, evaluate and validate layer files, and report all errors.

    PATHs are layer files or directories; without one, all layer files of the project are checked.
    With --json or --format github the findings are the result and go to stdout.
    """
    from envdsl.app.language import check as run

    found = run(project, paths)
    errors = sum(diagnostic.severity == "error" for diagnostic in found.diagnostics)
    if as_json or style == "json":
        output.result_json(
            {
                "files": list(found.files),
                "layers": list(found.layers),
                "diagnostics": [output.to_json(item) for item in found.diagnostics],
            }
        )
    elif style == "github":
        for diagnostic in found.diagnostics:
            output.result(output.to_github(diagnostic))
    else:
        output.report(found.diagnostics)
    if errors:
        output.message(f"{output.count(errors, 'error')} in {output.count(len(found.files), 'file')}")
        return ExitStatus.FAILED
    files, layers = output.count(len(found.files), "file"), output.count(len(found.layers), "layer")
    output.message(f"{files}, {layers}: no errors")
    return ExitStatus.OK


@click.command(
    "eval",
    epilog="\b\nExamples:\n  envdsl eval --expr 'map (x: x * 2) [ 1 2 3 ]'\n  envdsl eval --layer office-py312 --json\n"
    "  echo '1 + 1' | envdsl eval -",
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--expr", "-E", "expression", help="Evaluate this expression.")
@click.option("--layer", help="Print one layer's evaluated specification.", shell_complete=complete_layers)
@as_json
@common
def evaluate(project: Project, file: Path | None, expression: str | None, layer: str | None, as_json: bool) -> None:
    """Print the value of an expression, in Nix's notation or as JSON; evaluation is strict.

    FILE holds one expression (`-` is stdin, `-E` gives it as an argument); paths in it are relative to the file, or to
    the project.
    """
    from envdsl.app import language

    if sum(given is not None for given in (file, expression, layer)) != 1:
        raise click.UsageError("give one of FILE, --expr and --layer")
    if layer is not None:
        output.result_json(language.layer_specification(project, layer))
    elif file == Path("-"):
        output.result(language.evaluate_text(project, sys.stdin.read(), as_json=as_json, name="<stdin>"))
    elif file is not None:
        output.result(language.evaluate_file(project, file, as_json=as_json))
    else:
        assert expression is not None
        output.result(language.evaluate_text(project, expression, as_json=as_json))

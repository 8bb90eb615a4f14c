"""Commands that only look: ``show``, ``graph``, ``show-derivation``, ``path``, ``ls``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, complete_ids, complete_layers, layer_arguments, looks

if TYPE_CHECKING:
    from envdsl.app.inspect import LayerFacts
    from envdsl.app.project import Project


@click.command(epilog="\b\nExample:\n  envdsl show office --json")
@click.argument("layer", shell_complete=complete_layers)
@as_json
@common
@looks
def show(project: Project, layer: str, as_json: bool) -> None:
    """Show what LAYER (a name or an id) holds: packages, sizes, files, sources, base, platforms, age of the lock."""
    from envdsl.app import inspect

    facts = inspect.show(project, layer)
    if as_json:
        output.result_json(facts.to_json())
        return
    output.result(output.table(_rows(facts)))
    output.result("")
    packages = [["package", "version", "wheel", "unpacked", "files"]]
    packages += [
        [item.name, item.version, output.size(item.wheel_size), _size(item.size), _count(item.files)]
        for item in facts.packages
    ]
    output.result(output.table(packages, right=(2, 3, 4)))


def _rows(facts: LayerFacts) -> list[list[str]]:
    rows = [
        ("layer", facts.name),
        ("kind", facts.kind),
        ("description", facts.description),
        ("id", facts.id),
        ("path", facts.path or "not built"),
        ("python", facts.python),
        ("platform", facts.platform),
        ("declared for", ", ".join(facts.platforms)),
        ("base", facts.base or ""),
        ("sources", ", ".join(facts.sources)),
        ("env", " ".join(f"{name}={value}" for name, value in facts.env)),
        ("waivers", ", ".join(facts.waivers)),
        ("lock", facts.lock or "none"),
        ("stale", "; ".join(facts.stale)),
        ("lock age", "" if facts.lock_age is None else _age(facts.lock_age)),
        ("packages", str(len(facts.packages))),
        (
            "size",
            "" if facts.size is None else f"{output.size(facts.size)} in {output.count(facts.files or 0, 'file')}",
        ),
    ]
    return [[label, value] for label, value in rows if value]


def _age(seconds: float) -> str:
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return "just now"


def _size(value: int | None) -> str:
    return "-" if value is None else output.size(value)


def _count(value: int | None) -> str:
    return "-" if value is None else str(value)


@click.command(epilog="\b\nExamples:\n  envdsl graph office\n  envdsl graph --format dot | dot -Tsvg -o graph.svg")
@layer_arguments
@click.option(
    "--format",
    "style",
    type=click.Choice(["tree", "dot", "mermaid", "json"]),
    default="tree",
    show_default=True,
    help="dot is Graphviz's.",
)
@common
@looks
def graph(project: Project, layers: tuple[str, ...], style: str) -> None:
    """Show the derivation graph of layers."""
    from envdsl.app import inspect

    output.result(inspect.graph(project, layers, style))


@click.command("show-derivation", epilog="\b\nExample:\n  envdsl show-derivation office")
@click.argument("derivation", metavar="ID", shell_complete=complete_ids)
@common
@looks
def show_derivation(project: Project, derivation: str) -> None:
    """Print one derivation as JSON; ID is a layer's name, an id or key, or the beginning of one (as `graph` prints)."""
    from envdsl.app import inspect

    output.result(inspect.derivation(project, derivation))


@click.command(epilog='\b\nExample:\n  ls "$(envdsl path office)/site-packages"')
@click.argument("layer", shell_complete=complete_ids)
@common
@looks
def path(project: Project, layer: str) -> None:
    """Print the store path of LAYER, or of what an id or key or its beginning names; an error when it is not built."""
    from envdsl.app import inspect

    output.result(inspect.path(project, layer))


@click.command(epilog="\b\nExample:\n  envdsl ls --json")
@as_json
@common
@looks
def ls(project: Project, as_json: bool) -> None:
    """List the layers of the project, and those in the store that no declared layer stands for now."""
    from envdsl.app import inspect

    rows = inspect.listing(project)
    if as_json:
        output.result_json({"layers": [row.to_json() for row in rows]})
        return
    cells = [["layer", "kind", "python", "state", "id"]]
    cells += [[row.name or "-", row.kind, row.python, row.state, row.id or "-"] for row in rows]
    output.result(output.table(cells))

"""``envdsl why``, ``tree``, ``licenses``, ``search-import``, ``outdated``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common, complete_layers, layer_arguments, offline

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.lock.dependencies import Chain, DependencyGraph, Step

_layer = click.argument("layer", shell_complete=complete_layers)


@click.command(epilog="\b\nExamples:\n  envdsl why data pytz\n  envdsl why data numpy --all --json")
@_layer
@click.argument("package")
@click.option("--all", "everything", is_flag=True, help="Every chain, not the twenty shortest.")
@offline
@as_json
@common
def why(project: Project, layer: str, package: str, everything: bool, offline: bool, as_json: bool) -> None:
    """Every chain of requirements that brings PACKAGE into LAYER, across its base; the shortest first.

    Requirements are spelled as the wheels' metadata spell them, which is asked of an index where no wheel is here.
    """
    from envdsl.app import packages

    chains = packages.why(project, layer, package, offline=offline)
    shown = list(chains if everything else islice(chains, 20))
    if as_json:
        output.result_json({"package": package, "chains": [_chain_json(*item) for item in shown]})
        return
    for asked_by, chain in shown:
        output.result(f"{asked_by}: {' → '.join(_links(chain))}")
    if not everything and next(chains, None) is not None:
        output.message("there are more: --all")


def _links(chain: Chain) -> Iterator[str]:
    """``pandas>=2 (2.2.3) → pytz>=2020.1 (2025.2)``."""
    for step in chain:
        yield f"{step.requirement} ({step.node.version})"


def _chain_json(layer: str, chain: Chain) -> dict[str, Any]:
    return {"layer": layer, "steps": [_step_json(step) for step in chain]}


def _step_json(step: Step) -> dict[str, Any]:
    node = step.node
    return {"requirement": step.requirement, "name": node.name, "version": node.version, "layer": node.layer}


@click.command(epilog="\b\nExamples:\n  envdsl tree office\n  envdsl tree data --depth 2")
@_layer
@click.option("--depth", type=click.IntRange(min=1), help="Go no deeper than this.")
@offline
@as_json
@common
def tree(project: Project, layer: str, depth: int | None, offline: bool, as_json: bool) -> None:
    """What LAYER asks for, and what that requires. A package that was shown before has (*) after it."""
    from envdsl.app import packages

    graph = packages.graph_of(project, layer, offline=offline)
    name = project.layer(layer).name
    if as_json:
        output.result_json(
            {
                "layer": name,
                "roots": [_step_json(step) for step in graph.roots[name]],
                "packages": [
                    {
                        "name": node.name,
                        "version": node.version,
                        "layer": node.layer,
                        "requires": [_step_json(step) for step in graph.edges.get(node.name, ())],
                    }
                    for node in graph.nodes.values()
                ],
            }
        )
        return
    output.result(name)
    output.result("\n".join(_branches(graph, graph.roots[name], depth)))


def _branches(graph: DependencyGraph, steps: tuple[Step, ...], depth: int | None) -> Iterator[str]:
    seen: set[str] = set()

    def below(steps: tuple[Step, ...], lead: str, level: int) -> Iterator[str]:
        for number, step in enumerate(steps):
            last = number == len(steps) - 1
            following = graph.edges.get(step.node.name, ())
            known = step.node.name in seen and bool(following)
            seen.add(step.node.name)
            yield f"{lead}{'└── ' if last else '├── '}{step.node.name} {step.node.version}{_wanted(step)}" + (
                " (*)" if known else ""
            )
            if not known and (depth is None or level < depth):
                yield from below(following, lead + ("    " if last else "│   "), level + 1)

    yield from below(steps, "", 1)


def _wanted(step: Step) -> str:
    return "" if step.requirement == step.node.name else f"  [{step.requirement}]"


@click.command(epilog="\b\nExamples:\n  envdsl licenses\n  envdsl licenses office data --json")
@layer_arguments
@offline
@as_json
@common
def licenses(project: Project, layers: tuple[str, ...], offline: bool, as_json: bool) -> None:
    """The licence that each package of layers states (all without names).

    What a wheel says of itself is its author's claim. `envdsl catalog` decides which are wanted.
    """
    from envdsl.app import packages

    found = packages.licences(project, layers, offline=offline)
    if as_json:
        output.result_json(
            {
                "packages": [
                    {"name": item.name, "version": item.version, "licence": item.licence, "layers": list(item.layers)}
                    for item in found
                ]
            }
        )
        return
    rows = [[item.licence or "(none stated)", item.name, item.version] for item in found]
    output.result(output.table(sorted(rows, key=lambda row: (row[0].lower(), row[1:]))))


@click.command(epilog="\b\nExamples:\n  envdsl search-import PIL\n  envdsl search-import google.protobuf")
@click.argument("name")
@as_json
@common
def search_import(project: Project, name: str, as_json: bool) -> int:
    """Which distribution of the locked layers gives the import NAME, and in which layers. Exit status 1 where none."""
    from envdsl.app import packages

    found, unknown = packages.search_import(project, name)
    if as_json:
        output.result_json(
            {
                "import": name,
                "providers": [
                    {
                        "name": item.name,
                        "version": item.version,
                        "imports": list(item.imports),
                        "layers": list(item.layers),
                    }
                    for item in found
                ],
                "unknown": unknown,
            }
        )
    else:
        for item in found:
            output.result(f"{item.name} {item.version}\t{', '.join(item.layers)}\timport {', '.join(item.imports)}")
    if not found:
        among = " that could be looked at" if unknown else ""
        output.message(f"no locked layer has a distribution{among} that gives the import {name}")
    if unknown:
        output.message(f"{output.count(unknown, 'package')} could not be looked at: `envdsl fetch` gets the wheels")
    return 0 if found else 1


@click.command(epilog="\b\nExamples:\n  envdsl outdated\n  envdsl outdated office --json")
@layer_arguments
@as_json
@common
def outdated(project: Project, layers: tuple[str, ...], as_json: bool) -> None:
    """What the indexes have newer than the locks of layers (of all without names). Nothing is changed.

    Versions without wheels for all the platforms of a layer do not count, nor do yanked ones.
    """
    from envdsl.app import packages

    found = packages.outdated(project, layers)
    if as_json:
        output.result_json(
            {
                "outdated": [
                    {
                        "layer": item.layer,
                        "name": item.name,
                        "locked": item.locked,
                        "newest": item.newest,
                        "direct": item.direct,
                        "allowed": item.allowed,
                    }
                    for item in found
                ]
            }
        )
        return
    for item in found:
        remarks = ("" if item.direct else "  indirect") + ("" if item.allowed else "  kept away by the layer")
        output.result(f"{item.layer}\t{item.name}\t{item.locked}\t{item.newest}{remarks}")
    if not found:
        output.message("nothing is newer")

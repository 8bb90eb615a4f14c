"""A graph for people and programs: a tree of text, DOT, Mermaid, JSON. The same graph gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.graph.compile import Graph
from envdsl.graph.derivation import Bytecode, Derivation, Layer, SourceTree, Unpack, WheelFile
from envdsl.graph.output import output_path
from envdsl.model.digest import store_hash

_SHORT = 8  # characters of a store hash that a person compares


def render(graph: Graph, style: str) -> str:
    """``graph`` in one of :data:`STYLES`, without a line break at its end.

    Raises EnvdslError ``graph-unknown-format``.
    """
    if style not in STYLES:
        raise EnvdslError.of(
            "graph-unknown-format",
            f"no format `{style}` for a graph",
            hint=f"one of {', '.join(STYLES)}",
            exit_status=ExitStatus.USAGE,
        )
    return STYLES[style](graph)


def describe(derivation: Derivation) -> str:
    """One derivation as JSON: key, output path, canonical form, and its inputs with their keys and paths."""
    return json.dumps(
        {
            "key": derivation.key,
            "kind": derivation.kind,
            "label": label(derivation),
            "path": output_path(derivation),
            "canonical": json.loads(derivation.canonical()),
            "inputs": [
                {"key": item.key, "kind": item.kind, "label": label(item), "path": output_path(item)}
                for item in derivation.dependencies()
            ],
        },
        indent=2,
        ensure_ascii=False,
    )


def label(derivation: Derivation) -> str:
    """What a person calls a derivation: ``numpy 2.1.0``, a wheel's file name, a layer's id."""
    match derivation:
        case WheelFile():
            return derivation.filename
        case Unpack():
            return f"{derivation.name} {derivation.version}"
        case Bytecode():
            return f"{derivation.unpack.name} {derivation.unpack.version} for {derivation.python.tag}"
        case SourceTree():
            return derivation.path
        case Layer():
            return str(derivation.id)


def _tree(graph: Graph) -> str:
    """Layers with what stands on them and what is in them; a package with its wheel's hash and its bytecode."""
    names = _names(graph)
    above: dict[str | None, list[Layer]] = {}
    for layer in sorted(_layers(graph), key=lambda item: (names.get(item.key, ""), item.key)):
        above.setdefault(layer.base.key if layer.base else None, []).append(layer)
    lines: list[str] = []
    for layer in above.get(None, []):
        lines += _branch(layer, names, above, "", "")
    lines += [f"{name}  (not for {graph.platform})" for name in graph.skipped]
    return "\n".join(lines)


def _branch(
    layer: Layer, names: Mapping[str, str], above: Mapping[str | None, list[Layer]], first: str, rest: str
) -> list[str]:
    title = f"{names.get(layer.key, '-')}  {layer.layer_kind} {_short(layer)}  {layer.python.tag} {layer.platform}"
    compiled = {item.unpack.key for item in layer.bytecode}
    leaves = [
        f"{label(item)}  {_short(item)}" + ("" if item.key in compiled else "  (no bytecode)")
        for item in sorted(layer.unpacks, key=lambda item: (item.name, item.version))
    ]
    leaves += [f"{label(item)}  source {_short(item)}" for item in layer.sources]
    lines = [f"{first}{title}"]
    children = above.get(layer.key, [])
    for number, leaf in enumerate(leaves, 1):
        last = number == len(leaves) and not children
        lines.append(f"{rest}{'└── ' if last else '├── '}{leaf}")
    for number, child in enumerate(children, 1):
        last = number == len(children)
        lines += _branch(
            child, names, above, f"{rest}{'└── ' if last else '├── '}", f"{rest}{'    ' if last else '│   '}"
        )
    return lines


def _dot(graph: Graph) -> str:
    names = _names(graph)
    lines = ["digraph envdsl {", '  rankdir="LR";', '  node [shape="box", fontname="monospace"];']
    lines += [f"  {_node(item)} [label={_quoted(_title(item, names))}];" for item in graph.derivations.values()]
    for item in graph.derivations.values():
        lines += [f"  {_node(item)} -> {_node(dependency)};" for dependency in item.dependencies()]
    return "\n".join([*lines, "}"])


def _mermaid(graph: Graph) -> str:
    names = _names(graph)
    lines = ["flowchart LR"]
    for item in graph.derivations.values():
        text = _title(item, names).replace('"', "#quot;").replace("\n", "<br/>")
        lines.append(f'  {_node(item)}["{text}"]')
    for item in graph.derivations.values():
        lines += [f"  {_node(item)} --> {_node(dependency)}" for dependency in item.dependencies()]
    return "\n".join(lines)


def _json(graph: Graph) -> str:
    layers = {name: {"id": str(layer.id), "key": layer.key} for name, layer in graph.layers.items()}
    derivations: list[dict[str, Any]] = [
        {
            "key": item.key,
            "kind": item.kind,
            "label": label(item),
            "path": output_path(item),
            "inputs": [dependency.key for dependency in item.dependencies()],
        }
        for item in graph.derivations.values()
    ]
    return json.dumps(
        {
            "platform": str(graph.platform),
            "layers": layers,
            "skipped": list(graph.skipped),
            "derivations": derivations,
        },
        indent=2,
        ensure_ascii=False,
    )


STYLES: Mapping[str, Callable[[Graph], str]] = {"tree": _tree, "dot": _dot, "mermaid": _mermaid, "json": _json}


def _layers(graph: Graph) -> Iterable[Layer]:
    return [item for item in graph.derivations.values() if isinstance(item, Layer)]


def _names(graph: Graph) -> dict[str, str]:
    """The declared names of each layer by key."""
    names: dict[str, list[str]] = {}
    for name, layer in graph.layers.items():
        names.setdefault(layer.key, []).append(name)
    return {key: ", ".join(sorted(found)) for key, found in names.items()}


def _title(derivation: Derivation, names: Mapping[str, str]) -> str:
    if isinstance(derivation, Layer):
        return f"{names.get(derivation.key, '-')}\n{derivation.layer_kind} {_short(derivation)}"
    return f"{label(derivation)}\n{derivation.kind} {_short(derivation)}"


def _short(derivation: Derivation) -> str:
    return store_hash(derivation.key)[:_SHORT]


def _node(derivation: Derivation) -> str:
    return f"n{derivation.key[:16]}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

from __future__ import annotations

import json

import pytest

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.graph.render import STYLES, describe, render
from tests.keys.project import compiled, load


@pytest.fixture
def graph():  # type: ignore[no-untyped-def]
    project = load()
    project["platform"] = "manylinux_2_36_aarch64"
    return compiled(project)


TREE = """\
office  base 386skr25  cp312 manylinux_2_28_aarch64
├── numpy 2.1.0  42nx1gkr
├── only-arm 1  1543vya0
├── openpyxl 3.1.5  ybn68v8h
├── house-style  source vb8nj5ad
├── lib  source sqjxlfjl
└── viz  x 531nwzhf  cp312 manylinux_2_28_aarch64
    └── seaborn 0.13.2  zvv8ag7d
empty  (not for manylinux_2_36_aarch64)
legacy  (not for manylinux_2_36_aarch64)
odd  (not for manylinux_2_36_aarch64)
"""


def test_a_tree_shows_layers_what_stands_on_them_and_what_is_in_them(graph) -> None:  # type: ignore[no-untyped-def]
    """Issue 2.12: envdsl graph."""
    assert render(graph, "tree") == TREE.rstrip("\n")


def test_json_has_every_derivation_with_its_inputs(graph) -> None:  # type: ignore[no-untyped-def]
    """Issue 2.12: envdsl graph --format json."""
    shown = json.loads(render(graph, "json"))
    assert shown["layers"] == {name: {"id": str(layer.id), "key": layer.key} for name, layer in graph.layers.items()}
    assert shown["skipped"] == ["empty", "legacy", "odd"]
    assert [item["key"] for item in shown["derivations"]] == list(graph.derivations)
    by_key = {item["key"]: item for item in shown["derivations"]}
    office = by_key[graph.layers["office"].key]
    assert {by_key[key]["label"] for key in office["inputs"]} == {
        "numpy 2.1.0", "numpy 2.1.0 for cp312", "openpyxl 3.1.5", "openpyxl 3.1.5 for cp312",
        "only-arm 1", "only-arm 1 for cp312", "house-style", "lib",
    }  # fmt: skip


def test_dot_and_mermaid_have_a_node_for_each_derivation_and_an_edge_for_each_input(graph) -> None:  # type: ignore[no-untyped-def]
    """Issue 2.12: envdsl graph --format dot and mermaid."""
    edges = sum(len(item.dependencies()) for item in graph.derivations.values())
    dot, mermaid = render(graph, "dot").splitlines(), render(graph, "mermaid").splitlines()
    assert (dot[0], dot[-1], mermaid[0]) == ("digraph envdsl {", "}", "flowchart LR")
    assert sum("[label=" in line for line in dot) == sum('["' in line for line in mermaid) == len(graph.derivations)
    assert sum(" -> " in line for line in dot) == sum(" --> " in line for line in mermaid) == edges
    assert any(r'[label="only-arm 1 for cp312\nbytecode ' in line for line in dot)
    assert any('["office<br/>base ' in line for line in mermaid)


@pytest.mark.parametrize("style", STYLES)
def test_the_same_graph_is_shown_by_the_same_bytes(style: str) -> None:
    project = load()
    for part in ("layers", "locks", "sources"):
        project[part] = dict(reversed(project[part].items()))
    assert render(compiled(project), style) == render(compiled(load()), style)


def test_a_derivation_is_shown_with_its_output_and_its_inputs_resolved(graph) -> None:  # type: ignore[no-untyped-def]
    """Issue 2.12: envdsl show-derivation."""
    viz = graph.layers["viz"]
    shown = json.loads(describe(viz))
    assert (shown["key"], shown["kind"], shown["path"]) == (viz.key, "layer", f"layers/{viz.id}")
    assert shown["canonical"] == json.loads(viz.canonical())
    assert sorted((item["kind"], item["label"]) for item in shown["inputs"]) == [
        ("bytecode", "seaborn 0.13.2 for cp312"),
        ("layer", str(graph.layers["office"].id)),
        ("unpack", "seaborn 0.13.2"),
    ]
    assert {item["key"] for item in shown["inputs"]} == {item.key for item in viz.dependencies()}


def test_an_unknown_format_is_refused(graph) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(EnvdslError) as caught:
        render(graph, "svg")
    assert (caught.value.code, caught.value.exit_status) == ("graph-unknown-format", ExitStatus.USAGE)

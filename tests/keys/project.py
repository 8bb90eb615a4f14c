"""A fixed project as the rooms before ``graph`` would hand it over; its keys stand in ``golden.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envdsl.evaluate.spec import LayerSpec, ProjectPath, Spec, Waivers
from envdsl.graph.compile import Graph, compile_graph
from envdsl.lock.lock import Lock, LockedPackage, LockedWheel
from envdsl.model.names import LayerKind, Platform, PythonVersion

HERE = Path(__file__).parent


def load() -> dict[str, Any]:
    return json.loads((HERE / "project.json").read_text("utf-8"))  # type: ignore[no-any-return]


def layer_spec(name: str, layer: dict[str, Any]) -> LayerSpec:
    allow = layer.get("allow", {})
    return LayerSpec(
        name=name,
        kind=LayerKind(layer["kind"]),
        base=layer.get("base"),
        python=PythonVersion.parse(layer["python"]),
        platforms=tuple(map(Platform.parse, layer["platforms"])),
        sources=tuple(map(ProjectPath, layer.get("sources", ()))),
        env=tuple(layer.get("env", {}).items()),
        allow=Waivers(tuple(allow.get("record-mismatch", ())), tuple(allow.get("collisions", ()))),
        bytecode=layer.get("bytecode", True),
    )


def lock_of(spec: LayerSpec, packages: list[dict[str, Any]]) -> Lock:
    locked = tuple(
        LockedPackage(
            package["name"],
            package["version"],
            tuple((Platform.parse(tag), LockedWheel(*wheel)) for tag, wheel in package["wheels"].items()),
        )
        for package in packages
    )
    return Lock(spec.name, spec.kind, spec.python, spec.platforms, "inputs", None, locked, "digest")


def compiled(project: dict[str, Any]) -> Graph:
    specs = {name: layer_spec(name, layer) for name, layer in project["layers"].items()}
    locks = {name: lock_of(specs[name], packages) for name, packages in project["locks"].items()}
    return compile_graph(Spec(specs, {}), locks, Platform.parse(project["platform"]), project["sources"])

"""Probes: the imports of ``probe``, tried in the sandbox once a layer stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from envdsl.app import sessions
from envdsl.app.files import write_file
from envdsl.errors import EnvdslError
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex, store_hash
from envdsl.model.names import PythonVersion

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.evaluate.spec import LayerSpec
    from envdsl.graph.compile import Graph
    from envdsl.realise.python import Interpreter

_TIMEOUT = 300.0  # seconds; a first import of everything on a cold disk is slow


def probe(
    project: Project, layers: Sequence[LayerSpec], graph: Graph, interpreters: Mapping[PythonVersion, Interpreter]
) -> None:
    """Try the imports of each layer that has any, unless they are known to have worked.

    What worked is written down in the store's cache by layer, interpreter and imports. Raises
    :class:`EnvdslError` with an ``app-probe-failed`` for each layer that failed, with its traceback.
    """
    failed: list[EnvdslError] = []
    wanted = [layer for layer in layers if layer.probe and layer.name in graph.layers]
    with project.reporter.task("Probing", total=len(wanted)) as task:
        for layer in wanted:
            interpreter = interpreters[layer.python]
            tried = {"layer": graph.layers[layer.name].key, "python": interpreter.key, "imports": list(layer.probe)}
            mark = project.store.layout.cache / "probes" / store_hash(blake3_hex(canonical_json(tried)))
            if not mark.exists():
                task.describe(layer.name)
                try:
                    _try(project, layer)
                except EnvdslError as error:
                    failed.append(error)
                else:
                    write_file(mark, b"")
            task.advance()
    if failed:
        raise EnvdslError.all(failed)


def _try(project: Project, layer: LayerSpec) -> None:
    names = [layer.base, layer.name] if layer.base is not None else [layer.name]
    statements = "".join(f"import {module}\n" for module in layer.probe)
    program = f"import sys\nsys.dont_write_bytecode = True\n{statements}"
    outcome = sessions.run_once(project, names, ["python3", "-c", program], timeout=_TIMEOUT)
    if outcome.status == 0:
        return
    output = outcome.stderr.decode(errors="replace").strip()
    why = f"no answer within {_TIMEOUT:.0f} s" if outcome.timed_out else f"exit status {outcome.status}"
    raise EnvdslError.of(
        "app-probe-failed",
        f"the probe of layer `{layer.name}` failed ({why}):\n{output}",
        span=layer.span,
        hint="the layer is built; correct its packages, or the imports in `probe`",
        details={"layer": layer.name, "imports": list(layer.probe), "status": outcome.status},
    )

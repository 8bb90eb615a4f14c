"""A project's layer files to its specification: the room's main entrance.

Files are read and parsed with all that they import (modules.py), their declarations evaluated
(declarations.py), and each attribute of each layer checked (validate.py). Whatever is wrong is gathered on the
way (findings.py) and raised at the end, in order of place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envdsl.evaluate.declarations import Declarations
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import Files
from envdsl.evaluate.findings import Findings
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.modules import load
from envdsl.evaluate.process import evaluating
from envdsl.evaluate.reader import ProjectReader
from envdsl.evaluate.spec import LayerSpec, Spec
from envdsl.evaluate.validate import validate
from envdsl.model.names import DEFAULT_PLATFORMS, Platform


def evaluate(
    files: Sequence[str],
    reader: ProjectReader,
    *,
    limits: Limits | None = None,
    default_platforms: Sequence[Platform] = DEFAULT_PLATFORMS,
    trace: Callable[[str], None] = lambda message: None,
) -> Spec:
    """What the layer files declare.

    ``files`` are POSIX paths relative to the project's root, which ``reader`` reads from; ``default_platforms``
    are those of a base or iso layer that names none; ``trace`` receives what the builtin of that name says.
    The same files give the same value: nothing else is looked at. Raises EnvdslError with all that is wrong,
    in order of place.
    """
    limits = limits or Limits()
    recorded = Files(reader, limits)
    findings = Findings()
    machine = Machine(limits, recorded, trace)
    layers: dict[str, LayerSpec] = {}
    try:
        with evaluating(limits):
            modules = load(files, recorded, findings)
            declarations = Declarations(machine, findings)
            for module in modules:
                declarations.add(module)
            layers = validate(declarations.layers, machine, findings, default_platforms, complete=declarations.complete)
    except EvaluationError as failure:
        findings.failed(failure)
    findings.raise_if_any()
    return Spec(layers, dict(sorted(recorded.inputs.items())))

"""A project's layer files to its specification: the room's main entrance.

Files are read and parsed with all that they import (modules.py), their declarations evaluated
(declarations.py), and each attribute of each layer checked (validate.py). Whatever is wrong is gathered on the
way (findings.py) and raised at the end, in order of place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from envdsl.errors import EnvdslError
from envdsl.evaluate.exploration import Exploration
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.reader import ProjectReader
from envdsl.evaluate.spec import Spec
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
    explored = Exploration(files, reader, limits=limits, default_platforms=default_platforms, trace=trace)
    if explored.diagnostics:
        raise EnvdslError(*explored.diagnostics)
    return Spec(explored.specs, explored.inputs)

"""One expression by itself: what ``envdsl eval`` prints."""

from __future__ import annotations

from collections.abc import Callable

from envdsl.errors import EnvdslError
from envdsl.evaluate.builtins import GLOBALS
from envdsl.evaluate.builtins.control import to_json
from envdsl.evaluate.failure import EvaluationError
from envdsl.evaluate.files import Files
from envdsl.evaluate.interpreter import Compiler
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.machine import Machine
from envdsl.evaluate.process import evaluating
from envdsl.evaluate.reader import NoProject, ProjectReader
from envdsl.evaluate.scope import Scope
from envdsl.evaluate.values import Value
from envdsl.model.span import Source
from envdsl.syntax.parser import parse_expression


def evaluate_expression(
    source: Source | str,
    reader: ProjectReader | None = None,
    *,
    directory: str = "",
    limits: Limits | None = None,
    trace: Callable[[str], None] = lambda message: None,
) -> Value:
    """The value of an expression, evaluated strictly (through all lists and sets).

    ``directory``, relative to the root of the project that ``reader`` reads, is where path literals start.
    ``trace`` receives what the builtin of that name says. Raises EnvdslError, and nothing else.
    """
    return _evaluate(Machine.deep, source, reader, directory, limits, trace)


def evaluate_json(
    source: Source | str,
    reader: ProjectReader | None = None,
    *,
    directory: str = "",
    limits: Limits | None = None,
    trace: Callable[[str], None] = lambda message: None,
) -> str:
    """What ``toJSON`` makes of an expression: :func:`evaluate_expression`, but sets with ``__toString`` are strings."""
    return str(_evaluate(to_json, source, reader, directory, limits, trace))


def _evaluate(
    finish: Callable[[Machine, Value], Value],
    source: Source | str,
    reader: ProjectReader | None,
    directory: str,
    limits: Limits | None,
    trace: Callable[[str], None],
) -> Value:
    if isinstance(source, str):
        source = Source("<expr>", source)
    limits = limits or Limits()
    tree = parse_expression(source)
    machine = Machine(limits, Files(reader or NoProject(), limits), trace)
    findings: list[EvaluationError] = []
    try:
        with evaluating(limits):
            code = Compiler(machine, directory, findings.append).expression(tree, Scope((), constants=GLOBALS))
            if not findings:
                return finish(machine, code([None]))
    except EvaluationError as failure:
        failure.release()
        findings.append(failure)
    raise EnvdslError(*(failure.diagnostic(tree.span) for failure in findings)) from None

"""The registry of builtins: each with its implementation and its documentation, in one place.

The reference in docs/spec.md is made from it (``python -m envdsl.evaluate.reference``), the examples are run
by a test, and a prompt can show the same texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from envdsl.evaluate.values import Builtin, Value

Implementation = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Documentation:
    """``signature`` is the call (``map f list``), ``example`` an expression and ``result`` what it prints as."""

    signature: str
    summary: str
    example: str
    result: str

    @property
    def name(self) -> str:
        return self.signature.split()[0]


@dataclass(slots=True)
class Topic:
    """The builtins of one module: a section of the reference."""

    title: str
    functions: dict[str, tuple[Builtin, Documentation]] = field(default_factory=dict)

    def builtin(self, signature: str, summary: str, example: str, result: str) -> Callable[[Implementation], Any]:
        """Registers ``function(machine, *arguments)`` under the first word of ``signature``."""
        documentation = Documentation(signature, summary, example, result)

        def register(function: Implementation) -> Implementation:
            arity = len(signature.split()) - 1
            self.functions[documentation.name] = (Builtin(documentation.name, arity, function), documentation)
            return function

        return register

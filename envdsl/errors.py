"""The one root error of envdsl, as data.

A room raises :class:`EnvdslError`; only the faces (command line, web, editor) render it. A
diagnostic says *what* went wrong (``message``), *where* (``span``), *how we got there* (``trail``)
and *what to do next* (``hint``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from envdsl.model.span import Span


class ExitStatus(IntEnum):
    """Exit statuses of every command; they are part of the interface."""

    OK = 0
    FAILED = 1  # the build or check failed
    USAGE = 2  # the command line or the configuration is wrong
    REFUSED = 3  # refused by policy
    ENVIRONMENT = 4  # no bwrap, disk full, network unreachable, no interpreter
    PENDING = 75  # not decided or not built yet: ask again later (EX_TEMPFAIL of sysexits.h); no error has it


@dataclass(frozen=True, slots=True)
class Note:
    """One step of the trail that led to a diagnostic: "while evaluating ..."."""

    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding.

    ``code`` is stable, kebab-case and prefixed by its room (``syntax-unexpected-token``);
    ``severity`` is ``"error"`` or ``"warning"``; ``details`` holds JSON-able facts for machines.
    """

    code: str
    message: str
    span: Span | None = None
    trail: tuple[Note, ...] = ()
    hint: str | None = None
    severity: str = "error"
    exit_status: ExitStatus = ExitStatus.FAILED
    details: Mapping[str, Any] = field(default_factory=dict)


class EnvdslError(Exception):
    """Raised by every room; carries one diagnostic or more, in the order to report them."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("EnvdslError needs a diagnostic")
        super().__init__(diagnostics[0].message)
        self.diagnostics = diagnostics

    @classmethod
    def of(cls, code: str, message: str, **facts: Any) -> EnvdslError:
        """An error of a single :class:`Diagnostic`; ``facts`` are its other fields."""
        return cls(Diagnostic(code, message, **facts))

    @classmethod
    def all(cls, errors: Iterable[EnvdslError]) -> EnvdslError:
        """One error that reports everything that ``errors`` (at least one) report."""
        return cls(*(diagnostic for error in errors for diagnostic in error.diagnostics))

    @property
    def code(self) -> str:
        return self.diagnostics[0].code

    @property
    def exit_status(self) -> ExitStatus:
        """The gravest status of all diagnostics (environment over policy over usage over failed)."""
        return max(diagnostic.exit_status for diagnostic in self.diagnostics)

"""What can be wrong with a form itself."""

from __future__ import annotations

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus


def missing(field: str) -> Diagnostic:
    return Diagnostic("web-form", f"`{field}` is empty", hint="choose a file first", exit_status=ExitStatus.USAGE)


def not_a_number(field: str, least: int, most: int) -> EnvdslError:
    return EnvdslError.of(
        "web-form", f"`{field}` must be a whole number from {least} to {most}", exit_status=ExitStatus.USAGE
    )

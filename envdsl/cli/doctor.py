"""``envdsl doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli import output
from envdsl.cli.options import as_json, common
from envdsl.errors import ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project

_MARKS = {"ok": "ok", "warning": "warning", "failed": "FAILED"}


@click.command(epilog="\b\nExample:\n  envdsl doctor --json")
@as_json
@common
def doctor(project: Project, as_json: bool) -> int:
    """Find out what this machine can do: by running it, not by reading versions.

    Exit status 4 when something that sandboxes need does not work; warnings alone leave it at 0.
    """
    from envdsl.app.doctor import examine

    findings = examine(project)
    if as_json:
        output.result_json(
            {
                "findings": [
                    {
                        "check": finding.check,
                        "status": finding.status.value,
                        "message": finding.message,
                        "remedy": finding.remedy or None,
                        "details": dict(finding.details),
                    }
                    for finding in findings
                ]
            }
        )
    else:
        for finding in findings:
            output.result(f"{_MARKS[finding.status]:<8} {finding.check}: {finding.message}")
            if finding.remedy and finding.status != "ok":
                output.result(f"         {finding.remedy}")
    return ExitStatus.ENVIRONMENT if any(finding.status == "failed" for finding in findings) else ExitStatus.OK

"""Shell completion of what the control plane holds: requests and tokens.

A store that nobody has asked for anything in has no database, and completing makes none. Whatever goes wrong completes
nothing: a shell has no place for an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click

    from envdsl.app.control.plane import ControlPlane
    from envdsl.policy.access import Principal
    from envdsl.state.records import RequestRecord


def complete_requests(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of requests, of the session where the command line names one; the newest first, with what they are."""
    return [_of_request(record) for record in _requests(ctx) if record.id.startswith(incomplete)]


def complete_open_requests(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Those that have not ended."""
    found = (record for record in _requests(ctx) if not record.status.ended)
    return [_of_request(record) for record in found if record.id.startswith(incomplete)]


def complete_tokens(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The ids of tokens that are valid."""
    from envdsl.errors import EnvdslError

    with suppress(EnvdslError, OSError, ImportError), _opened(ctx) as (plane, principal):
        from envdsl.app.control import tokens

        return [
            CompletionItem(record.id, help=f"{record.role} {record.name}")
            for record in tokens.listing(plane, principal)
            if record.id.startswith(incomplete) and tokens.status(plane, record) == "valid"
        ]
    return []


def _requests(ctx: click.Context) -> tuple[RequestRecord, ...]:
    from envdsl.errors import EnvdslError

    with suppress(EnvdslError, OSError, ImportError), _opened(ctx) as (plane, principal):
        from envdsl.app.control import asking

        return asking.listing(plane, principal, session=ctx.params.get("session"))
    return ()


def _of_request(record: RequestRecord) -> CompletionItem:
    asked = [*record.requirements, *(str(upload["filename"]) for upload in record.uploads)]
    return CompletionItem(record.id, help=f"{record.session}: {record.status.value}: {' '.join(asked)}")


@contextmanager
def _opened(ctx: click.Context) -> Iterator[tuple[ControlPlane, Principal]]:
    """Raises FileNotFoundError where nothing is recorded yet."""
    from envdsl.app.project import Project
    from envdsl.cli import control
    from envdsl.reporter import Reporter

    directory = ctx.params.get("directory") or Path.cwd()
    project = Project.find(directory, store=ctx.params.get("store"), reporter=Reporter())
    try:
        if not control.exists(project):
            raise FileNotFoundError("there is no database yet")
        with control.opened(project) as found:
            yield found
    finally:
        project.close()

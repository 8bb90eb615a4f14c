"""``envdsl serve``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envdsl.cli import output
from envdsl.cli.options import common

if TYPE_CHECKING:
    from envdsl.app.project import Project
    from envdsl.web.listening import Address


def _address(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Address | None:
    if value is None:
        return None
    from envdsl.web.listening import Address

    try:
        return Address.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(
    epilog="\b\nExamples:\n  envdsl serve\n  curl --unix-socket store/envdsl.sock http://envdsl/api/v1/me\n"
    "  envdsl serve --listen 127.0.0.1:8750 --workers 2\n"
    "  envdsl serve --listen 10.0.0.5:8750 --behind-proxy 10.0.0.2 --host envs.example"
)
@click.option(
    "--socket",
    "unix",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The Unix socket.  [default: envdsl.sock in the store]",
)
@click.option("--listen", "tcp", callback=_address, metavar="HOST:PORT", help="Listen on TCP too, for tokens alone.")
@click.option(
    "--behind-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="The address of a reverse proxy that speaks TLS; needed for a --listen that other machines reach.",
)
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A further name that the service is called by.")
@click.option("--workers", type=click.IntRange(min=0), default=1, show_default=True, help="Builds at a time.")
@click.option("--grace", type=click.FloatRange(min=1), default=30, show_default=True, help="Seconds to stop in.")
@common
def serve(
    project: Project,
    unix: Path | None,
    tcp: Address | None,
    proxies: tuple[str, ...],
    hosts: tuple[str, ...],
    workers: int,
    grace: float,
) -> None:
    """Serve the HTTP API, the MCP endpoint and the admin page, and work on requests.

    Without any option it listens on a Unix socket in the store, where the operating system says who asks. On TCP,
    tokens do (`envdsl token create`). It logs to stderr, one JSON object a line. docs/service.md tells the rest.
    """
    from envdsl.cli.control import extra

    with extra("web", "HTTP is served by uvicorn and starlette"):
        import envdsl.web.serving as serving
    from envdsl.app.control.governing import governing
    from envdsl.app.control.plane import ControlPlane
    from envdsl.web import listening, logs
    from envdsl.web.settings import Settings

    logs.configure(verbose=output.is_verbose())
    project.reporter = logs.LogReporter()  # nothing but JSON on stderr
    project = governing(project)
    settings = Settings()
    chosen: dict[str, Any] = {
        "hosts": settings.hosts | {name.lower() for name in hosts},
        "https": bool(proxies),
        "workers": workers,
        "grace": grace,
    }
    with ControlPlane.open(project) as plane:
        place = unix or project.store.layout.root / listening.SOCKET_NAME
        serving.serve(plane, unix=place, tcp=tcp, proxies=proxies, settings=Settings(**chosen))

"""``envdsl mcp``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envdsl.cli.options import common, complete_sessions

if TYPE_CHECKING:
    from envdsl.app.project import Project


@click.command(
    epilog="\b\nExamples, by hand and in an MCP client's configuration:\n  envdsl mcp report-7\n"
    '  {"mcpServers": {"python": {"command": "envdsl", "args": ["mcp", "report-7", "--project", "/srv/project"]}}}'
)
@click.argument("session", shell_complete=complete_sessions)
@common
def mcp(project: Project, session: str) -> None:
    """Serve the tool python_env for SESSION over stdio (Model Context Protocol).

    The client that starts this runs on the host, beside the agent; the sandbox itself needs no connection. Requests are
    decided and built by `envdsl worker` or `envdsl serve`, or in this process where neither runs.
    """
    from envdsl.cli.control import extra, opened

    with opened(project) as (plane, _):
        from envdsl.app.control.inprocess import working

        with extra("mcp", "the tool is served by the SDK of the protocol"):
            from envdsl.mcp import server
        agent = plane.agent_of(session)
        with working(plane):
            server.run_stdio(plane, agent)

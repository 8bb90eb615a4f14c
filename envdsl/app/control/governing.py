"""Whose catalog decides in a store: that of the project whose layers were built into it.

Commands that ask and decide are started anywhere: a client of MCP starts its servers in the workspace, where the agent
may write whatever it likes, a ``layers.d/catalog.toml`` that allows everything among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project


def governing(project: Project) -> Project:
    """``project`` where layers of it were built into its store; else the one project of which that is so.

    Raises EnvdslError ``app-other-project`` where there are several.
    """
    from envdsl.app.project import Project
    from envdsl.store import roots
    from envdsl.store.layout import Layout

    store = project.config.store
    known = roots.projects(Layout(store))
    mine = project.config.root.resolve()
    if not known or mine in known:
        return project
    if len(known) > 1:
        raise EnvdslError.of(
            "app-other-project",
            f"no layers of {mine} were built into {store}, so its catalog decides nothing there",
            hint=f"name the project that is meant: --project {' or --project '.join(map(str, known))}",
            exit_status=ExitStatus.USAGE,
        )
    if not known[0].is_dir():
        raise EnvdslError.of(
            "app-other-project",
            f"the layers of {store} were built by the project {known[0]}, which is not there",
            hint="`envdsl build` in the place where that project is now",
            exit_status=ExitStatus.ENVIRONMENT,
        )
    project.reporter.note(f"the catalog and the settings are those of {known[0]}, whose layers are in {store}")
    return Project.find(known[0], store=store, reporter=project.reporter)

"""What commands on requests and bindings share: the open control plane, and who is calling."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from envdsl.cli.options import common
from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.control.plane import ControlPlane
    from envdsl.app.project import Project
    from envdsl.policy.access import Principal

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def opened(project: Project) -> Iterator[tuple[ControlPlane, Principal]]:
    """The control plane of ``project``, and the user of this process as its principal.

    Raises EnvdslError ``cli-extra-missing`` where envdsl was installed without it.
    """
    with extra("web", "requests are kept in a database"):
        from envdsl.app.control.governing import governing
        from envdsl.app.control.plane import ControlPlane
    with ControlPlane.open(governing(project)) as plane:
        yield plane, plane.principal_of_user(os.geteuid())


@contextmanager
def extra(name: str, why: str) -> Iterator[None]:
    """Imports of the block need the extra ``name`` of envdsl; ``why`` is said where it is not installed.

    Raises EnvdslError ``cli-extra-missing``.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("envdsl"):
            raise
        raise EnvdslError.of(
            "cli-extra-missing",
            f"{why}, and {error.name} is not installed",
            hint=f"install envdsl with its extra: envdsl[{name}]",
            exit_status=ExitStatus.ENVIRONMENT,
        ) from error


def controlled(function: F) -> Callable[..., Any]:
    """The options of all commands, and ``function`` called with the control plane and the caller first."""

    @common
    @functools.wraps(function)
    def wrapper(project: Project, *args: Any, **kwargs: Any) -> Any:
        with opened(project) as (plane, principal):
            return function(plane, principal, *args, **kwargs)

    return wrapper


def exists(project: Project) -> bool:
    """Whether anybody has used the control plane of this store, or configured one: without, nothing is recorded."""
    config = project.config
    return config.service.database is not None or (config.store / "state.db").is_file()

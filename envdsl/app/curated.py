"""The curated layers that travel with envdsl, for a user who is in no project."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from envdsl import config as configuration
from envdsl.errors import EnvdslError, ExitStatus

if TYPE_CHECKING:
    from envdsl.app.project import Project

DEFAULT_BASE = "office"


def refuse_curated(project: Project) -> None:
    """Raise EnvdslError ``app-no-project`` where a command would write into the layers that travel with envdsl."""
    if project.is_curated:
        raise EnvdslError.of(
            "app-no-project",
            "there is no project here, and the layers that travel with envdsl are nobody's to change",
            hint="`envdsl init` begins a project here; --project names one elsewhere",
            exit_status=ExitStatus.USAGE,
        )


def curated(store: Path | None) -> configuration.Config:
    """The configuration of the curated layers.

    They are read from the package (the checkout's ``layers.d`` in a development install); the
    environment root is then the user's own (``$XDG_DATA_HOME/envdsl/store``), unless ``store`` or
    ``ENVDSL_STORE`` says otherwise.
    """
    package = Path(str(resources.files("envdsl")))
    root = package if (package / configuration.LAYERS_DIRECTORY).is_dir() else package.parent
    if store is None and not os.environ.get(configuration.STORE_VARIABLE):
        data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
        store = Path(data).expanduser() / "envdsl" / "store"
    return replace(configuration.load(root, store=store), default_base=DEFAULT_BASE)

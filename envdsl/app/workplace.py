"""The project that a command writes into: where there is none yet, the directory becomes one."""

from __future__ import annotations

from pathlib import Path

from envdsl import config as configuration
from envdsl.app.project import Project
from envdsl.reporter import Reporter


def workplace(directory: Path, *, store: Path | None, reporter: Reporter) -> Project:
    """The project that ``directory`` lies in, or one that begins there; never the curated layers, which are nobody's
    to write into."""
    start = directory.absolute()
    return Project(configuration.load(configuration.find_root(start) or start, store=store), reporter)

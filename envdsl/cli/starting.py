"""``envdsl init`` and ``envdsl tutorial``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from envdsl.cli import output


@click.command(
    epilog="\b\nExamples:\n  envdsl init && envdsl ensure\n  envdsl init --from requirements.txt\n"
    "  envdsl init ../service --from ../service/pyproject.toml --python 3.12\n  envdsl init --from environment"
)
@click.argument("directory", required=False, type=click.Path(file_okay=False, path_type=Path), metavar="[DIRECTORY]")
@click.option(
    "--from",
    "source",
    metavar="SOURCE",
    help="A requirements file or pyproject.toml to read packages from, a virtual environment's directory, or "
    "`environment` for the active one.",
)
@click.option("--name", help="What to call the layer.  [default: the directory's name]")
@click.option("--python", "version", help="The feature release, 3.12.  [default: that of this command]")
@click.option("--offline", is_flag=True, help="Use no network (for a virtual environment's versions).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init(
    directory: Path | None, source: str | None, name: str | None, version: str | None, offline: bool, as_json: bool
) -> None:
    """Make DIRECTORY (this one by default) a project that locks and builds as it stands.

    A requirements file or pyproject.toml stays the place where packages are named: the layer reads it. Of a virtual
    environment the very versions are taken over, with their lock.
    """
    from envdsl.app import interpreters, starting
    from envdsl.model.names import PythonVersion

    output.configure(quiet=False, verbose=False, as_json=as_json)
    root = (directory or Path.cwd()).absolute()
    chosen = interpreters.parse(version) if version else PythonVersion(sys.version_info[1])
    layer = name or _layer_name(root.name)
    place = (
        None if source is None else starting.environment_of(directory=root) if source == "environment" else Path(source)
    )
    if place is not None and (place / "pyvenv.cfg").is_file():
        files, layer = _of_environment(root, place, layer, chosen if version else None, offline=offline)
    else:
        started = starting.start(root, name=layer, python=chosen, source=place)
        files = started.files
    if as_json:
        output.result_json({"directory": str(root), "layer": layer, "files": list(files)})
        return
    for path in files:
        output.result(f"created\t{path}")
    output.message("`envdsl ensure` locks and builds it; `envdsl tutorial` shows the rest")


def _layer_name(text: str) -> str:
    import re

    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "app"


def _of_environment(
    root: Path, place: Path, name: str, python: object, *, offline: bool
) -> tuple[tuple[str, ...], str]:
    from envdsl.app.imports import take
    from envdsl.app.imports.found import Target
    from envdsl.app.imports.venv import read_venv
    from envdsl.app.workplace import workplace
    from envdsl.cli.progress import reporter
    from envdsl.model.names import PythonVersion

    assert python is None or isinstance(python, PythonVersion)
    root.mkdir(parents=True, exist_ok=True)
    home = workplace(root, store=None, reporter=reporter())
    try:
        platforms = take.default_platforms(home)
        done = take.take(home, read_venv(place, Target(python, platforms)), name, platforms, offline=offline)
    finally:
        home.close()
    return (done.layer, done.lock), done.name


@click.command(epilog="\b\nExamples:\n  envdsl tutorial\n  envdsl tutorial --yes --keep ./tour")
@click.option("--yes", "-y", is_flag=True, help="Go on without waiting for Enter.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Work in this directory, and keep it.")
def tutorial(yes: bool, keep: Path | None) -> int:
    """A tour of five minutes in a scratch directory: each command is explained, then run.

    Wheels of two small packages are fetched from the index that is configured. The directory goes at the end.
    """
    import os
    import subprocess
    import tempfile
    from contextlib import nullcontext

    from envdsl.app import tutorial as tour

    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.UsageError(f"{keep} is not empty; the tour begins in a new directory")
    waiting = not yes and sys.stdin.isatty()
    environment = {name: value for name, value in os.environ.items() if name not in ("ENVDSL_STORE", "ENVDSL_PROJECT")}
    place = nullcontext(str(keep)) if keep is not None else tempfile.TemporaryDirectory(prefix="envdsl-tour-")
    with place as scratch:
        directory = Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        for number, step in enumerate(tour.steps("hello"), 1):
            tour.apply(step, directory)
            output.result(f"\n{number}. {step.why}")
            output.result(f"$ envdsl {_shown(step.command)}")
            if waiting:
                click.pause(info="[any key]", err=True)
            command = [sys.executable, "-m", "envdsl", *step.command]
            done = subprocess.run(command, cwd=directory, env=environment, check=False)
            if (done.returncode != 0) is not step.fails:
                output.message(f"that should not have happened (exit status {done.returncode}); the tour ends here")
                return done.returncode or 1
        output.result("\nThat was it. docs/spec.md has the language, `envdsl init` begins a project of your own.")
        if keep is None:
            _make_writable(directory)
    return 0


def _shown(command: tuple[str, ...]) -> str:
    import shlex

    return " ".join(word if word == "--" else shlex.quote(word) for word in command)


def _make_writable(directory: Path) -> None:
    """A store is read-only: whoever deletes it has to be let in."""
    for path in directory.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)

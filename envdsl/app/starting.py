"""``envdsl init``: a project that locks and builds as it stands."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envdsl import config as configuration
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import DEFAULT_PLATFORMS, LAYER_NAME, PythonVersion

_CONFIGURATION = """\
# Where layers and locks are, and where wheels come from. All keys are optional: docs/configuration.md lists them.
default-base = "{name}"
"""

_LAYER = """\
# What sessions of this project start from. `envdsl lock` resolves it once; commit the lock beside it.
base "{name}" {{
  python   = "{python}";
{attributes}
}}

# An extension holds what a base lacks, so that sessions choose what they need:
#
#   x "more" on "{name}" {{ packages = [ "humanize" ]; }}
"""


@dataclass(frozen=True, slots=True)
class Started:
    """The files that were written, relative to ``root``, and the name of the layer."""

    root: Path
    files: tuple[str, ...]
    layer: str


def start(root: Path, *, name: str, python: PythonVersion, source: Path | None = None) -> Started:
    """Make ``root`` a project with one base, all of it or nothing.

    ``source`` is a requirements file or a ``pyproject.toml`` inside ``root``, which the layer goes on reading: it stays
    the place where packages are named. Raises EnvdslError ``app-init-exists``, ``app-init-name``, ``app-init-source``.
    """
    if LAYER_NAME.fullmatch(name) is None:
        raise _error(
            "app-init-name", f"{name!r} is no name for a layer", "letters, digits, - and _; choose one with --name"
        )
    attributes = _starter() if source is None else _reading(root, source)
    layer = f"{configuration.LAYERS_DIRECTORY}/{name}.layer"
    files: Mapping[str, str] = {
        configuration.FILE_NAME: _CONFIGURATION.format(name=name),
        layer: _checked(root, layer, _LAYER.format(name=name, python=python, attributes=attributes)),
    }
    for path in files:
        if (root / path).exists():
            raise _error(
                "app-init-exists", f"{path} exists already", "init makes new projects only; edit the files there"
            )
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with (root / path).open("x", encoding="utf-8") as file:
            file.write(text)
    return Started(root, tuple(files), name)


def _checked(root: Path, path: str, text: str) -> str:
    """``text`` in canonical form. Raises EnvdslError for what it reads and cannot take as it is, such as an option of
    pip in a requirements file: then nothing is written."""
    from envdsl.evaluate.project import evaluate
    from envdsl.evaluate.reader import WithFile
    from envdsl.model.span import Source
    from envdsl.syntax.printer import format_file

    canonical = format_file(Source(path, text))
    if root.is_dir():
        evaluate([path], WithFile(root, path, canonical.encode()), default_platforms=DEFAULT_PLATFORMS)
    return canonical


def environment_of(variables: Mapping[str, str] = os.environ, directory: Path | None = None) -> Path:
    """The virtual environment that is active, or ``.venv`` in ``directory``. Raises EnvdslError ``app-init-source``."""
    active = variables.get("VIRTUAL_ENV")
    for place in ([Path(active)] if active else []) + ([directory / ".venv"] if directory else []):
        if (place / "pyvenv.cfg").is_file():
            return place
    raise _error(
        "app-init-source", "no virtual environment is active", "activate it, or name its directory: --from DIRECTORY"
    )


def _starter() -> str:
    return '  packages = [ "rich" ];\n  probe    = [ "rich" ];   # imported in the sandbox after a build'


def _reading(root: Path, source: Path) -> str:
    """Attributes that take the packages from ``source``."""
    try:
        path = source.resolve(strict=True).relative_to(root.resolve()).as_posix()
    except FileNotFoundError as error:
        raise _error(
            "app-init-source", f"there is no {source}", "name a requirements file or a pyproject.toml"
        ) from error
    except ValueError as error:
        raise _error(
            "app-init-source",
            f"{source} lies outside of the project, which reads nothing there",
            "copy it into the project; `envdsl import` takes versions over from anywhere",
        ) from error
    literal = f"../{path}"
    if any(letter in path for letter in " ;{}()[]\"'#"):
        raise _error("app-init-source", f"{path} can't be written as a path in a layer file", "rename it")
    if source.name == "pyproject.toml":
        return _of_pyproject(root, source, literal)
    return f"  packages = readLines {literal};"


def _of_pyproject(root: Path, source: Path, literal: str) -> str:
    try:
        project = tomllib.loads(source.read_text(encoding="utf-8")).get("project", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _error("app-init-source", f"{source} is not valid TOML: {error}", "mend it first") from error
    if not isinstance(project, dict) or not project.get("dependencies"):
        raise _error("app-init-source", f"{source} has no [project] with dependencies", "name another file with --from")
    lines = [f"  packages = (readToml {literal}).project.dependencies;"]
    if (root / "src").is_dir():
        lines.append("  sources  = [ ../src ];   # your own code, copied into the store by content")
    return "\n".join(lines)


def _error(code: str, message: str, hint: str) -> EnvdslError:
    return EnvdslError.of(code, message, hint=hint, exit_status=ExitStatus.USAGE)

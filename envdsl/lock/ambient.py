"""The indexes that uv and pip are configured with on this machine.

Read from the environment and from the user's and the system's files; never from the ``pyproject.toml`` or
``uv.toml`` of whatever project lies in the current directory, so that a layer resolves the same from anywhere.
See uv's "Configuration files" and "Environment variables", and pip's "Configuration".
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.source import IndexSource

FIRST_INDEX = "first-index"
BEST_MATCH = "unsafe-best-match"
_TRUE = frozenset({"1", "true", "yes", "on", "y", "t"})


@dataclass(frozen=True, slots=True)
class Ambient:
    """What one tool is configured with. ``strategy`` is in uv's words, None where it is not said."""

    default: IndexSource | None = None
    extra: tuple[IndexSource, ...] = ()
    flat: tuple[IndexSource, ...] = ()
    no_index: bool = False
    strategy: str | None = None
    keyring: bool = False

    @property
    def configured(self) -> bool:
        return bool(self.default or self.extra or self.flat or self.no_index)


def of_uv(environment: Mapping[str, str]) -> Ambient:
    """uv's configuration: its environment variables, then the user's file, then the system's."""
    levels = [_uv_environment(environment)]
    if environment.get("UV_NO_CONFIG", "").lower() not in _TRUE:
        levels += [_uv_file(path) for path in _uv_files(environment) if path.is_file()]
    return _merge(levels)


def of_pip(environment: Mapping[str, str]) -> Ambient:
    """pip's configuration. Its semantics are that the best version of all indexes wins, so that is the strategy."""
    values: dict[str, str] = {}
    for path in _pip_files(environment):
        if path.is_file():
            values.update(_pip_file(path))
    for variable, value in environment.items():
        if variable.startswith("PIP_") and value:
            values[variable[4:].lower().replace("_", "-")] = value
    no_index = values.get("no-index", "").lower() in _TRUE
    index = values.get("index-url")
    return Ambient(
        default=IndexSource.of(index, default=True) if index and not no_index else None,
        extra=() if no_index else tuple(IndexSource.of(url) for url in values.get("extra-index-url", "").split()),
        flat=tuple(IndexSource.of(place, flat=True) for place in values.get("find-links", "").split()),
        no_index=no_index,
        strategy=BEST_MATCH,
        keyring=values.get("keyring-provider") in ("subprocess", "auto", "import"),
    )


def _uv_environment(environment: Mapping[str, str]) -> Ambient:
    default = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL")
    extra = environment.get("UV_INDEX", "").split() + environment.get("UV_EXTRA_INDEX_URL", "").split()
    places = [place.strip() for place in environment.get("UV_FIND_LINKS", "").split(",")]
    return Ambient(
        default=IndexSource.named(default, default=True) if default else None,
        extra=tuple(IndexSource.named(text) for text in extra),
        flat=tuple(IndexSource.of(place, flat=True) for place in places if place),
        no_index=environment.get("UV_NO_INDEX", "").lower() in _TRUE,
        strategy=environment.get("UV_INDEX_STRATEGY") or None,
        keyring=environment.get("UV_KEYRING_PROVIDER") == "subprocess",
    )


def _uv_files(environment: Mapping[str, str]) -> Iterator[Path]:
    if named := environment.get("UV_CONFIG_FILE"):
        yield Path(named)
        return
    yield _config_home(environment) / "uv/uv.toml"
    yield from (Path(directory) / "uv/uv.toml" for directory in _config_directories(environment))
    yield Path("/etc/uv/uv.toml")


def _uv_file(path: Path) -> Ambient:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _unreadable(path, "uv", error) from error
    # The keys of `[pip]` are those of `uv pip`, and go before the general ones there.
    settings: dict[str, Any] = {**data, **{key: value for key, value in data.get("pip", {}).items() if value}}
    here = path.parent
    default = settings.get("index-url")
    extra = [IndexSource.named(text, directory=here) for text in settings.get("extra-index-url", ())]
    flat = [IndexSource.of(text, flat=True, directory=here) for text in settings.get("find-links", ())]
    declared = [
        IndexSource.of(
            table["url"],
            name=table.get("name"),
            flat=table.get("format") == "flat",
            default=bool(table.get("default")),
            explicit=bool(table.get("explicit")),
            directory=here,
        )
        for table in settings.get("index", ())
    ]
    return Ambient(
        default=next(
            (source for source in declared if source.default),
            IndexSource.named(default, default=True, directory=here) if default else None,
        ),
        extra=(*(source for source in declared if not source.default and not source.flat), *extra),
        flat=(*(source for source in declared if source.flat), *flat),
        no_index=bool(settings.get("no-index")),
        strategy=settings.get("index-strategy"),
        keyring=settings.get("keyring-provider") == "subprocess",
    )


def _merge(levels: list[Ambient]) -> Ambient:
    merged = levels[0]
    for level in levels[1:]:
        merged = replace(
            merged,
            default=merged.default or level.default,
            extra=merged.extra + level.extra,
            flat=merged.flat + level.flat,
            no_index=merged.no_index or level.no_index,
            strategy=merged.strategy or level.strategy,
            keyring=merged.keyring or level.keyring,
        )
    return merged


def _pip_files(environment: Mapping[str, str]) -> Iterator[Path]:
    """Later files win: the system's, the user's, the environment's, the one that ``PIP_CONFIG_FILE`` names."""
    named = environment.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return
    yield from (Path(directory) / "pip/pip.conf" for directory in reversed(_config_directories(environment)))
    yield Path("/etc/pip.conf")
    yield _home(environment) / ".pip/pip.conf"
    yield _config_home(environment) / "pip/pip.conf"
    yield Path(sys.prefix) / "pip.conf"
    if named:
        yield Path(named)


def _pip_file(path: Path) -> dict[str, str]:
    import configparser

    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        raise _unreadable(path, "pip", error) from error
    return {
        key.replace("_", "-"): value
        for section in ("global", "install")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or Path.home())


def _config_home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config")


def _config_directories(environment: Mapping[str, str]) -> list[str]:
    return [place for place in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":") if place]


def _unreadable(path: Path, tool: str, error: Exception) -> EnvdslError:
    return EnvdslError.of(
        "lock-index-configuration",
        f"{tool}'s configuration file {path} cannot be read: {type(error).__name__}",  # its text may hold secrets
        hint=f"repair it, or name the indexes in envdsl.toml (then {tool}'s are not asked)",
        exit_status=ExitStatus.USAGE,
    )

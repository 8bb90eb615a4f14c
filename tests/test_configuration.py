"""``docs/configuration.md`` says what ``envdsl.toml`` may hold: all of it, and nothing else."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envdsl import config

TEXT = (Path(__file__).parents[1] / "docs" / "configuration.md").read_text()
(EXAMPLE,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
ROWS = set(re.findall(r"^\| `([^`]+)` \|", TEXT, re.MULTILINE))


def keys(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in table.items():
        match value:
            case dict():
                yield from keys(value, f"{prefix}{name}.")
            case [dict(), *_]:
                for item in value:
                    yield from keys(item, f"{prefix}{name}.")
            case _:
                yield prefix + name


def test_the_example_has_every_key_and_each_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: set[str] = set()
    value = config._Table.value

    def recorded(table: config._Table, key: str, convert: Callable[[Any], Any]) -> Any:
        asked.add(table._prefix + key)
        return value(table, key, convert)

    monkeypatch.setattr(config._Table, "value", recorded)
    (tmp_path / config.FILE_NAME).write_text(EXAMPLE)
    config.load(tmp_path, environment={})
    shown = set(keys(tomllib.loads(EXAMPLE)))
    tables = {key for key in asked if any(other.startswith(f"{key}.") for other in asked)}
    assert shown == asked - tables
    explained = {row.replace("<3.N>", "3.12") for row in ROWS if not row.isupper()}
    assert explained == shown


def test_the_defaults_that_are_stated_hold(tmp_path: Path) -> None:
    defaults = config.load(tmp_path, environment={})
    for key, stated in re.findall(r"^\| `([a-z-]+)` \| `([^`]+)` \|", TEXT, re.MULTILINE):
        found = getattr(defaults, key.replace("-", "_"))
        expected = tomllib.loads(f"x = {stated}")["x"]
        if key == "store":
            assert found == tmp_path / expected
        elif stated.startswith("["):
            assert list(found) == expected
        elif key in ("layers", "locks"):
            assert found == expected


def test_the_variables_that_are_stated_are_read() -> None:
    variables = {row for row in ROWS if row.isupper()}
    sources = "".join(path.read_text() for path in Path(config.__file__).parent.rglob("*.py"))
    assert {name for name in variables if name not in sources} == set()
    assert {"ENVDSL_PROJECT", config.STORE_VARIABLE, config.DATABASE_VARIABLE} <= variables

"""``why``, ``tree``, ``licenses``, ``search-import`` and ``outdated`` over real locks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import PYTHON, Cli
from tests.lock.index import serve
from tests.wheels import make_wheel


@pytest.fixture
def locked(run: Cli, project: Path) -> Cli:
    """``app`` requires ``lib>=1``, which requires ``low``; ``extra`` above it requires ``lib``, too."""
    wheels = project / "wheels"
    make_wheel(wheels, "low", "1.0", files={"low/__init__.py": ""}, extra_metadata="License-Expression: MIT\n")
    make_wheel(wheels, "lib", "1.0", requires=["low<9"], files={"google/lib/__init__.py": ""})
    make_wheel(wheels, "app", "1.0", requires=["lib>=1"], files={"Application/__init__.py": ""})
    make_wheel(wheels, "extra", "1.0", requires=["lib", "low"])
    (project / "layers.d" / "all.layer").write_text(
        f'base core {{ python = "{PYTHON}"; packages = [ "app<2" ]; }}\nx more on core {{ packages = [ "extra" ]; }}\n'
    )
    assert run("lock").status == 0
    return run


def test_why_tells_every_chain(locked: Cli) -> None:
    """Issue 5.3: `why`: every chain of requirements, from wheel metadata, across base and x."""
    assert locked("why", "more", "low").out.splitlines() == [
        "more: extra (1.0) → low (1.0)",
        "core: app<2 (1.0) → lib>=1 (1.0) → low<9 (1.0)",
        "more: extra (1.0) → lib (1.0) → low<9 (1.0)",
    ]
    (chain,) = locked("why", "core", "low", "--json").json["chains"]
    assert [step["requirement"] for step in chain["steps"]] == ["app<2", "lib>=1", "low<9"]


def test_why_of_a_package_that_is_not_there(locked: Cli) -> None:
    done = locked("why", "core", "lob")
    assert (done.status, done.out) == (2, "")
    assert "error[app-package-unknown]: neither core nor its base holds a package lob" in done.err
    assert "did you mean" in done.err


def test_tree_shows_what_is_required_and_each_package_once(locked: Cli) -> None:
    """Issue 5.3: `tree`."""
    assert locked("tree", "more").out.splitlines() == [
        "more",
        "└── extra 1.0",
        "    ├── lib 1.0",
        "    │   └── low 1.0  [low<9]",
        "    └── low 1.0",
    ]
    assert locked("tree", "core", "--depth", "2").out.splitlines() == [
        "core",
        "└── app 1.0  [app<2]",
        "    └── lib 1.0  [lib>=1]",
    ]


def test_licenses_are_what_wheels_state(locked: Cli) -> None:
    """Issue 5.3: `licenses`."""
    found = {item["name"]: item for item in locked("licenses", "core", "--json").json["packages"]}
    assert (found["low"]["licence"], found["low"]["layers"]) == ("MIT", ["core"])
    assert found["app"]["licence"] is None
    assert "MIT            low    1.0" in locked("licenses").out


def test_search_import_finds_the_distribution(locked: Cli) -> None:
    """Issue 5.3: `search-import`: which distribution provides an import name, in the locked layers."""
    nothing = locked("search-import", "Application")
    assert (nothing.status, nothing.out) == (1, "")
    assert "`envdsl fetch` gets the wheels" in nothing.err
    assert locked("fetch", "--no-interpreter").status == 0
    assert locked("search-import", "Application").rows == [["app 1.0", "core", "import Application"]]
    assert locked("search-import", "google.lib").rows == [["lib 1.0", "core", "import google.lib"]]
    assert locked("search-import", "google", "--json").json["providers"][0]["name"] == "lib"
    assert locked("search-import", "nowhere").status == 1


def test_outdated_tells_what_is_newer_and_whether_the_layer_would_take_it(locked: Cli, project: Path) -> None:
    """Issue 5.3: `outdated`."""
    assert locked("outdated").out == ""
    make_wheel(project / "wheels", "app", "2.0")
    make_wheel(project / "wheels", "low", "1.5")
    make_wheel(project / "wheels", "low", "2.0rc1")
    make_wheel(project / "wheels", "low", "3.0", tag="cp311-cp311-win_amd64")
    found = locked("outdated", "--json").json["outdated"]
    assert [(item["name"], item["newest"], item["direct"], item["allowed"]) for item in found] == [
        ("app", "2.0", True, False),
        ("low", "1.5", False, True),
    ]
    assert locked("outdated", "core").rows[0] == ["core", "app", "1.0", "2.0  kept away by the layer"]


def test_outdated_looks_in_all_indexes_where_pip_is_what_is_configured(
    locked: Cli, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 5.3: with pip's configuration the best match of all indexes counts, as `lock` has it."""
    make_wheel(tmp_path / "own", "low", "1.1")
    make_wheel(tmp_path / "own", "lib", "1.0")
    make_wheel(tmp_path / "own", "app", "1.0")
    make_wheel(tmp_path / "own", "extra", "1.0")
    make_wheel(tmp_path / "public", "low", "1.6")
    make_wheel(tmp_path / "public", "app", "1.0")
    with serve(tmp_path / "own") as own, serve(tmp_path / "public") as public:
        table = '[[index]]\nname = "{}"\nurl = "{}"\n'
        declared = table.format("own", own.simple) + table.format("public", public.simple) + "default = true\n"
        configuration = project / "envdsl.toml"
        configuration.write_text(declared)
        first = locked("outdated", "core", "--json")
        assert [(item["name"], item["newest"]) for item in first.json["outdated"]] == [("low", "1.1")]
        configuration.write_text("")
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("UV_NO_CONFIG", "1")
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", own.simple)
        monkeypatch.setenv("PIP_INDEX_URL", public.simple)
        best = locked("outdated", "core", "--json")
        assert [(item["name"], item["newest"]) for item in best.json["outdated"]] == [("low", "1.6")]


def test_search_import_says_that_nothing_was_found(locked: Cli) -> None:
    assert locked("fetch", "--no-interpreter").status == 0
    nothing = locked("search-import", "nowhere")
    assert (nothing.status, nothing.out) == (1, "")
    assert "no locked layer has a distribution that gives the import nowhere" in nothing.err

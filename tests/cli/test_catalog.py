"""Issue 4.1: ``envdsl catalog check`` and ``explain``: output, exit status, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

GOOD = """\
[allow]
packages = ["pandas>=2", "rich"]
[groups]
learning = ["torch"]
[deny]
evil = "a known trap"
[limits]
max-wheel-size = "50 MB"
minimum-age = "7 days"
[[session]]
pattern = "research-*"
allow.groups = ["learning"]
limits.max-wheel-size = "none"
"""
BAD = '[allow]\npackage = ["x"]\n[limits]\nmax-wheel-size = "big"\n'


@pytest.fixture
def catalog(project: Path) -> Path:
    file = project / "layers.d" / "catalog.toml"
    file.write_text(GOOD)
    return file


def test_check_counts_what_it_read(run: Cli, catalog: Path) -> None:
    """Issue 4.1: `catalog check`."""
    done = run("catalog", "check")
    assert (done.status, done.out) == (0, "")
    assert done.err == "layers.d/catalog.toml: 2 allowed, 1 denied, 1 group, 1 override: no errors\n"


def test_check_reports_every_mistake_with_its_line(run: Cli, catalog: Path) -> None:
    """Issue 4.1: validated with places like layer files."""
    catalog.write_text(BAD)
    done = run("catalog", "check")
    assert done.status == 1
    assert (
        done.err
        == """\
error[policy-catalog-key]: unknown key `package` in [allow]
  --> layers.d/catalog.toml:2:1
   |
 2 | package = ["x"]
   | ^^^^^^^
  = hint: did you mean `packages`?
error[policy-catalog-value]: `max-wheel-size` 'big' is no size: write "50 MB" or "1.5 GiB"
  --> layers.d/catalog.toml:4:18
   |
 4 | max-wheel-size = "big"
   |                  ^^^^^
2 errors in layers.d/catalog.toml
"""
    )
    found = json.loads(run("catalog", "check", "--json").out)
    assert [item["code"] for item in found["diagnostics"]] == ["policy-catalog-key", "policy-catalog-value"]
    assert found["diagnostics"][1]["place"]["line"] == 4


def test_check_as_json_lists_what_it_read(run: Cli, catalog: Path) -> None:
    assert run("catalog", "check", "--json").json == {
        "file": "layers.d/catalog.toml",
        "exists": True,
        "allowed": ["pandas>=2", "rich"],
        "denied": ["evil"],
        "groups": {"learning": ["torch"]},
        "sessions": ["research-*"],
        "diagnostics": [],
    }


def test_without_a_catalog_a_person_decides(run: Cli) -> None:
    done = run("catalog", "check")
    assert (done.status, done.err) == (0, "there is no layers.d/catalog.toml: a person decides on every request\n")
    assert run("catalog", "explain", "rich").out.startswith("rich: a person decides\n")


def test_check_of_the_project_checks_the_catalog_too(run: Cli, catalog: Path) -> None:
    assert run("check").status == 0
    catalog.write_text(BAD)
    done = run("check")
    assert done.status == 1
    assert "layers.d/catalog.toml:4:18" in done.err
    assert run("check", "layers.d/all.layer").status == 0
    assert "layers.d/catalog.toml" in run("check", "--json").json["files"]


@pytest.mark.parametrize(
    ("arguments", "first", "words"),
    [
        (["Pandas"], "pandas: allowed (it depends on the version)", "pandas>=2  (layers.d/catalog.toml:2:13)"),
        (["pandas==1.5"], "pandas 1.5: a person decides", "pandas 1.5 is not what is allowed (pandas>=2)"),
        (["pandas>=2"], "pandas: allowed (it depends on the version)", "pandas>=2"),
        (["pandas==2.*"], "pandas: allowed (it depends on the version)", "pandas>=2"),
        (["torch[extra]>=2,<3"], "torch: a person decides", "not given torch"),
        (["rich==14"], "rich 14: allowed", "wheel at most    50 MB"),
        (["evil"], "evil: refused", "evil is denied: a known trap"),
        (["torch"], "torch: a person decides", "not given torch  (layers.d/catalog.toml:4:13, in the group learning)"),
        (["torch", "--session", "research-7"], "torch: allowed", "wheel at most    none"),
    ],
)
def test_explain_names_the_lines_that_say_so(
    run: Cli, catalog: Path, arguments: list[str], first: str, words: str
) -> None:
    """Issue 4.1: `explain PACKAGE`."""
    done = run("catalog", "explain", *arguments)
    assert done.status == 0
    assert done.out.splitlines()[0] == first
    assert words in done.out


def test_explain_as_json(run: Cli, catalog: Path) -> None:
    found = run("catalog", "explain", "torch==2.9", "--session", "research-7", "--json").json
    assert (found["treatment"], found["certain"], found["version"], found["session"]) == (
        "allow",
        True,
        "2.9",
        "research-7",
    )
    assert found["allowed"] == [
        {"entry": "torch", "group": "learning", "reason": None, "place": "layers.d/catalog.toml:4:13"}
    ]
    assert found["limits"]["max-wheel-size"] is None
    assert found["limits"]["minimum-age-hours"] == 168


@pytest.mark.parametrize("package", ["a>b", "x @ https://y/z.whl", ""])
def test_explain_wants_a_requirement(run: Cli, catalog: Path, package: str) -> None:
    done = run("catalog", "explain", package)
    assert done.status == 2
    assert "app-package" in done.err


def test_a_catalog_with_mistakes_explains_nothing(run: Cli, catalog: Path) -> None:
    catalog.write_text(BAD)
    done = run("catalog", "explain", "rich")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("error[policy-catalog-") == 2

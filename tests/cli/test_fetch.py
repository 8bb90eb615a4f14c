"""``envdsl fetch``: the wheelhouse is filled, so that a build needs no network."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tests.cli.conftest import LAYERS, PYTHON, Cli
from tests.wheels import make_wheel


def test_fetch_fills_the_wheelhouse_and_build_needs_no_index_then(run: Cli, project: Path, fresh: Path) -> None:
    """Issue 3.8: `envdsl fetch` fills the wheelhouse; after it `build --offline` works."""
    run("lock")
    done = run("fetch", "--store", fresh)
    assert done.status == 0, done.err
    wheels = [row for row in done.rows if row[0] == "fetched"]
    assert [row[1] for row in wheels] == [
        "bar-1.0-py3-none-any.whl",
        "foo-1-py3-none-any.whl",
        "foo-2-py3-none-any.whl",
    ]
    for _, filename, path in wheels:
        assert Path(path).read_bytes() == (project / "wheels" / filename).read_bytes()
    shutil.rmtree(project / "wheels")
    built = run("build", "--offline", "--store", fresh)
    assert built.status == 0, built.err
    assert len(built.rows) == 4


def test_fetch_again_fetches_nothing(run: Cli, fresh: Path) -> None:
    run("lock")
    run("fetch", "--store", fresh)
    again = run("fetch", "core", "--json", "--store", fresh)
    assert [(item["filename"], item["status"], item["layers"]) for item in again.json["wheels"]] == [
        ("bar-1.0-py3-none-any.whl", "present", ["core"])
    ]
    assert again.json["interpreters"][0]["python"] == PYTHON


def test_fetch_takes_other_platforms_only_when_asked(run: Cli, project: Path, fresh: Path) -> None:
    """Issue 3.8: --all-platforms."""
    for machine in ("x86_64", "aarch64"):
        make_wheel(
            project / "wheels",
            "native",
            "1",
            tag=f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-manylinux_2_28_{machine}",
        )
    (project / "layers.d" / "all.layer").write_text(
        f'base native {{ python = "{PYTHON}"; packages = [ "native" ]; '
        'platforms = [ "manylinux_2_28_x86_64" "manylinux_2_28_aarch64" ]; }'
    )
    assert run("lock").status == 0
    here = os.uname().machine
    mine = run("fetch", "--json", "--store", fresh).json["wheels"]
    assert [item["platforms"] for item in mine] == [[f"manylinux_2_28_{here}"]]
    everybodys = run("fetch", "--all-platforms", "--json", "--store", fresh).json["wheels"]
    assert {item["status"] for item in everybodys if here in item["filename"]} == {"present"}
    assert len(everybodys) == 2


def test_what_was_fetched_outlives_gc_until_no_lock_pins_it(run: Cli, project: Path, fresh: Path) -> None:
    """Issue 3.8: a wheelhouse that was filled stays filled."""
    run("lock")
    run("fetch", "--store", fresh)
    assert run("gc", "--store", fresh).status == 0
    assert len(list((fresh / "wheelhouse").iterdir())) == 3
    (project / "layers.d" / "all.layer").write_text(f'iso alone {{ python = "{PYTHON}"; packages = [ "foo" ]; }}')
    assert run("fetch", "--store", fresh).status == 0
    run("gc", "--store", fresh)
    assert [path.name for path in (fresh / "wheelhouse").glob("*/*")] == ["foo-2-py3-none-any.whl"]


def test_fetch_refuses_a_lock_that_is_not_current(run: Cli, project: Path) -> None:
    assert "app-lock-missing" in run("fetch", "core").err
    run("lock")
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('[ "bar" ]', '[ "bar" "foo" ]', 1))
    done = run("fetch", "core")
    assert (done.status, "app-lock-stale" in done.err) == (1, True)


def test_fetch_offline_names_what_is_missing(run: Cli, project: Path, fresh: Path) -> None:
    run("lock")
    shutil.rmtree(project / "wheels")
    done = run("fetch", "alone", "--offline", "--store", fresh)
    assert done.status == 4
    assert "foo-2-py3-none-any.whl is not on this machine" in done.err

"""The curated layers, as they are committed: whole, current, for both machines, and importable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envdsl.lock.lock import Lock
from envdsl.lock.pylock import read_lock
from envdsl.model.names import LayerKind, PythonVersion
from tests.examples.conftest import ROOT

PYTHONS = ("3.11", "3.12", "3.13")
OFFICE = {
    *("python-docx", "openpyxl", "python-pptx", "lxml", "pillow", "numpy", "matplotlib"),
    *("pypdf", "reportlab", "markdown", "pdfplumber"),
}
INCREMENTS = {"data": {"pandas", "scipy", "scikit-learn"}, "plots": {"seaborn"}}


def _lock(layer: str) -> Lock:
    return read_lock(ROOT / "layers.d" / f"pylock.{layer}.toml")


def _name(family: str, python: str) -> str:
    return f"{family}-py{python.replace('.', '')}"


def _envdsl(*arguments: str, store: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "envdsl", *arguments],
        cwd=ROOT,
        env={**os.environ, "ENVDSL_STORE": str(store)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.mark.parametrize("python", PYTHONS)
def test_office_is_locked_for_each_python(python: str) -> None:
    """Issue 2.15: a curated base `office`, declared for Python 3.11, 3.12 and 3.13."""
    lock = _lock(_name("office", python))
    assert (lock.kind, lock.python) == (LayerKind.BASE, PythonVersion.parse(python))
    assert {package.name for package in lock.packages} >= OFFICE


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("family", INCREMENTS)
def test_an_x_layer_holds_what_office_lacks_and_nothing_else(family: str, python: str) -> None:
    """Issue 2.15: x layers `data` (pandas, scipy, scikit-learn) and `plots` (seaborn)."""
    base, lock = _lock(_name("office", python)), _lock(_name(family, python))
    assert lock.kind is LayerKind.X
    assert lock.base is not None
    assert (lock.base.name, lock.base.digest) == (base.layer, base.digest)
    names = {package.name for package in lock.packages}
    assert names >= INCREMENTS[family]
    assert not names & {package.name for package in base.packages}


@pytest.mark.parametrize("python", PYTHONS)
def test_data_and_plots_can_be_bound_together(python: str) -> None:
    """Issue 2.15: where both x layers hold a package, they agree on its version."""
    versions: dict[str, set[str]] = {}
    for family in INCREMENTS:
        for package in _lock(_name(family, python)).packages:
            versions.setdefault(package.name, set()).add(package.version)
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_an_iso_layer_has_numpy_1() -> None:
    """Issue 2.15: an iso layer with `numpy<2`."""
    lock = _lock("legacy")
    assert lock.kind is LayerKind.ISO
    (numpy,) = (package for package in lock.packages if package.name == "numpy")
    assert numpy.version.startswith("1.")


def test_every_package_is_locked_for_both_machines() -> None:
    """Issue 2.15: all with locks for x86_64 and aarch64."""
    for path in sorted((ROOT / "layers.d").glob("pylock.*.toml")):
        lock = read_lock(path)
        assert {platform.machine for platform in lock.platforms} == {"x86_64", "aarch64"}, path.name
        for package in lock.packages:
            assert all(package.wheel(platform) for platform in lock.platforms), f"{path.name}: {package.name}"


def test_the_locks_are_current_and_name_no_host(tmp_path: Path) -> None:
    """Issue 2.15, 2.5: each lock answers its layer file, and any mirror can serve it."""
    done = _envdsl("lock", "--check", "--json", store=tmp_path)
    assert done.returncode == 0, done.stderr
    statuses = {lock["layer"]: lock["status"] for lock in json.loads(done.stdout)["locks"]}
    families = [_name(family, python) for family in ("office", *INCREMENTS) for python in PYTHONS]
    assert statuses == dict.fromkeys([*families, "legacy"], "current")
    for path in (ROOT / "layers.d").glob("pylock.*.toml"):
        assert "://" not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.network
def test_the_curated_layers_build_and_their_probes_import(store: Path) -> None:
    """Issue 2.15, 2.10: every family builds for the interpreter that can be had; a build imports what `probe` names."""
    done = _envdsl("build", "office", "data", "plots", "--json", store=store)
    assert done.returncode == 0, done.stderr
    kinds = [layer["kind"] for layer in json.loads(done.stdout)["layers"]]
    assert sorted(kinds) == ["base", "x", "x"]

"""The public index, as it is: a curated base for two machines, an x layer over it, and what can't be."""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from envdsl.errors import EnvdslError
from envdsl.evaluate.spec import LayerSpec
from envdsl.graph.derivation import WheelFile
from envdsl.lock.candidates import Candidates
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.lock import Lock
from envdsl.lock.locking import LockOptions, lock_layer
from envdsl.lock.pylock import write_lock
from envdsl.realise.fetch import Fetcher
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from tests.lock.conftest import ARM, X86, layer, pins

pytestmark = pytest.mark.network

OFFICE = ["python-docx", "openpyxl", "python-pptx", "lxml", "pillow", "numpy", "matplotlib", "pypdf", "reportlab"]


def lock(spec: LayerSpec, root: Path, base: Lock | None = None) -> Lock:
    # As on the machine that runs this, but for pip's own settings.
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
    path = root / f"pylock.{spec.name}.toml"
    locked = lock_layer(
        spec,
        path,
        base=base,
        root=root,
        configuration=IndexConfiguration.discover(environment=environment),
        interpreter=Path(sys.executable),
        options=LockOptions(),
        reporter=Reporter(),
    )
    write_lock(path, locked.text)
    return locked.lock


def test_office_locks_for_two_machines_and_x_layers_stand_on_it(tmp_path: Path) -> None:
    """Issue 2.5 and 2.15: real packages, x86_64 and aarch64."""
    base = lock(layer("office", OFFICE, platforms=[X86, ARM]), tmp_path)
    text = (tmp_path / "pylock.office.toml").read_text()
    assert "://" not in text
    Pylock.from_dict(tomllib.loads(text))
    numpy = next(package for package in base.packages if package.name == "numpy")
    assert len({wheel.filename for _, wheel in numpy.platforms}) == 2
    assert all(platform.machine in wheel.filename for platform, wheel in numpy.platforms)
    assert set(OFFICE) <= pins(base).keys()
    matplotlib = next(package for package in base.packages if package.name == "matplotlib")
    assert {"numpy", "pillow"} <= set(matplotlib.dependencies)

    plots = lock(layer("plots", ["seaborn"], platforms=[X86, ARM], on="office"), tmp_path, base)
    assert {"seaborn", "pandas"} <= pins(plots).keys()
    assert not pins(plots).keys() & pins(base).keys()

    with pytest.raises(EnvdslError) as caught:
        lock(layer("legacy", ["numpy<2"], platforms=[X86, ARM], on="office"), tmp_path, base)
    assert caught.value.code == "lock-base-conflict"
    assert f"`office` pins numpy {numpy.version}" in str(caught.value)


def test_a_wheel_of_the_lock_is_found_and_fetched(tmp_path: Path) -> None:
    """Issue 2.6: the host comes from configuration alone."""
    locked = lock(layer("small", ["iniconfig"]), tmp_path).packages[0].wheel(X86)
    assert locked is not None
    wheel = WheelFile(locked.filename, locked.sha256, locked.size)
    with Store.open(tmp_path / "store") as store:
        Fetcher(store, Candidates(IndexConfiguration.discover()), reporter=Reporter())([wheel])
        assert store.lookup(wheel.key) is not None


def test_what_has_no_wheels_or_does_not_exist_is_said(tmp_path: Path) -> None:
    """Issue 2.7: on real packages."""
    for package, code in (("sgmllib3k", "lock-sdist-only"), ("envdsl-no-such-package-xyz", "lock-unknown-package")):
        with pytest.raises(EnvdslError) as caught:
            lock(layer("odd", [package]), tmp_path)
        assert caught.value.code == code
        assert package in str(caught.value)

"""Which commands wait for the disk: those whose result has to outlive a power failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envdsl import quick
from envdsl.store import registry
from envdsl.store.store import Store
from tests.cli.conftest import Cli, clone


@pytest.fixture
def own(built: Cli, pristine_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """A store of its own, in which a build has just ended."""
    monkeypatch.setenv("ENVDSL_STORE", str(clone(pristine_store, tmp_path / "store")))
    done = built("build")
    assert done.status == 0, done.err
    return built


def unflushed() -> int:
    with Store.open(Path(os.environ["ENVDSL_STORE"])) as store:
        return store.registry.unflushed()


def test_a_build_does_not_wait_for_the_disk(own: Cli) -> None:
    """Issue 3.4: what is promised under power loss, and how."""
    assert unflushed()


@pytest.mark.parametrize(
    "command",
    [
        ["ensure", "--offline"],
        ["session", "create", "s", "-l", "core"],
        ["fetch", "--offline"],
    ],
    ids=" ".join,
)
def test_these_make_everything_outlive_a_power_failure(own: Cli, command: list[str]) -> None:
    done = own(*command)
    assert done.status == 0, done.err
    assert not unflushed()


def test_a_session_that_is_bound_anew_binds_what_is_on_the_disk(own: Cli, project: Path) -> None:
    assert own("session", "create", "s", "-l", "core").status == 0
    (project / "src" / "mine" / "__init__.py").write_text("ANSWER = 43\n")
    assert own("build").status == 0
    assert unflushed()
    done = own("session", "rebase", "s")
    assert done.status == 0, done.err
    assert not unflushed()


@pytest.fixture
def another_boot(own: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The machine went down after the build, and is up again."""
    boot = tmp_path / "boot"
    boot.write_text("another boot\n")
    monkeypatch.setattr(quick, "_BOOT", str(boot))
    monkeypatch.setattr(registry, "boot_id", lambda: "another boot")
    return own


def test_what_the_disk_kept_is_not_built_again(another_boot: Cli) -> None:
    """Wheels, parts, bytecode, sources and layers: each is compared with its listing."""
    done = another_boot("build", "--json")
    assert done.status == 0, done.err
    assert done.json["built"] == 0


def test_what_the_disk_lost_is_built_again(another_boot: Cli) -> None:
    store = Path(os.environ["ENVDSL_STORE"])
    torn = next(store.glob("unpacked/*-bar-*/site-packages/bar/__init__.py"))
    torn.chmod(0o644)
    torn.write_text("")  # the layer's file, too, and so all that is made from either
    torn.chmod(0o444)
    done = another_boot("build", "--json")
    assert done.status == 0, done.err
    assert done.json["built"] > 0
    assert another_boot("verify").status == 0
    assert (store / "current").resolve().is_dir()

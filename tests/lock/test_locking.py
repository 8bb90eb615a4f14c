"""Locking against an index: what is pinned, what is kept, what a change costs."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from datetime import UTC, datetime

from packaging.pylock import Pylock

from envdsl.lock.freshness import staleness
from envdsl.lock.pylock import read_lock
from envdsl.lock.uv import newest_patch
from envdsl.model.names import PythonVersion
from tests.lock.conftest import ARM, X86, Project, layer, pins
from tests.wheels import make_wheel, sha256


def test_a_lock_is_valid_pep_751_and_names_no_host(project: Project) -> None:
    """Issue 2.5: mirror-independent, and valid for packaging.pylock."""
    wheel = project.wheel("alpha", "1.0", "beta>=1")
    project.wheel("beta", "1.0")
    lock = project.lock(layer("office", ["alpha"]))
    text = project.path("office").read_text()
    assert project.index.url not in text
    assert "127.0.0.1" not in text
    pylock = Pylock.from_dict(tomllib.loads(text))
    assert [package.name for package in pylock.packages] == ["alpha", "beta"]
    alpha = lock.packages[0].wheel(X86)
    assert alpha is not None
    assert (alpha.filename, alpha.sha256, alpha.size) == (wheel.name, sha256(wheel), wheel.stat().st_size)
    assert lock.packages[0].dependencies == ("beta",)


def test_locking_again_keeps_the_bytes_and_asks_nobody(project: Project) -> None:
    """Issue 2.5: idempotent; a current lock costs no network, even when newer versions are there."""
    project.wheel("alpha", "1.0")
    spec = layer("office", ["alpha"])
    project.lock(spec)
    before = project.path("office").read_bytes()
    project.wheel("alpha", "2.0")
    project.index.requests.clear()
    locked = project.try_lock(replace(spec, description="other", probe=("alpha",), env=(("A", "B"),)))
    assert locked.text.encode() == before
    assert not locked.resolved
    assert project.index.requests == []


def test_resolving_anew_gives_the_same_bytes(project: Project) -> None:
    """Issue 2.5: deterministic, whatever the order of the declaration."""
    project.wheel("alpha", "1.0", "gamma")
    project.wheel("beta", "1.0", "gamma")
    project.wheel("gamma", "1.0")
    first = project.try_lock(layer("office", ["alpha", "beta"], platforms=[X86, ARM])).text
    second = project.try_lock(layer("office", ["beta", "alpha"], platforms=[ARM, X86])).text
    assert first == second


def test_a_change_moves_no_pin_that_it_does_not_concern(project: Project) -> None:
    """Issue 2.5: minimal change."""
    project.wheel("alpha", "1.0")
    project.lock(layer("office", ["alpha"]))
    project.wheel("alpha", "2.0")
    project.wheel("beta", "1.0")
    before = project.path("office").read_text()
    assert pins(project.lock(layer("office", ["alpha", "beta"]))) == {"alpha": "1.0", "beta": "1.0"}
    block = before[before.index("[[packages]]") :].strip()
    assert block in project.path("office").read_text()


def test_upgrade_moves_all_pins_and_upgrade_package_one(project: Project) -> None:
    """Issue 2.5: --upgrade and --upgrade-package."""
    project.wheel("alpha", "1.0")
    project.wheel("beta", "1.0")
    spec = layer("office", ["alpha", "beta"])
    project.lock(spec)
    project.wheel("alpha", "2.0")
    project.wheel("beta", "2.0")
    one = project.lock(spec, upgrade_packages=frozenset({"alpha"}))
    assert pins(one) == {"alpha": "2.0", "beta": "1.0"}
    assert pins(project.lock(spec, upgrade=True)) == {"alpha": "2.0", "beta": "2.0"}


def test_each_platform_has_its_best_wheel_and_no_other_is_locked(project: Project) -> None:
    """Issue 2.5: all declared platforms in one file, and no wheel for others."""
    x86 = project.wheel("alpha", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    project.wheel("alpha", "1.0", tag="cp312-abi3-manylinux_2_17_x86_64")
    arm = project.wheel("alpha", "1.0", tag="cp312-cp312-manylinux_2_28_aarch64")
    project.wheel("alpha", "1.0", tag="cp312-cp312-manylinux_2_39_aarch64")
    project.wheel("alpha", "1.0", tag="cp312-cp312-win_amd64")
    project.wheel("alpha", "1.0", tag="cp313-cp313-manylinux_2_28_x86_64")
    project.wheel("alpha", "1.0")
    lock = project.lock(layer("office", ["alpha"], platforms=[X86, ARM]))
    chosen = {platform: wheel.filename for platform, wheel in lock.packages[0].platforms}
    assert chosen == {X86: x86.name, ARM: arm.name}
    assert project.path("office").read_text().count(".whl") == 2


def test_a_package_that_one_machine_needs_has_a_marker(project: Project) -> None:
    project.wheel("alpha", "1.0", "onlyx86 ; platform_machine == 'x86_64'")
    project.wheel("onlyx86", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    lock = project.lock(layer("office", ["alpha"], platforms=[X86, ARM]))
    only = next(package for package in lock.packages if package.name == "onlyx86")
    assert only.wheel(ARM) is None
    assert only.wheel(X86) is not None
    assert "marker = \"platform_machine == 'x86_64'\"" in project.path("office").read_text()


def test_one_version_serves_all_platforms_even_where_each_lacks_another(project: Project) -> None:
    """Issue 2.5: neither platform's newest choice is possible on the other."""
    for version in ("1.0", "2.0"):
        project.wheel("alpha", version, tag="cp312-cp312-manylinux_2_17_x86_64")
        project.wheel("beta", version, tag="cp312-cp312-manylinux_2_17_aarch64")
    project.wheel("alpha", "1.0", tag="cp312-cp312-manylinux_2_17_aarch64")
    project.wheel("beta", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    lock = project.lock(layer("office", ["alpha", "beta"], platforms=[X86, ARM]))
    assert pins(lock) == {"alpha": "1.0", "beta": "1.0"}
    assert all(len(package.platforms) == 2 for package in lock.packages)


def test_platforms_that_can_not_agree_are_an_error_that_names_them(project: Project) -> None:
    project.wheel("alpha", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    project.wheel("alpha", "2.0", tag="cp312-cp312-manylinux_2_17_aarch64")
    error = project.refusal(layer("office", ["alpha"], platforms=[X86, ARM]))
    assert error.code == "lock-platforms-disagree"
    assert "alpha" in str(error)
    assert str(X86) in str(error)
    assert str(ARM) in str(error)


def test_an_x_lock_holds_the_increment_only_under_the_pins_of_its_base(project: Project) -> None:
    """Issue 2.5: x under its base's pins, with only the increment."""
    project.wheel("core", "1.0")
    project.lock(layer("office", ["core"]))
    project.wheel("core", "2.0")
    project.wheel("plot", "1.0", "core>=1", "color")
    project.wheel("color", "1.0")
    lock = project.lock(layer("viz", ["plot"], on="office"))
    assert pins(lock) == {"color": "1.0", "plot": "1.0"}
    assert lock.base is not None
    assert lock.base.digest == read_lock(project.path("office")).digest
    assert next(p for p in lock.packages if p.name == "plot").dependencies == ("color", "core")


def test_an_x_lock_is_stale_when_its_base_moved_and_keeps_its_bytes_otherwise(project: Project) -> None:
    """Issue 2.5: locks re-lock in dependency order when a base moved."""
    project.wheel("core", "1.0")
    base, viz = layer("office", ["core"]), layer("viz", ["plot"], on="office")
    project.lock(base)
    project.wheel("plot", "1.0", "core")
    lock = project.lock(viz)
    assert staleness(viz, lock, read_lock(project.path("office")), project.root) == ()
    project.wheel("core", "2.0")
    moved = project.lock(base, upgrade=True)
    assert staleness(viz, lock, moved, project.root) == ("the lock of the base `office` changed",)
    assert pins(project.lock(viz)) == {"plot": "1.0"}


def test_a_base_with_overrides_carries_them_to_its_x_layers(project: Project) -> None:
    project.wheel("core", "2.0")
    project.wheel("old", "1.0", "core<2")
    project.lock(layer("office", ["old", "core"], overrides=["core>=2"]))
    project.wheel("plot", "1.0", "old", "core")
    assert pins(project.lock(layer("viz", ["plot"], on="office"))) == {"plot": "1.0"}


def test_a_local_wheel_wins_over_the_index(project: Project) -> None:
    """Issue 2.6: local wheels."""
    project.wheel("alpha", "9.0")
    project.wheel("beta", "1.0")
    vendored = make_wheel(project.root / "vendor", "alpha", "1.0", requires=["beta"])
    spec = layer("office", ["alpha"], wheels=[f"vendor/{vendored.name}"])
    lock = project.lock(spec)
    assert pins(lock) == {"alpha": "1.0", "beta": "1.0"}
    wheel = lock.packages[0].wheel(X86)
    assert wheel is not None
    assert (wheel.path, wheel.sha256) == (f"../vendor/{vendored.name}", sha256(vendored))

    make_wheel(project.root / "vendor", "alpha", "1.0", requires=["beta"], files={"alpha.py": "changed"})
    (reason,) = staleness(spec, lock, None, project.root)
    assert reason == f"the wheel vendor/{vendored.name} has other bytes"
    project.wheel("plot", "1.0", "alpha")
    project.lock(spec)
    assert pins(project.lock(layer("viz", ["plot"], on="office"))) == {"plot": "1.0"}


def test_a_local_wheel_that_nothing_requires_is_warned_of(project: Project) -> None:
    project.wheel("beta", "1.0")
    vendored = make_wheel(project.root / "vendor", "alpha", "1.0")
    lock = project.lock(layer("office", ["beta"], wheels=[f"vendor/{vendored.name}"]))
    assert pins(lock) == {"beta": "1.0"}
    assert [warning.code for warning in project.reporter.warnings] == ["lock-wheel-unused"]


def test_constraints_overrides_excludes_and_prereleases_take_part(project: Project) -> None:
    for version in ("1.0", "2.0", "3.0rc1"):
        project.wheel("alpha", version, "beta<2", "gamma")
    for version in ("1.0", "2.0"):
        project.wheel("beta", version)
    project.wheel("gamma", "1.0")
    assert pins(project.lock(layer("a", ["alpha"], constraints=["alpha<2"])))["alpha"] == "1.0"
    assert pins(project.lock(layer("b", ["alpha"], overrides=["beta>=2"])))["beta"] == "2.0"
    assert "gamma" not in pins(project.lock(layer("c", ["alpha"], excludes=("gamma",))))
    assert pins(project.lock(layer("d", ["alpha"], prereleases=True)))["alpha"] == "3.0rc1"


def test_exclude_newer_is_a_date_or_an_age(project: Project) -> None:
    old, new = project.wheel("alpha", "1.0"), project.wheel("alpha", "2.0")
    project.index.upload_times = {old.name: "2026-05-01T00:00:00Z", new.name: "2026-05-30T12:00:00Z"}
    assert pins(project.lock(layer("a", ["alpha"])))["alpha"] == "2.0"
    assert pins(project.lock(layer("b", ["alpha"], exclude_newer="2026-05-29")))["alpha"] == "1.0"
    assert pins(project.lock(layer("c", ["alpha"], exclude_newer="2026-05-30")))["alpha"] == "2.0"
    spec = layer("d", ["alpha"], exclude_newer="7 days")
    assert pins(project.lock(spec))["alpha"] == "1.0"
    before = project.path("d").read_bytes()
    project.lock(spec, now=datetime(2027, 1, 1, tzinfo=UTC))
    assert project.path("d").read_bytes() == before


def test_sizes_and_hashes_that_an_index_does_not_tell_are_measured(project: Project) -> None:
    wheel = project.wheel("alpha", "1.0")
    for json, hashes in ((False, True), (False, False), (True, False)):
        project.index.json, project.index.hashes, project.index.sizes = json, hashes, False
        locked = project.try_lock(layer("office", ["alpha"]), upgrade=True).lock.packages[0].wheel(X86)
        assert locked is not None
        assert (locked.sha256, locked.size) == (sha256(wheel), wheel.stat().st_size)


def test_the_same_name_with_other_bytes_is_refused(project: Project) -> None:
    """Issue 2.7: hash mismatch."""
    project.wheel("alpha", "1.0")
    project.lock(layer("office", ["alpha"]))
    make_wheel(project.index.directory, "alpha", "1.0", files={"alpha.py": "evil = True"})
    project.wheel("beta", "1.0")
    project.environment["UV_CACHE_DIR"] += "-2"
    error = project.refusal(layer("office", ["alpha", "beta"]))
    assert error.code == "lock-hash-mismatch"
    assert "alpha-1.0-py3-none-any.whl" in str(error)


def test_an_empty_layer_has_a_lock(project: Project) -> None:
    lock = project.lock(layer("office", []))
    assert lock.packages == ()
    assert staleness(layer("office", []), lock, None, project.root) == ()


def test_an_index_with_files_for_others_moves_no_pin_where_the_best_match_counts(project: Project) -> None:
    """Issue 2.5 and 2.6: with pip's configuration, an extra index may know a version and have no file of it for us."""
    extra = project.root.parent / "extra"
    page = extra / "simple" / "alpha" / "index.html"
    page.parent.mkdir(parents=True)
    other = make_wheel(extra, "alpha", "1.1", tag="cp311-cp311-manylinux_2_17_x86_64")
    page.write_text(f'<a href="../../{other.name}">{other.name}</a>')
    for version in ("1.0", "1.1"):
        project.wheel("alpha", version, tag="cp312-cp312-manylinux_2_17_x86_64")
        project.wheel("alpha", version, tag="cp312-cp312-manylinux_2_17_aarch64")
    project.wheel("beta", "1.0")
    project.sources = []
    project.environment |= {
        "PIP_INDEX_URL": project.index.simple,
        "PIP_EXTRA_INDEX_URL": (extra / "simple").as_uri(),
    }
    assert pins(project.lock(layer("office", ["alpha"], platforms=[X86, ARM]))) == {"alpha": "1.1"}
    project.wheel("alpha", "1.2", tag="cp312-cp312-manylinux_2_17_x86_64")
    lock = project.lock(layer("office", ["alpha", "beta"], platforms=[X86, ARM]))
    assert pins(lock) == {"alpha": "1.1", "beta": "1.0"}
    project.wheel("beta", "2.0")
    lock = project.lock(layer("office", ["alpha", "beta>=2"], platforms=[X86, ARM]))
    assert pins(lock) == {"alpha": "1.1", "beta": "2.0"}


def test_releases_that_ask_for_a_patch_release_are_not_passed_over(project: Project) -> None:
    """A layer for 3.12 is one for its newest patch release, not for 3.12.0."""
    make_wheel(project.index.directory, "alpha", "1.0")
    make_wheel(project.index.directory, "alpha", "2.0", extra_metadata="Requires-Python: >=3.12.4\n")
    project.wheel("beta", "1.0", "gamma; python_full_version < '3.12.4'")
    lock = project.lock(layer("office", ["alpha", "beta"]))
    assert {package.name: package.version for package in lock.packages} == {"alpha": "2.0", "beta": "1.0"}


def test_a_feature_release_that_uv_does_not_know_stays_what_it_is() -> None:
    assert newest_patch(PythonVersion(99)) == "3.99"
    assert re.fullmatch(r"3\.12\.\d+", newest_patch(PythonVersion(12)))

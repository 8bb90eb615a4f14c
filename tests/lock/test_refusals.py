"""Issue 2.7: errors worth having. Each names what hinders, where it is required, and what to do."""

from __future__ import annotations

import re

import pytest

from envdsl.errors import ExitStatus
from envdsl.lock.source import IndexSource
from envdsl.model.names import Platform
from tests.lock.conftest import ARM, X86, Project, layer
from tests.lock.index import make_sdist
from tests.wheels import make_wheel


def test_a_conflict_with_the_base_names_the_pin_and_suggests_iso(project: Project) -> None:
    """Issue 2.7: conflict with the base's pin."""
    project.wheel("numpy", "2.1")
    project.wheel("numpy", "1.26")
    project.wheel("extra", "1.0")
    project.lock(layer("office", ["numpy"]))
    error = project.refusal(layer("old", ["extra", "numpy<2"], on="office"))
    assert error.code == "lock-base-conflict"
    assert str(error) == "`old` cannot stand on `office`: it needs numpy<2, but `office` pins numpy 2.1"
    diagnostic = error.diagnostics[0]
    assert diagnostic.hint is not None
    assert "iso old" in diagnostic.hint
    assert str(diagnostic.span) == "layers.d/old.layer:2:1"


def test_a_conflict_with_the_base_through_a_dependency_names_who_wants_what(project: Project) -> None:
    """Issue 2.7: conflict with the base's pin, at one remove."""
    project.wheel("numpy", "2.1")
    project.lock(layer("office", ["numpy"]))
    project.wheel("learn", "1.0", "numpy<2,>=1.19")
    project.wheel("app", "1.0", "learn")
    error = project.refusal(layer("ml", ["app"], on="office"))
    assert error.code == "lock-base-conflict"
    assert re.search("learn(==1.0)? needs numpy", str(error)), error.diagnostics[0].details
    assert "`office` pins numpy 2.1" in str(error)
    assert str(error.diagnostics[0].span) == "layers.d/ml.layer:1:1"


def test_a_conflict_among_the_layers_own_requirements_is_explained(project: Project) -> None:
    """Issue 2.7: the layer contradicts itself."""
    project.wheel("a", "1.0", "core<2")
    project.wheel("b", "1.0", "core>=2")
    project.wheel("core", "1.0")
    project.wheel("core", "2.0")
    error = project.refusal(layer("office", ["a", "b"]))
    assert error.code == "lock-unsatisfiable"
    assert "core<2" in str(error)
    assert "core>=2" in str(error)
    assert "× " not in str(error)
    assert "hint:" not in str(error)


def test_sdist_only_names_the_package(project: Project) -> None:
    """Issue 2.7: a requirement that has only an sdist; nothing is built."""
    make_sdist(project.index.directory, "sourceonly", "1.0")
    project.wheel("app", "1.0", "sourceonly")
    error = project.refusal(layer("office", ["app"]))
    assert error.code == "lock-sdist-only"
    assert "sourceonly has no wheels" in str(error)
    assert str(error.diagnostics[0].span) == "layers.d/office.layer:1:1"
    assert not [name for name in project.index.downloads() if name.endswith(".tar.gz")]


def test_no_wheel_for_a_declared_platform_names_both(project: Project) -> None:
    """Issue 2.7: no wheel for a declared platform, and which."""
    project.wheel("alpha", "1.0", tag="cp312-cp312-manylinux_2_17_x86_64")
    error = project.refusal(layer("office", ["alpha"], platforms=[X86, ARM]))
    assert error.code == "lock-no-wheel-for-platform"
    assert str(error).startswith("alpha has no wheel for manylinux_2_28_aarch64 with Python 3.12")
    assert "manylinux_2_17_x86_64" in (error.diagnostics[0].hint or "")


def test_wheels_for_others_are_not_called_source_distributions(project: Project) -> None:
    """Issue 2.7: a source distribution that lies beside the wheels does not make the package one without wheels."""
    make_sdist(project.index.directory, "alpha", "1.0")
    make_sdist(project.index.directory, "alpha", "2.0")
    project.wheel("alpha", "1.0", tag="cp39-cp39-manylinux_2_17_x86_64")
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-no-wheel-for-platform"
    assert "cp39-manylinux_2_17_x86_64" in (error.diagnostics[0].hint or "")
    # but where the only versions that are allowed have none, it is one
    assert project.refusal(layer("other", ["alpha>=2"])).code == "lock-sdist-only"


def test_no_wheel_for_the_python_is_the_same_error(project: Project) -> None:
    project.wheel("alpha", "1.0", tag="cp311-cp311-manylinux_2_17_x86_64")
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-no-wheel-for-platform"
    assert "Python 3.12" in str(error)


def test_a_local_wheel_for_another_platform_is_refused(project: Project) -> None:
    wheel = make_wheel(project.root / "vendor", "alpha", "1.0", tag="cp312-cp312-linux_x86_64")
    project.wheel("alpha", "1.0")
    error = project.refusal(layer("office", ["alpha"], platforms=[X86, ARM], wheels=[f"vendor/{wheel.name}"]))
    assert error.code == "lock-no-wheel-for-platform"
    assert f"vendor/{wheel.name}" in str(error)


def test_an_unknown_package_is_named_at_its_place(project: Project) -> None:
    """Issue 2.7: unknown package."""
    project.wheel("alpha", "1.0")
    error = project.refusal(layer("office", ["alpha", "nosuchthing>=1"]))
    assert error.code == "lock-unknown-package"
    assert "`nosuchthing`" in str(error)
    assert str(error.diagnostics[0].span) == "layers.d/office.layer:2:1"


def test_a_version_that_is_not_there_is_named(project: Project) -> None:
    project.wheel("alpha", "1.0")
    error = project.refusal(layer("office", ["alpha>=2"]))
    assert error.code == "lock-no-version"
    assert "alpha" in str(error)
    assert "1.0" in str(error)


def test_a_package_for_a_newer_python_is_named(project: Project) -> None:
    make_wheel(project.index.directory, "alpha", "1.0", extra_metadata="Requires-Python: >=3.13\n")
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-python", error.diagnostics[0].details
    assert "3.13" in str(error)


def test_a_yanked_version_is_refused_when_it_is_required_exactly(project: Project) -> None:
    """Issue 2.7: yanked."""
    project.wheel("alpha", "1.0")
    wheel = project.wheel("alpha", "1.1")
    project.index.yanked = {wheel.name: "deletes everything"}
    error = project.refusal(layer("office", ["alpha==1.1"]))
    assert error.code == "lock-yanked"
    assert "alpha 1.1 is yanked (deletes everything)" in str(error)


def test_a_pin_that_was_yanked_since_moves_when_the_layer_is_locked_anew(project: Project) -> None:
    """Issue 2.7: yanked versions are refused on lock, the old pin included."""
    project.wheel("alpha", "1.0")
    wheel = project.wheel("alpha", "1.1")
    project.lock(layer("office", ["alpha"]))
    project.index.yanked = {wheel.name: ""}
    project.wheel("beta", "1.0")
    project.environment["UV_CACHE_DIR"] += "-2"
    lock = project.lock(layer("office", ["alpha", "beta"]))
    assert [(p.name, p.version) for p in lock.packages] == [("alpha", "1.0"), ("beta", "1.0")]


def test_an_index_that_nobody_answers_for_is_named_after_the_retries(project: Project) -> None:
    """Issue 2.7: index unreachable, exit status "environment"."""
    project.sources = [IndexSource.of("http://bob:s3cretword@127.0.0.1:9/simple", default=True)]
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-index-unreachable"
    assert error.exit_status is ExitStatus.ENVIRONMENT
    assert "http://127.0.0.1:9/simple" in str(error)
    assert "refused" in str(error)
    assert "s3cretword" not in repr(error.diagnostics)


def test_an_index_that_fails_is_unreachable_too(project: Project) -> None:
    project.wheel("alpha", "1.0")
    project.index.statuses["alpha"] = [503] * 9
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-index-unreachable"
    assert "503" in str(error)


def test_an_index_that_fails_once_is_asked_again(project: Project) -> None:
    project.wheel("alpha", "1.0")
    project.index.statuses["alpha"] = [503]
    assert project.lock(layer("office", ["alpha"])).packages


def test_wrong_credentials_are_said_to_be_wrong(project: Project) -> None:
    project.wheel("alpha", "1.0")
    project.index.auth = ("bob", "right")
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-index-credentials"
    assert error.exit_status is ExitStatus.ENVIRONMENT


def test_offline_without_a_cache_says_what_is_missing(project: Project) -> None:
    """Issue 2.7: offline and not cached."""
    project.wheel("alpha", "1.0")
    error = project.refusal(layer("office", ["alpha"]), offline=True)
    assert error.code == "lock-offline"
    assert "alpha" in str(error)
    assert error.exit_status is ExitStatus.ENVIRONMENT
    assert project.index.requests == []


def test_offline_resolves_from_the_cache_and_from_the_wheelhouse(project: Project) -> None:
    """Issue 2.6: the wheelhouse is a source."""
    project.wheel("alpha", "1.0")
    project.lock(layer("office", ["alpha"]))
    project.index.requests.clear()
    wheelhouse = project.root / "store" / "wheelhouse"
    make_wheel(wheelhouse / ("0" * 64), "beta", "1.0")
    lock = project.lock(layer("office", ["alpha", "beta"]), offline=True, wheelhouse=wheelhouse)
    assert [package.name for package in lock.packages] == ["alpha", "beta"]
    assert project.index.requests == []


def test_an_x_layer_needs_the_lock_of_its_base(project: Project) -> None:
    error = project.refusal(layer("viz", ["plot"], on="office"))
    assert error.code == "lock-base-not-locked"


def test_a_pin_of_the_base_that_no_index_has_any_more_is_named(project: Project) -> None:
    wheel = project.wheel("core", "1.0")
    project.lock(layer("office", ["core"]))
    wheel.unlink()
    project.wheel("core", "2.0")
    project.wheel("plot", "1.0", "core")
    project.environment["UV_CACHE_DIR"] += "-2"
    error = project.refusal(layer("viz", ["plot"], on="office"))
    assert error.code == "lock-base-pin-missing"
    assert "core 1.0" in str(error)


def test_all_versions_being_too_new_is_said(project: Project) -> None:
    project.wheel("alpha", "1.0")
    error = project.refusal(layer("office", ["alpha"], exclude_newer="2001-01-01"))
    assert error.code == "lock-exclude-newer"
    assert "2001-01-01" in str(error)
    assert project.refusal(layer("office", ["alpha"], exclude_newer="soon")).code == "lock-exclude-newer-value"


def test_an_index_that_tells_no_upload_times_is_not_said_to_have_new_files(project: Project) -> None:
    project.wheel("alpha", "1.0")
    project.index.default_upload_time = None
    error = project.refusal(layer("office", ["alpha"], exclude_newer="7 days"))
    assert error.code == "lock-exclude-newer"
    assert "does not say when alpha was uploaded" in str(error)


def test_a_dependency_of_which_no_version_fits_is_named_with_who_wants_it(project: Project) -> None:
    project.wheel("a", "1.0", "b>1")
    project.wheel("b", "1.0")
    error = project.refusal(layer("office", ["a"]))
    assert error.code == "lock-no-version"
    assert re.fullmatch(r"a(==1.0)? requires b>1, and there is only b==1.0", str(error))


def test_a_local_wheel_that_is_broken_is_named(project: Project) -> None:
    vendor = project.root / "vendor"
    vendor.mkdir()
    (vendor / "alpha-1.0-py3-none-any.whl").write_bytes(b"junk")
    error = project.refusal(layer("office", ["alpha"], wheels=["vendor/alpha-1.0-py3-none-any.whl"]))
    assert error.code == "lock-wheel-unreadable"
    assert "vendor/alpha-1.0-py3-none-any.whl" in str(error)


def test_a_wheel_for_a_newer_c_library_is_no_wheel_for_the_platform(project: Project) -> None:
    project.wheel("alpha", "1.0", tag="cp312-cp312-musllinux_1_2_x86_64")
    for platform in ("musllinux_1_1_x86_64", "manylinux_2_12_x86_64"):
        error = project.refusal(layer("office", ["alpha"], platforms=[Platform.parse(platform)]))
        assert error.code == "lock-no-wheel-for-platform"
        assert platform in str(error)


def test_wheels_that_are_not_there_or_not_named_like_one(project: Project) -> None:
    assert project.refusal(layer("office", [], wheels=["vendor/a-1-py3-none-any.whl"])).code == "lock-wheel-missing"
    (project.root / "odd.whl").write_bytes(b"")
    assert project.refusal(layer("office", [], wheels=["odd.whl"])).code == "lock-wheel-name"


def test_uv_that_is_missing_or_too_old_is_said(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 2.7: uv missing or too old."""
    from envdsl.lock import uv

    old = project.root / "uv"
    old.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo "uv 0.5.0"; exit 0; fi\n'
        "echo \"error: unexpected argument '--excludes' found\" >&2; exit 2\n"
    )
    old.chmod(0o755)
    monkeypatch.setattr(uv, "find_uv", lambda: old)
    error = project.refusal(layer("office", ["alpha"]))
    assert error.code == "lock-uv-too-old"
    assert "uv 0.5.0" in str(error)

    def missing() -> None:
        raise FileNotFoundError

    monkeypatch.undo()
    uv.find_uv.cache_clear()
    monkeypatch.setattr("uv.find_uv_bin", missing)
    try:
        error = project.refusal(layer("office", ["alpha"]))
    finally:
        uv.find_uv.cache_clear()
    assert error.code == "lock-uv-missing"
    assert error.exit_status is ExitStatus.ENVIRONMENT

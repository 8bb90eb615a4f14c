"""The small parts: tags, cut-off dates, staleness, uv's names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.evaluate.spec import Requirement, Spec, Waivers
from envdsl.lock.cutoff import cutoff
from envdsl.lock.freshness import inputs_digest, order, staleness
from envdsl.lock.tags import best, platform_tags, ranks
from envdsl.lock.uv import python_platform
from envdsl.model.names import Platform, PythonVersion
from tests.lock.conftest import ARM, X86, Project, layer
from tests.wheels import make_wheel

PYTHON = PythonVersion(12)


def test_tags_are_those_of_packaging_for_this_machine() -> None:
    """Ours are for any platform; for the one we run on they must be the interpreter's own."""
    import sys
    import sysconfig

    from packaging import tags

    own = list(tags.platform_tags())
    newest = next((tag for tag in own if tag.startswith("manylinux_")), None)
    if newest is None or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("not a glibc machine, or no build with a GIL")
    here = Platform.parse(newest)
    assert list(platform_tags(here)) == own
    order = ranks(PythonVersion(sys.version_info.minor), here)
    assert sorted(order, key=lambda tag: order[tag]) == list(tags.sys_tags())


def test_the_best_wheel_is_the_most_specific_that_runs() -> None:
    offered = [
        "a-1-py3-none-any.whl",
        "a-1-cp312-abi3-manylinux_2_28_x86_64.whl",
        "a-1-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        "a-1-cp312-cp312-manylinux_2_28_x86_64.whl",
        "a-1-2b-cp312-cp312-manylinux_2_28_x86_64.whl",
        "a-1-cp312-cp312-manylinux_2_39_x86_64.whl",
        "a-1-cp313-cp313-manylinux_2_28_x86_64.whl",
        "a-1-cp312-cp312-musllinux_1_2_x86_64.whl",
    ]
    assert best(offered, PYTHON, X86) == "a-1-2b-cp312-cp312-manylinux_2_28_x86_64.whl"
    assert best(offered, PYTHON, ARM) == "a-1-py3-none-any.whl"
    assert best(offered, PYTHON, Platform.parse("manylinux_2_17_x86_64")) == offered[2]
    assert best(offered, PYTHON, Platform.parse("musllinux_1_2_x86_64")) == offered[-1]
    assert best(offered[1:], PYTHON, Platform.parse("musllinux_1_1_x86_64")) is None


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        ("manylinux_2_28_x86_64", "x86_64-manylinux_2_28"),
        ("manylinux_2_30_aarch64", "aarch64-manylinux_2_28"),
        ("manylinux_2_12_x86_64", "x86_64-manylinux_2_17"),
        ("manylinux_2_99_x86_64", "x86_64-manylinux_2_40"),
        ("musllinux_1_2_aarch64", "aarch64-unknown-linux-musl"),
    ],
)
def test_platforms_in_uvs_words(platform: str, name: str) -> None:
    assert python_platform(Platform.parse(platform)) == name


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", "2026-02-01T00:00:00Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00Z"),
        ("7 days", "2026-05-25T06:00:00Z"),
        ("1 week", "2026-05-25T06:00:00Z"),
        ("36 hours", "2026-05-30T18:00:00Z"),
    ],
)
def test_cut_offs(text: str, moment: str) -> None:
    assert cutoff(text, datetime(2026, 6, 1, 6, tzinfo=UTC)) == moment


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "-1 days", "7 months", "2026-1-1", ""])
def test_what_is_no_cut_off_is_an_error(text: str) -> None:
    with pytest.raises(EnvdslError) as caught:
        cutoff(text, datetime(2026, 6, 1, tzinfo=UTC))
    assert caught.value.code == "lock-exclude-newer-value"


def test_a_stale_lock_says_what_changed(project: Project) -> None:
    """Issue 2.7: a stale lock, and what changed; without network."""
    project.wheel("alpha", "1.0")
    project.wheel("beta", "1.0")
    spec = layer("office", ["alpha"], constraints=["beta<9"])
    lock = project.lock(spec)
    project.index.requests.clear()
    vendored = make_wheel(project.root / "vendor", "gamma", "1.0")

    def why(**changes: object) -> tuple[str, ...]:
        return staleness(replace(spec, **changes), lock, None, project.root)  # type: ignore[arg-type]

    assert why() == ()
    assert why(packages=(Requirement("alpha"), Requirement("beta>=2"))) == ("`packages` gained beta>=2",)
    assert why(packages=(), constraints=()) == ("`packages` lost alpha", "`constraints` lost beta<9")
    assert why(packages=(Requirement("alpha>1"),)) == ("`packages` gained alpha>1", "`packages` lost alpha")
    assert why(python=PythonVersion(13)) == ("`python` changed from 3.12 to 3.13",)
    assert why(platforms=(ARM, X86)) == ("`platforms` gained manylinux_2_28_aarch64",)
    assert why(prereleases=True) == ("`prereleases` is now true",)
    assert why(exclude_newer="7 days") == ("`exclude-newer` is now 7 days",)
    assert why(index=("internal",)) == ("`index` gained internal",)
    wheels = layer("x", wheels=[f"vendor/{vendored.name}"]).wheels
    assert why(wheels=wheels) == (f"`wheels` gained vendor/{vendored.name}",)
    unrelated = {
        "description": "other",
        "meta": {"a": 1},
        "probe": ("alpha",),
        "env": (("A", "b"),),
        "sources": wheels,
        "bytecode": False,
        "allow": Waivers(collisions=("x",)),
    }
    assert why(**unrelated) == ()
    assert project.index.requests == []


def test_the_digest_of_the_inputs_knows_no_order_but_that_of_the_indexes(tmp_path: Path) -> None:
    one = layer("a", ["x", "y"], platforms=[X86, ARM], index=("i", "j"))
    other = layer("b", ["y", "x"], platforms=[ARM, X86], index=("i", "j"))
    assert inputs_digest(one, tmp_path) == inputs_digest(other, tmp_path)
    assert inputs_digest(replace(one, index=("j", "i")), tmp_path) != inputs_digest(one, tmp_path)


def test_layers_are_locked_after_their_bases() -> None:
    layers = [layer("a", on="z"), layer("z"), layer("b", kind="iso")]
    spec = Spec({item.name: item for item in layers}, {})
    assert [item.name for item in order(spec)] == ["b", "z", "a"]

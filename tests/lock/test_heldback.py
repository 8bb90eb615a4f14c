"""``exclude-newer`` as a cool-down, and what it holds back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from envdsl.lock.heldback import HeldBack, Undated, held_back
from envdsl.lock.pages import Pages
from envdsl.lock.source import IndexSource
from tests.lock.conftest import ARM, NOW, X86, Project, layer, pins
from tests.wheels import make_wheel


def publish(project: Project, name: str, version: str, days_ago: float, tag: str = "py3-none-any") -> None:
    wheel = project.wheel(name, version, tag=tag)
    project.index.upload_times[wheel.name] = (NOW - timedelta(days=days_ago)).isoformat()


def asked(project: Project, **spec: object) -> HeldBack | Undated | None:
    """What is held back of `alpha` in a layer with ``spec``, which is locked first."""
    declared = layer("office", [str(spec.pop("package", "alpha"))], **spec)  # type: ignore[arg-type]
    lock = project.lock(declared)
    (package,) = [item for item in lock.packages if item.name == "alpha"]
    configuration = project.configuration.restricted(declared.index)
    return held_back(declared, package, pages=Pages(configuration), configuration=configuration, now=NOW)


def test_each_layer_has_its_own_age(project: Project) -> None:
    """Issue 5.5: `exclude-newer` as a cool-down, counted back from now for each layer."""
    for version, days in (("1.0", 30), ("2.0", 10), ("3.0", 1)):
        publish(project, "alpha", version, days)
    ages = {"none": None, "hours": "12 hours", "days": "7 days", "weeks": "2 weeks", "date": "2026-05-10"}
    found = {name: pins(project.lock(layer(name, ["alpha"], exclude_newer=age)))["alpha"] for name, age in ages.items()}
    assert found == {"none": "3.0", "hours": "3.0", "days": "2.0", "weeks": "1.0", "date": "1.0"}


def test_what_is_too_young_is_named_with_the_time_when_it_is_old_enough(project: Project) -> None:
    """Issue 5.5: what was held back and until when."""
    publish(project, "alpha", "1.0", 30)
    publish(project, "alpha", "2.0", 3)
    publish(project, "alpha", "2.1", 2)
    assert asked(project, exclude_newer="7 days") == HeldBack(
        "alpha", "1.0", "2.1", NOW - timedelta(days=2), NOW + timedelta(days=5)
    )
    assert asked(project, exclude_newer="2026-05-10") == HeldBack(
        "alpha", "1.0", "2.1", datetime(2026, 5, 30, tzinfo=UTC), None
    )
    assert asked(project, exclude_newer="1 day") is None


def test_only_what_the_layer_could_have_counts(project: Project) -> None:
    publish(project, "alpha", "1.0", 30)
    publish(project, "alpha", "2.0", 1)
    publish(project, "alpha", "3.0a1", 1)
    publish(project, "alpha", "3.1", 1, tag="cp314-cp314-manylinux_2_28_x86_64")
    yanked = project.wheel("alpha", "3.2")
    project.index.upload_times[yanked.name] = NOW.isoformat()
    project.index.yanked[yanked.name] = "broken"
    later = make_wheel(project.index.directory, "alpha", "3.3", extra_metadata="Requires-Python: >=3.13\n")
    project.index.upload_times[later.name] = NOW.isoformat()
    project.index.requires_python[later.name] = ">=3.13"
    found = asked(project, exclude_newer="7 days")
    assert isinstance(found, HeldBack)
    assert found.version == "2.0"
    assert asked(project, package="alpha<2", exclude_newer="7 days") is None


def test_a_version_counts_from_when_all_platforms_had_a_wheel(project: Project) -> None:
    publish(project, "alpha", "1.0", 30)
    publish(project, "alpha", "2.0", 20, tag="cp312-cp312-manylinux_2_28_x86_64")
    both = {"exclude_newer": "7 days", "platforms": (X86, ARM)}
    assert asked(project, **both) is None  # there is none for the other platform: nothing is held back
    publish(project, "alpha", "2.0", 2, tag="cp312-cp312-manylinux_2_28_aarch64")
    found = asked(project, **both)
    assert isinstance(found, HeldBack)
    assert found.eligible == NOW + timedelta(days=5)


def test_an_index_that_tells_no_times_is_said_to(project: Project) -> None:
    publish(project, "alpha", "1.0", 30)
    declared = layer("office", ["alpha"], exclude_newer="7 days")
    lock = project.lock(declared)
    project.wheel("alpha", "2.0")
    project.index.upload_times.clear()
    project.index.default_upload_time = None
    configuration = project.configuration
    found = held_back(declared, lock.packages[0], pages=Pages(configuration), configuration=configuration, now=NOW)
    assert found == Undated(IndexSource.of(project.index.simple, default=True))


@pytest.mark.parametrize("public_first", [False, True])
def test_a_private_name_is_compared_with_its_own_index(project: Project, public_first: bool) -> None:
    from tests.lock.index import serve

    publish(project, "alpha", "1.0", 30)
    declared = layer("office", ["alpha"], exclude_newer="7 days")
    lock = project.lock(declared)
    with serve(project.root / "other", default_upload_time=NOW.isoformat()) as other:
        make_wheel(other.directory, "alpha", "9.0")
        own = IndexSource.of(project.index.simple, name="own", packages=("alpha",))
        others = IndexSource.of(other.simple, name="other", default=not public_first)
        project.sources = [others, own] if public_first else [own, others]
        configuration = project.configuration
        assert (
            held_back(declared, lock.packages[0], pages=Pages(configuration), configuration=configuration, now=NOW)
            is None
        )
        assert other.requests == []

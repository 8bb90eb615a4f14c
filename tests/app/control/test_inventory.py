"""What layers the store has, what is in them, and who uses them."""

from __future__ import annotations

import shutil

import pytest

from envdsl.app.control import inventory
from envdsl.errors import EnvdslError
from tests.app.control.stage import Stage


def by_name(stage: Stage) -> dict[str, inventory.StoredLayer]:
    return {name: layer for layer in inventory.layers(stage.project) for name in layer.names}


def test_layers_are_named_as_projects_and_sessions_call_them(stage: Stage) -> None:
    """Issue 4.8: layers, what is in them, who uses them, size, age."""
    stage.session("report", "core", "one")
    stage.session("other", "core")
    found = by_name(stage)
    assert list(found) == ["core", "alone", "one"]
    core, one = found["core"], found["one"]
    assert (core.kind, core.packages, core.base, core.sessions) == ("base", 2, None, ("other", "report"))
    assert (one.kind, one.packages, one.base, one.sessions) == ("x", 1, core.id, ("report",))
    assert core.size > 0
    assert core.registered <= core.used


def test_a_summary_counts_the_layers_that_no_session_is_bound_to(stage: Stage) -> None:
    stage.session("other", "core")
    found = inventory.summary(stage.project)
    assert (found.sessions, found.layers, found.unused) == (1, 3, 2)
    assert found.free > 0


def test_the_contents_of_a_layer_name_each_wheel_its_imports_and_what_keeps_the_layer(stage: Stage) -> None:
    stage.session("report", "core", "one")
    contents = inventory.layer(stage.project, by_name(stage)["core"].id)
    assert [(package.name, package.version) for package in contents.packages] == [("learn", "1.0"), ("numpy", "2.1")]
    assert contents.packages[0].wheel == "learn-1.0-py3-none-any.whl"
    assert contents.packages[0].imports == ("learn",)
    assert contents.packages[0].licence is None
    assert contents.environment == (("FLAVOUR", "core"),)
    assert "session report" in contents.held_by


@pytest.mark.parametrize("identifier", ["x-nothing", "core", "../core", "base-" + "0" * 32])
def test_what_is_no_layer_of_the_store_is_an_error(stage: Stage, identifier: str) -> None:
    with pytest.raises(EnvdslError) as caught:
        inventory.layer(stage.project, identifier)
    assert caught.value.code == "app-unknown-layer"


def test_what_somebody_removed_or_damaged_by_hand_hides_nothing_else(stage: Stage) -> None:
    manifest = stage.session("report", "core", "one")
    stage.session("other", "core")
    layout = stage.project.store.layout
    (layout.sessions / "report" / "manifest.json").write_text("{")
    place = layout.layers / str(manifest.layers[1].id)
    for path in (place, *place.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    shutil.rmtree(place)
    assert {name: layer.sessions for name, layer in by_name(stage).items()} == {"core": ("other",), "alone": ()}


def test_foundations_are_what_a_session_can_be_rebased_to(stage: Stage) -> None:
    assert inventory.foundations(stage.project) == ("alone", "core")

"""What may be bound together, and what a sandbox gets from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.model.names import LayerKind, Platform, PythonVersion
from envdsl.realise.python import Interpreter
from envdsl.sandbox.plan import MountKind
from envdsl.session.compose import _version_problems, compose
from envdsl.session.manifest import BoundLayer, BoundSource, Manifest
from envdsl.store.layout import Layout
from tests.session.layers import paper_layer

LAYOUT = Layout(Path("/store"))
OFFICE = paper_layer("office", packages={"numpy": "2.1.0"})
VIZ = paper_layer("viz", LayerKind.X, {"seaborn": "0.13"}, base=OFFICE)


def refused(layers: Sequence[BoundLayer], interpreter: Interpreter) -> EnvdslError:
    with pytest.raises(EnvdslError) as caught:
        compose("demo", layers, interpreter, LAYOUT)
    return caught.value


def targets(manifest: Manifest) -> list[str]:
    return [mount.target for mount in manifest.mounts]


def test_the_interpreter_comes_first_on_path_and_the_system_last(paper_interpreter: Interpreter) -> None:
    """Issue 2.13: the absolute managed ``python3``."""
    environment = dict(compose("demo", [OFFICE, VIZ], paper_interpreter, LAYOUT).environment)
    assert environment["PATH"].split(":") == [
        "/store/python/cpython-3.12.9-x/bin",
        f"{OFFICE.path}/bin",
        f"{VIZ.path}/bin",
        "/store/bin",
        "/usr/local/bin",
        "/usr/bin",
        "/bin",
    ]


def test_pythonpath_is_layers_then_sources(paper_interpreter: Interpreter) -> None:
    source = BoundSource("3" * 64, "4" * 64, "/store/sources/abc")
    bare = paper_layer("bare", LayerKind.X, base=OFFICE, sources=[source], directories=[])
    manifest = compose("demo", [OFFICE, VIZ, bare], paper_interpreter, LAYOUT)
    environment = dict(manifest.environment)
    expected = f"{OFFICE.path}/site-packages:{VIZ.path}/site-packages:/store/sources/abc"
    assert environment["PYTHONPATH"] == environment["ENVDSL_SITE_DIRS"] == expected
    assert "/store/sources/abc" in targets(manifest)


def test_the_environment_tells_tools_where_they_are(paper_interpreter: Interpreter) -> None:
    layer = paper_layer("office", environment={"MPLBACKEND": "Agg", "LANG": "de_DE.UTF-8"})
    environment = dict(compose("demo", [layer], paper_interpreter, LAYOUT, time_zone="Europe/Paris").environment)
    assert environment["MPLBACKEND"] == "Agg"
    assert environment["LANG"] == "de_DE.UTF-8"
    assert environment["TZ"] == "Europe/Paris"
    assert environment["PIP_NO_INDEX"] == "1"
    assert environment["ENVDSL_SESSION"] == "demo"
    assert environment["HOME"] == "/home/user"
    assert environment["XDG_CACHE_HOME"] == "/home/user/.cache"
    assert environment["MPLCONFIGDIR"].startswith("/home/user/.cache/")


def test_the_order_in_which_layers_are_named_does_not_matter_for_the_foundation(paper_interpreter: Interpreter) -> None:
    assert compose("demo", [VIZ, OFFICE], paper_interpreter, LAYOUT) == compose(
        "demo", [OFFICE, VIZ, VIZ], paper_interpreter, LAYOUT
    )


def test_few_mounts_and_what_comes_out_of_the_store_last(paper_interpreter: Interpreter) -> None:
    """A prefix that the sandbox's masks would hide is mounted after them."""
    layout = Layout(Path("/home/user/project/store"))
    manifest = compose("demo", [OFFICE, VIZ], paper_interpreter, layout, workspace=Path("/home/user/project"))
    assert [(mount.kind, mount.target) for mount in manifest.mounts] == [
        (MountKind.WRITABLE, "/home/user/.cache"),
        (MountKind.WRITABLE, "/workspace"),
        (MountKind.TMPFS, "/workspace/store"),  # no way to the layers through the project's own directory
        (MountKind.READ_ONLY, "/store/python/cpython-3.12.9-x"),
        (MountKind.READ_ONLY, OFFICE.path),
        (MountKind.READ_ONLY, VIZ.path),
        (MountKind.READ_ONLY, "/home/user/project/store/bin"),
    ]


def test_without_a_workspace_it_is_memory(paper_interpreter: Interpreter) -> None:
    manifest = compose("demo", [OFFICE], paper_interpreter, LAYOUT)
    assert manifest.workspace is None
    assert [mount.kind for mount in manifest.mounts if mount.target == "/workspace"] == [MountKind.TMPFS]


def test_a_running_sandbox_locks_its_layers_and_its_root(paper_interpreter: Interpreter) -> None:
    manifest = compose("demo", [OFFICE, VIZ], paper_interpreter, LAYOUT)
    assert manifest.isolation.lock_files == (
        "/etc/passwd",
        *sorted(f"{layer.path}/layer.json" for layer in (OFFICE, VIZ)),
    )


def test_two_x_layers_with_different_versions_are_refused_and_a_joint_one_is_offered(
    paper_interpreter: Interpreter,
) -> None:
    """Issue 2.13: every distribution has one version across the layers of a session."""
    one = paper_layer("one", LayerKind.X, {"foo": "1", "same": "3"}, base=OFFICE)
    two = paper_layer("two", LayerKind.X, {"foo": "2", "same": "3"}, base=OFFICE)
    diagnostic = refused([OFFICE, one, two], paper_interpreter).diagnostics[0]
    assert diagnostic.code == "session-version-conflict"
    assert diagnostic.message == "one and two bring foo 1 and 2"
    assert "x one-two on office" in (diagnostic.hint or "")


def test_two_x_layers_with_one_version_from_the_same_wheel_go_together(paper_interpreter: Interpreter) -> None:
    one = paper_layer("one", LayerKind.X, {"foo": "1"}, base=OFFICE)
    two = paper_layer("two", LayerKind.X, {"foo": "1", "bar": "1"}, base=OFFICE)
    assert len(compose("demo", [OFFICE, one, two], paper_interpreter, LAYOUT).layers) == 3


def test_an_x_layer_of_another_base_is_refused(paper_interpreter: Interpreter) -> None:
    newer = paper_layer("office", packages={"numpy": "2.2.0"})
    error = refused([newer, VIZ], paper_interpreter)
    assert error.code == "session-base-mismatch"
    assert str(OFFICE.id) in str(error)
    assert str(newer.id) in str(error)


def test_nothing_stands_on_an_iso_layer(paper_interpreter: Interpreter) -> None:
    legacy = paper_layer("legacy", LayerKind.ISO, {"numpy": "1.26"})
    assert refused([legacy, VIZ], paper_interpreter).code == "session-base-mismatch"
    assert compose("demo", [legacy], paper_interpreter, LAYOUT).foundation == legacy


@pytest.mark.parametrize(
    ("layers", "complaint"),
    [
        ([], "none is given"),
        ([VIZ], f"its x layers stand on {OFFICE.id}"),
        ([OFFICE, paper_layer("legacy", LayerKind.ISO)], "these are 2: office, legacy"),
    ],
)
def test_a_session_stands_on_exactly_one_foundation(
    paper_interpreter: Interpreter, layers: list[BoundLayer], complaint: str
) -> None:
    error = refused(layers, paper_interpreter)
    assert error.code == "session-layers"
    assert complaint in str(error)


def test_all_layers_are_for_the_interpreter_and_for_one_platform(paper_interpreter: Interpreter) -> None:
    other = paper_layer(
        "other", LayerKind.X, base=OFFICE, python=PythonVersion(13), platform=Platform("musllinux", 1, 2, "x86_64")
    )
    error = refused([OFFICE, other], paper_interpreter)
    assert [item.code for item in error.diagnostics] == ["session-platform-mismatch", "session-python-mismatch"]


def test_layers_that_contradict_each_other_in_the_environment_are_refused(paper_interpreter: Interpreter) -> None:
    base = paper_layer("office", environment={"A": "1", "B": "1"})
    x = paper_layer("viz", LayerKind.X, base=base, environment={"A": "1", "B": "2"})
    diagnostics = refused([base, x], paper_interpreter).diagnostics
    assert [item.code for item in diagnostics] == ["session-environment-conflict"]
    assert "B" in diagnostics[0].message


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "HOME", "LD_PRELOAD", "ENVDSL_SESSION", "PIP_NO_INDEX"])
def test_a_layer_can_not_take_over_what_the_session_sets(paper_interpreter: Interpreter, name: str) -> None:
    layer = paper_layer("office", environment={name: "/evil"})
    assert refused([layer], paper_interpreter).code == "session-environment-reserved"


@pytest.mark.parametrize("name", ["", ".hidden", "../up", "a/b", "a b", "-x", "a\n", "x" * 101])
def test_a_session_s_name_is_a_plain_file_name(paper_interpreter: Interpreter, name: str) -> None:
    with pytest.raises(EnvdslError) as caught:
        compose(name, [OFFICE], paper_interpreter, LAYOUT)
    assert caught.value.code == "session-name"


@pytest.mark.parametrize("workspace", ["/", "relative", "/store", "/store/sessions/demo/cache", "/bad\udcff"])
def test_a_workspace_lies_outside_the_store(paper_interpreter: Interpreter, workspace: str) -> None:
    with pytest.raises(EnvdslError) as caught:
        compose("demo", [OFFICE], paper_interpreter, LAYOUT, workspace=Path(workspace))
    assert caught.value.code == "session-workspace"


def test_a_store_whose_path_would_split_path_is_refused(paper_interpreter: Interpreter) -> None:
    with pytest.raises(EnvdslError) as caught:
        compose("demo", [OFFICE], paper_interpreter, Layout(Path("/a:b")))
    assert caught.value.code == "session-store"


VERSIONS = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("123"), max_size=6)


@given(first=VERSIONS, second=VERSIONS)
def test_two_x_layers_go_together_exactly_when_their_versions_agree(
    first: dict[str, str], second: dict[str, str]
) -> None:
    layers = [OFFICE, *(paper_layer(n, LayerKind.X, p, base=OFFICE) for n, p in (("one", first), ("two", second)))]
    clashing = {name for name in first.keys() & second.keys() if first[name] != second[name]}
    found = {diagnostic.details["package"] for diagnostic in _version_problems(layers)}
    assert found == clashing

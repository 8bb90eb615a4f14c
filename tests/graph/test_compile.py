from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.evaluate.spec import Spec
from envdsl.graph.compile import choose_platform, compile_graph
from envdsl.graph.derivation import Bytecode, Layer, Unpack, WheelFile
from envdsl.model.names import Platform
from tests.keys.project import HERE, compiled, layer_spec, load, lock_of


def ids(project: dict[str, Any]) -> dict[str, str]:
    return {name: str(layer.id) for name, layer in compiled(project).layers.items()}


def renamed(project: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    text = json.dumps(project).replace(f'"{old}"', f'"{new}"')
    return json.loads(text)  # type: ignore[no-any-return]


def test_a_renamed_layer_keeps_its_id() -> None:
    """Issue 2.8: keys do not depend on a layer's name."""
    before, after = ids(load()), ids(renamed(load(), "office", "documents"))
    assert before.pop("office") == after.pop("documents")
    assert before == after


@given(st.randoms())
def test_the_order_of_declarations_packages_platforms_and_waivers_means_nothing(shuffle: random.Random) -> None:
    """Issue 2.8: keys do not depend on the order in which things are declared."""
    project = load()

    def shuffled(mapping: dict[str, Any]) -> dict[str, Any]:
        items = list(mapping.items())
        shuffle.shuffle(items)
        return dict(items)

    for layer in project["layers"].values():
        shuffle.shuffle(layer["platforms"])
        layer["env"] = shuffled(layer.get("env", {}))
    for packages in project["locks"].values():
        shuffle.shuffle(packages)
        for package in packages:
            package["wheels"] = shuffled(package["wheels"])
    for part in ("layers", "locks", "sources"):
        project[part] = shuffled(project[part])
    assert ids(project) == ids(load())
    assert list(compiled(project).derivations) == list(compiled(load()).derivations)


def test_another_process_user_directory_and_hash_seed_give_the_same_ids() -> None:
    """Issue 2.8: keys do not depend on the machine, the user, the time or a directory."""
    code = (
        "import json; from tests.keys.project import compiled, load;"
        "print(json.dumps({n: str(l.id) for n, l in compiled(load()).layers.items()}))"
    )
    for seed in ("1", "2"):
        environment = {
            "PYTHONHASHSEED": seed,
            "HOME": "/nowhere",
            "USER": f"user{seed}",
            "TZ": "Asia/Tokyo",
            "LC_ALL": "C",
        }
        ran = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=HERE.parents[1],
            env=environment,
        )
        assert json.loads(ran.stdout) == ids(load())


def wheel(project: dict[str, Any]) -> None:
    project["locks"]["office"][1]["wheels"]["manylinux_2_28_x86_64"][1] = "3" * 64


def version_without_another_wheel(project: dict[str, Any]) -> None:
    project["locks"]["office"][0]["wheels"]["manylinux_2_28_x86_64"][0] = "numpy-2.1.1-cp312-cp312-linux_x86_64.whl"


def package_less(project: dict[str, Any]) -> None:
    del project["locks"]["office"][0]


def env(project: dict[str, Any]) -> None:
    project["layers"]["office"]["env"]["MPLBACKEND"] = "pdf"


def python(project: dict[str, Any]) -> None:
    project["layers"]["office"]["python"] = "3.13"


def platform(project: dict[str, Any]) -> None:
    project["layers"]["office"]["platforms"][0] = "manylinux_2_34_x86_64"
    for package in project["locks"]["office"]:
        if "manylinux_2_28_x86_64" in package["wheels"]:
            package["wheels"]["manylinux_2_34_x86_64"] = package["wheels"].pop("manylinux_2_28_x86_64")


def source(project: dict[str, Any]) -> None:
    project["sources"]["lib"] = "0" * 64


def order_of_sources(project: dict[str, Any]) -> None:
    project["layers"]["office"]["sources"].reverse()


def kind(project: dict[str, Any]) -> None:
    project["layers"]["office"]["kind"] = "iso"


def bytecode(project: dict[str, Any]) -> None:
    project["layers"]["office"]["bytecode"] = False


def collisions(project: dict[str, Any]) -> None:
    project["layers"]["office"]["allow"] = {"collisions": ["bin/tool"]}


def record_mismatch(project: dict[str, Any]) -> None:
    project["layers"]["office"]["allow"] = {"record-mismatch": ["Numpy"]}


@pytest.mark.parametrize(
    "change",
    [
        wheel,
        version_without_another_wheel,
        package_less,
        env,
        python,
        platform,
        source,
        order_of_sources,
        kind,
        bytecode,
        collisions,
        record_mismatch,
    ],
)
def test_whatever_a_layer_holds_is_in_its_id_and_in_that_of_what_stands_on_it(
    change: Callable[[dict[str, Any]], None],
) -> None:
    """Issue 2.8: keys depend on content."""
    project = load()
    change(project)
    before, after = ids(load()), ids(project)
    assert before["office"] != after["office"]
    assert before["viz"] != after["viz"]
    assert {name: before[name] for name in ("legacy", "odd", "empty")} == {
        name: after[name] for name in ("legacy", "odd", "empty")
    }


def test_texts_wheels_of_other_platforms_and_unused_sources_are_not_in_an_id() -> None:
    project = load()
    project["sources"]["unused"] = "f" * 64
    project["locks"]["office"][2]["wheels"]["manylinux_2_28_aarch64"][1] = "4" * 64
    project["locks"]["office"][0]["wheels"]["manylinux_2_28_aarch64"][1] = "4" * 64
    assert ids(project) == ids(load())


def test_a_source_that_is_named_twice_is_there_once() -> None:
    project = load()
    project["sources"]["copy"] = project["sources"]["house-style"]
    project["layers"]["office"]["sources"] = ["house-style", "lib", "copy", "house-style"]
    assert ids(project) == ids(load())


def test_layers_share_their_parts() -> None:
    """One object for one wheel: its key is computed once, whatever the number of layers that hold it."""
    project = load()
    project["layers"]["office"]["python"] = project["layers"]["viz"]["python"] = "3.11"
    graph = compiled(project)
    (openpyxl,) = [item for item in graph.layers["office"].unpacks if item.name == "openpyxl"]
    assert graph.layers["legacy"].unpacks[0] is openpyxl


def test_derivations_come_after_what_they_depend_on() -> None:
    graph = compiled(load())
    seen: set[str] = set()
    for key, derivation in graph.derivations.items():
        assert derivation.key == key
        assert {item.key for item in derivation.dependencies()} <= seen
        seen.add(key)
    kinds = [type(item) for item in graph.derivations.values()]
    assert kinds.count(Layer) == len(graph.layers)
    assert kinds.count(WheelFile) == kinds.count(Unpack) == 4
    assert kinds.count(Bytecode) == 4


@pytest.mark.parametrize(
    ("declared", "host", "chosen"),
    [
        ("manylinux_2_28_x86_64 manylinux_2_28_aarch64", "manylinux_2_36_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux_2_28_x86_64 manylinux_2_28_aarch64", "manylinux_2_36_aarch64", "manylinux_2_28_aarch64"),
        ("manylinux_2_17_x86_64 manylinux_2_28_x86_64", "manylinux_2_36_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux_2_17_x86_64 manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64"),
        ("manylinux_2_34_x86_64 manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64"),
        ("musllinux_1_2_x86_64", "manylinux_2_36_x86_64", None),
        ("musllinux_1_1_x86_64 musllinux_1_2_x86_64", "musllinux_1_2_x86_64", "musllinux_1_2_x86_64"),
        ("manylinux_2_28_aarch64", "manylinux_2_36_x86_64", None),
    ],
)
def test_a_host_realises_the_newest_declared_platform_that_it_satisfies(
    declared: str, host: str, chosen: str | None
) -> None:
    found = choose_platform(map(Platform.parse, declared.split()), Platform.parse(host))
    assert (str(found) if found else None) == chosen


def test_layers_for_other_machines_are_left_out_and_named() -> None:
    project = load()
    project["platform"] = "manylinux_2_36_aarch64"
    graph = compiled(project)
    assert list(graph.layers) == ["office", "viz"]
    assert graph.skipped == ("empty", "legacy", "odd")
    assert {item.name for item in graph.layers["office"].unpacks} == {"numpy", "only-arm", "openpyxl"}
    project["layers"]["office"]["platforms"] = ["manylinux_2_28_x86_64"]
    assert compiled(project).skipped == ("empty", "legacy", "odd", "office", "viz")


def test_only_what_is_asked_for_and_its_bases_need_locks() -> None:
    project = load()
    specs = {name: layer_spec(name, layer) for name, layer in project["layers"].items()}
    locks = {name: lock_of(specs[name], project["locks"][name]) for name in ("office", "viz")}
    host = Platform.parse(project["platform"])
    graph = compile_graph(Spec(specs, {}), locks, host, project["sources"], layers=["viz"])
    assert list(graph.layers) == ["office", "viz"]

    del locks["office"]
    with pytest.raises(EnvdslError) as caught:
        compile_graph(Spec(specs, {}), locks, host, project["sources"], layers=["viz", "legacy", "offise"])
    assert [(found.code, found.message) for found in caught.value.diagnostics] == [
        ("graph-no-lock", "layer legacy has no lock"),
        ("graph-unknown-layer", "there is no layer `offise`"),
        ("graph-no-lock", "layer office has no lock"),
    ]
    assert [found.hint for found in caught.value.diagnostics] == [
        "run `envdsl lock legacy`",
        "did you mean `office`?",
        "run `envdsl lock office`",
    ]


def test_a_lock_without_the_platform_is_refused_and_not_taken_for_empty() -> None:
    project = load()
    specs = {name: layer_spec(name, layer) for name, layer in project["layers"].items()}
    changed = copy.deepcopy(project["layers"]["office"])
    changed["platforms"] = ["manylinux_2_28_aarch64"]
    lock = lock_of(layer_spec("office", changed), project["locks"]["office"])
    with pytest.raises(EnvdslError, match="not for manylinux_2_28_x86_64, but for manylinux_2_28_aarch64") as caught:
        compile_graph(
            Spec(specs, {}),
            {"office": lock},
            Platform.parse(project["platform"]),
            project["sources"],
            layers=["office"],
        )
    assert caught.value.code == "graph-lock-platform"


def test_a_python_without_known_bytecode_is_refused_unless_the_layer_has_none() -> None:
    project = load()
    project["layers"]["odd"]["python"] = "3.42"
    with pytest.raises(EnvdslError, match=r"Python 3\.42") as caught:
        compiled(project)
    assert caught.value.code == "graph-python-unknown"
    project["layers"]["odd"]["bytecode"] = False
    assert compiled(project).layers["odd"].bytecode == ()

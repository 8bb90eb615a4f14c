"""The manifest: its published schema, round trips, and what happens to a damaged one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from envdsl.errors import EnvdslError
from envdsl.model.names import LayerKind
from envdsl.realise.python import Interpreter
from envdsl.sandbox.plan import Mount, MountKind
from envdsl.session.compose import compose, plan
from envdsl.session.manifest import BoundSource, Manifest, SessionLimits, manifest_schema
from envdsl.store.layout import Layout
from tests.session.layers import paper_layer

SCHEMA = Path(__file__).parents[2] / "docs" / "manifest.schema.json"


@pytest.fixture
def manifest(paper_interpreter: Interpreter) -> Manifest:
    source = BoundSource("3" * 64, "4" * 64, "/store/sources/abc")
    office = paper_layer("office", packages={"numpy": "2.1.0", "docx": "1"}, environment={"MPLBACKEND": "Agg"})
    viz = paper_layer("viz", LayerKind.X, {"seaborn": "0.13"}, base=office, sources=[source])
    composed = compose(
        "demo",
        [office, viz],
        paper_interpreter,
        Layout(Path("/store")),
        workspace=Path("/home/ada/work ünïcode"),
        limits=SessionLimits(memory=1 << 30, cpu_percent=150, pids=64, timeout=60, cache=1 << 20),
    )
    root = (Mount.read_only("/store/root", "/"), Mount(MountKind.PROC, "/proc"), Mount.tmpfs("/tmp", mode=0o1777))
    return composed.on_host(root, Path("/store/filter.bpf"))


def test_the_published_schema_is_the_one_of_the_code() -> None:
    """Issue 2.13: the manifest with its JSON Schema."""
    published = json.loads(SCHEMA.read_text())
    assert published == manifest_schema(), "run: python -m envdsl.session.schema > docs/manifest.schema.json"
    jsonschema.Draft202012Validator.check_schema(published)


def test_a_manifest_answers_the_published_schema(manifest: Manifest) -> None:
    """Issue 2.13: the manifest with its JSON Schema."""
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    assert list(validator.iter_errors(json.loads(manifest.to_json()))) == []


def test_a_manifest_survives_the_way_through_json(manifest: Manifest) -> None:
    assert Manifest.from_json(manifest.to_json()) == manifest
    assert Manifest.from_json(manifest.to_json()).to_json() == manifest.to_json()


def test_every_field_is_required_and_described() -> None:
    schema = manifest_schema()
    for record in (schema, *schema["$defs"].values()):
        assert record["additionalProperties"] is False
        assert record["required"] == list(record["properties"])
        assert all(item["description"] for item in record["properties"].values())


def test_it_holds_what_an_audit_asks_for(manifest: Manifest) -> None:
    value = json.loads(manifest.to_json())
    layer = value["layers"][0]
    assert [(item["name"], item["version"]) for item in layer["packages"]] == [("docx", "1"), ("numpy", "2.1.0")]
    assert all(len(item["sha256"]) == 64 for item in layer["packages"])
    assert len(layer["lock"]) == len(layer["key"]) == len(layer["tree_hash"]) == 64
    assert value["interpreter"]["source"]["kind"] == "standalone"


def test_the_plan_that_a_manifest_gives_is_the_same_after_json(manifest: Manifest) -> None:
    before, after = plan(manifest), plan(Manifest.from_json(manifest.to_json()))
    assert before == after
    assert before.seccomp
    assert before.mounts[-1].source == "/store/bin"


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda m: m.pop("layers"), "layers: missing"),
        (lambda m: m.update(extra=1), "extra: unknown"),
        (lambda m: m.update(session=""), "session: expected a string of the form"),
        (lambda m: m.update(session="../up"), "session: expected a string of the form"),
        (lambda m: m["layers"][0].update(id="base-x"), "layers[0].id: expected a layer id, found 'base-x'"),
        (lambda m: m["layers"][1]["packages"][0].update(sha256="x"), "layers[1].packages[0].sha256: expected"),
        (lambda m: m["layers"][0].update(kind="z"), "layers[0].kind: expected one of 'base', 'x', 'iso', found 'z'"),
        (lambda m: m["limits"].update(memory=True), "limits.memory: expected an integer, found True"),
        (lambda m: m["limits"].update(pids=0), "limits.pids: expected an integer of 1 or more, found 0"),
        (lambda m: m["isolation"].update(network=True), "isolation.network: expected False, found True"),
        (lambda m: m["environment"].update(A=1), "environment: expected an object of strings"),
        (lambda m: m["mounts"][0].update(source="/"), "mounts[0]: the root of the host"),
        (lambda m: m["mounts"][0].update(source=None), "mounts[0]: writable mount on /home/user/.cache: a bind has"),
        (lambda m: m["mounts"][0].update(target="/a/../b"), "mounts[0]: not an absolute, normalised path"),
        (lambda m: m.update(mounts={}), "mounts: expected a list, found {}"),
        (lambda m: m.update(version="1"), "version: expected 1, found '1'"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(manifest: Manifest, change: Change, complaint: str) -> None:
    value = json.loads(manifest.to_json())
    change(value)
    with pytest.raises(EnvdslError) as caught:
        Manifest.from_json(json.dumps(value), name="demo/manifest.json")
    assert caught.value.code == "session-manifest-invalid"
    assert "demo/manifest.json is not a manifest: " in caught.value.diagnostics[0].message
    assert complaint in caught.value.diagnostics[0].message
    schema_accepts = jsonschema.Draft202012Validator(manifest_schema()).is_valid(value)
    assert not schema_accepts or complaint.startswith("mounts[0]")  # rules over several fields are the code's alone


@pytest.mark.parametrize("text", ["", "[]", "{", "null", b"\xff", "[" * 100_000])
def test_rubbish_is_an_error_and_no_traceback(text: str | bytes) -> None:
    with pytest.raises(EnvdslError) as caught:
        Manifest.from_json(text)
    assert caught.value.code == "session-manifest-invalid"


def test_another_version_is_refused_before_anything_is_read_into_it(manifest: Manifest) -> None:
    value = json.loads(manifest.to_json()) | {"version": 2, "mounts": "of another form"}
    with pytest.raises(EnvdslError) as caught:
        Manifest.from_json(json.dumps(value))
    assert caught.value.code == "session-manifest-version"


def test_a_manifest_is_frozen(manifest: Manifest) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        manifest.session = "other"  # type: ignore[misc]

"""``envdsl sbom``: a bill that CycloneDX's own validator takes, with all that a security team asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.cli.conftest import PYTHON, Cli
from tests.wheels import make_wheel, sha256


@pytest.fixture
def locked(run: Cli, project: Path) -> Cli:
    wheels = project / "wheels"
    make_wheel(wheels, "low", "1.0", extra_metadata="License-Expression: MIT\nSummary: Deep down\n")
    make_wheel(wheels, "lib", "1.0", requires=["low"], extra_metadata="License: (c) me <b>\n")
    make_wheel(wheels, "top", "1.0", requires=["low"])
    (project / "layers.d" / "all.layer").write_text(
        f'base core {{ python = "{PYTHON}"; packages = [ "lib" ]; }}\nx more on core {{ packages = [ "top" ]; }}\n'
    )
    assert run("lock").status == 0
    return run


def bill(run: Cli, *arguments: str) -> dict[str, Any]:
    done = run("sbom", *arguments)
    assert done.status == 0, done.err
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(done.out) is None
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_a_bill_goes_to_a_file(locked: Cli, tmp_path: Path) -> None:
    file = tmp_path / "core.cdx.json"
    done = locked("sbom", "core", "--output", file)
    assert (done.status, done.out) == (0, f"{file}\n")
    assert file.read_text() == locked("sbom", "core").out
    assert list(tmp_path.glob(".*.new")) == []
    assert locked("sbom", "core", "--output", tmp_path / "nowhere" / "x.json").status == 4


def test_a_bill_has_hashes_licences_purls_and_dependency_edges(locked: Cli, project: Path) -> None:
    """Issue 5.4: hashes, licences, purl, dependency edges; validates against the schema."""
    found = bill(locked, "core")
    components = {item["name"]: item for item in found["components"]}
    assert components["low"]["hashes"] == [
        {"alg": "SHA-256", "content": sha256(project / "wheels" / "low-1.0-py3-none-any.whl")}
    ]
    assert components["low"]["purl"] == "pkg:pypi/low@1.0?file_name=low-1.0-py3-none-any.whl"
    assert components["low"]["licenses"] == [{"license": {"id": "MIT"}}]
    assert components["lib"]["licenses"] == [{"license": {"name": "(c) me <b>"}}]
    edges = {item["ref"].split("?")[0]: item.get("dependsOn", []) for item in found["dependencies"]}
    assert edges["envdsl:core"] == [components["lib"]["bom-ref"]]
    assert edges["pkg:pypi/lib@1.0"] == [components["low"]["bom-ref"]]
    assert edges["pkg:pypi/low@1.0"] == []


def test_an_extension_is_told_with_its_base(locked: Cli) -> None:
    found = bill(locked, "more")
    layers = {item["name"]: item["properties"][0]["value"] for item in found["components"]}
    assert layers == {"lib": "core", "low": "core", "top": "more"}


def test_a_session_has_a_bill_of_what_it_is_bound_to(locked: Cli) -> None:
    """Issue 5.4: `sbom LAYER|SESSION`."""
    assert locked("session", "create", "billed", "-l", "core", "-l", "more").status == 0
    found = bill(locked, "billed")
    assert found["metadata"]["component"]["name"] == "billed"
    assert sorted(item["name"] for item in found["components"]) == ["lib", "low", "top"]


def test_the_same_lock_gives_the_same_bytes(locked: Cli) -> None:
    assert locked("sbom", "core").out == locked("sbom", "core").out
    assert bill(locked, "core")["serialNumber"] != bill(locked, "more")["serialNumber"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["nowhere"], "app-unknown-layer"), (["core", "--platform", "musllinux_1_2_x86_64"], "app-platform")],
)
def test_what_there_is_no_bill_of_is_said(locked: Cli, arguments: list[str], code: str) -> None:
    done = locked("sbom", *arguments)
    assert (done.status, done.out) == (2, "")
    assert f"error[{code}]" in done.err

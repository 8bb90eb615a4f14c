"""Layers: hard links, the facts in layer.json, and who may bring what."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.graph.derivation import Layer
from envdsl.model.names import LayerKind
from envdsl.realise import stdlib
from envdsl.realise.collisions import Owner, is_namespace_declaration
from envdsl.realise.layer import Farm, Part, import_names, link_layer
from envdsl.store.treehash import scan
from tests.realise.building import base_of, unpack_of, unpacked
from tests.wheels import make_wheel

PKGUTIL = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
PKG_RESOURCES = (
    '"""namespace"""\ntry:\n    __import__("pkg_resources").declare_namespace(__name__)\n'
    "except ImportError:\n    from pkgutil import extend_path\n    __path__ = extend_path(__path__, __name__)\n"
)


def part(directory: Path, name: str, files: dict[str, str] | None = None, **arguments: object) -> Part:
    wheel = make_wheel(directory / "wheels", name, "1.0", files=files, **arguments)  # type: ignore[arg-type]
    root = directory / "unpacked" / wheel.name
    return Part(unpack_of(wheel), root, unpacked(wheel, root), None)


def layer_of(directory: Path, parts: Sequence[Part], **arguments: object) -> Layer:
    return base_of([directory / "wheels" / part.unpack.wheel.filename for part in parts], **arguments)  # type: ignore[arg-type]


def linked(directory: Path, parts: Sequence[Part], *, below: Owner | None = None, **arguments: object) -> Farm:
    root = directory / "layer"
    root.mkdir()
    return link_layer(layer_of(directory, parts, **arguments), parts, root, below=below, name="demo")


def refused(directory: Path, parts: Sequence[Part], **arguments: object) -> EnvdslError:
    with pytest.raises(EnvdslError) as caught:
        linked(directory, parts, **arguments)  # type: ignore[arg-type]
    return caught.value


def test_a_layer_is_links_and_its_listing_is_what_stands_on_the_disk(tmp_path: Path) -> None:
    parts = [
        part(tmp_path, "one", {"one/__init__.py": "x = 1\n", "one/sub/a.py": ""}, entry_points={"one": "one:x"}),
        part(tmp_path, "two", {"two.py": "x = 2\n"}, data={"data/share/two.txt": "2"}),
    ]
    farm = linked(tmp_path, parts)
    root = tmp_path / "layer"
    assert farm.listing == scan(root)
    for item in ("site-packages/one/sub/a.py", "bin/one"):
        assert (root / item).samefile(parts[0].tree / item)
    assert (root / "share/two.txt").samefile(parts[1].tree / "share/two.txt")
    for path in root.rglob("*"):
        assert path.stat().st_mtime == 1
        assert not path.stat().st_mode & 0o222
    assert farm.warnings == ()


def test_layer_json_says_what_a_launcher_and_an_audit_need(tmp_path: Path) -> None:
    """Issue 2.12: packages with version, wheel, size, files and import names; .pth files; waivers."""
    parts = [
        part(
            tmp_path,
            "Two.Dots",
            {"two/__init__.py": "", "_two.cpython-312-x86_64-linux-gnu.so": "", "hook.pth": "import os\n"},
        ),
        part(tmp_path, "one", {"one.py": "", "share.py": "", "one.libs/x.so": "", "docs/readme.md": ""}),
    ]
    linked(tmp_path, parts)
    facts = json.loads((tmp_path / "layer/layer.json").read_bytes())
    layer = layer_of(tmp_path, parts)
    assert facts["id"] == str(layer.id)
    assert facts["key"] == layer.key
    assert (facts["kind"], facts["python"], facts["platform"]) == ("base", "3.12", "manylinux_2_28_x86_64")
    assert facts["base"] is None
    assert facts["pth"] == ["hook.pth"]
    assert facts["directories"] == ["site-packages"]
    assert facts["waivers"] == {"collisions": [], "record-mismatch": []}
    assert [(package["name"], package["version"], package["imports"]) for package in facts["packages"]] == [
        ("one", "1.0", ["one", "share"]),
        ("two-dots", "1.0", ["_two", "two"]),
    ]
    assert facts["packages"][0]["sha256"] == parts[1].unpack.wheel.sha256
    assert facts["files"] == sum(entry.type == "file" for item in parts for entry in item.listing)


def test_the_tree_depends_on_content_alone(tmp_path: Path) -> None:
    """Issue 2.8: another directory, another order of packages, another name: the same tree hash."""
    trees = []
    for place, order in (("a", 1), ("deeper/b", -1)):
        directory = tmp_path / place
        parts = [part(directory, name) for name in ("one", "two", "three")][::order]
        trees.append(linked(directory, parts).listing.tree_hash())
    assert trees[0] == trees[1]


def test_two_distributions_with_different_content_at_one_path_are_refused(tmp_path: Path) -> None:
    """The error names both, the path and the waiver; all collisions are reported at once."""
    parts = [
        part(tmp_path, "one", {"tests/__init__.py": "one", "tests/util.py": "one", "same.py": "same"}),
        part(tmp_path, "two", {"tests/__init__.py": "two", "tests/util.py": "two", "same.py": "same"}),
    ]
    error = refused(tmp_path, parts)
    assert [diagnostic.code for diagnostic in error.diagnostics] == ["layer-collision"] * 2
    first = error.diagnostics[0]
    assert "one and two" in first.message
    assert "site-packages/tests/__init__.py" in first.message
    assert 'collisions = [ "tests/__init__.py" ]' in (first.hint or "")


@pytest.mark.parametrize("waiver", ["tests/*", "site-packages/tests/*", "two", "one"])
def test_a_waived_collision_is_settled_by_name_and_recorded(tmp_path: Path, waiver: str) -> None:
    parts = [
        part(tmp_path, "two", {"tests/__init__.py": "two", "tests/only/two.py": ""}),
        part(tmp_path, "one", {"tests/__init__.py": "one", "tests/one.py": ""}),
    ]
    farm = linked(tmp_path, parts, collisions=[waiver])
    root = tmp_path / "layer"
    assert (root / "site-packages/tests/__init__.py").read_text() == "one"
    assert farm.listing == scan(root)
    facts = json.loads((root / "layer.json").read_bytes())
    assert facts["collisions"] == [{"kept": "one", "other": "two", "path": "site-packages/tests/__init__.py"}]
    assert facts["waivers"]["collisions"] == [waiver]


@pytest.mark.parametrize(
    ("first", "second"),
    [("Crypto/a.py", "crypto/b.py"), ("pkg/Readme", "pkg/README"), ("caf\u00e9.py", "cafe\u0301.py")],
)
def test_names_that_differ_only_in_case_or_normal_form_collide(tmp_path: Path, first: str, second: str) -> None:
    parts = [part(tmp_path, "one", {first: ""}), part(tmp_path, "two", {second: ""})]
    error = refused(tmp_path, parts)
    assert [diagnostic.code for diagnostic in error.diagnostics] == ["layer-collision-case"]
    assert "one" in str(error)
    assert "two" in str(error)


def test_one_distribution_may_have_names_that_differ_in_case(tmp_path: Path) -> None:
    linked(tmp_path, [part(tmp_path, "one", {"pkg/Readme": "", "pkg/README": ""})])
    assert (tmp_path / "layer/site-packages/pkg/Readme").exists()


def test_a_file_where_another_has_a_directory_is_never_waived(tmp_path: Path) -> None:
    parts = [part(tmp_path, "one", {"thing": "file"}), part(tmp_path, "two", {"thing/x.py": ""})]
    error = refused(tmp_path, parts, collisions=["*"])
    assert "directory" in str(error)


def test_scripts_and_data_files_collide_too(tmp_path: Path) -> None:
    parts = [
        part(tmp_path, "one", entry_points={"tool": "one:x"}, data={"data/share/x": "1"}),
        part(tmp_path, "two", entry_points={"tool": "two:x"}, data={"data/share/x": "2"}),
    ]
    assert [item.details["path"] for item in refused(tmp_path, parts).diagnostics] == ["bin/tool", "share/x"]


def test_legacy_namespace_packages_share_their_init(tmp_path: Path) -> None:
    """Issue 2.9: namespace packages; pkg_resources and pkgutil style may meet."""
    parts = [
        part(tmp_path, "one", {"ns/__init__.py": PKGUTIL, "ns/one.py": ""}),
        part(tmp_path, "two", {"ns/__init__.py": PKG_RESOURCES, "ns/two.py": ""}),
    ]
    farm = linked(tmp_path, parts)
    assert farm.listing == scan(tmp_path / "layer")
    assert sorted(path.name for path in (tmp_path / "layer/site-packages/ns").iterdir()) == [
        "__init__.py",
        "one.py",
        "two.py",
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (PKGUTIL, True),
        (PKG_RESOURCES, True),
        ("# only a comment\n" + PKGUTIL, True),
        ("", False),
        ("__version__ = '1'\n" + PKGUTIL, False),
        ("import os\n", False),
        ("print 'two'\n", False),
    ],
)
def test_only_a_pure_declaration_counts_as_namespace(tmp_path: Path, content: str, expected: bool) -> None:
    place = tmp_path / "__init__.py"
    place.write_text(content)
    assert is_namespace_declaration(place) is expected


def test_an_x_layer_may_not_contradict_its_base(tmp_path: Path) -> None:
    base_part = part(tmp_path / "base", "ground", {"shared.py": "base", "same.py": "same", "case.py": ""})
    base = layer_of(tmp_path / "base", [base_part])
    owner = Owner(str(base.id), base_part.tree, base_part.listing, lambda path: "ground")
    x_parts = [part(tmp_path, "over", {"shared.py": "x", "same.py": "same", "Case.py": ""})]
    error = refused(tmp_path, x_parts, below=owner, kind=LayerKind.X, base=base)
    assert {(item.code, tuple(item.details["distributions"])) for item in error.diagnostics} == {
        ("layer-collision", ("over", "ground")),
        ("layer-collision-case", ("over", "ground")),
    }


def over_and_ground(
    tmp_path: Path, over: dict[str, str], ground: dict[str, str], **arguments: object
) -> tuple[list[Part], Owner, Layer]:
    """The parts of an x layer, and the base that they stand on."""
    base_part = part(tmp_path / "base", "ground", ground, **arguments)
    base = layer_of(tmp_path / "base", [base_part])
    owner = Owner(str(base.id), base_part.tree, base_part.listing, lambda path: "ground")
    return [part(tmp_path, "over", over, **arguments)], owner, base


@pytest.mark.parametrize(
    ("over", "ground", "code"),
    [
        ("mod.py", "mod.py", "layer-collision"),
        ("Mod/a.py", "mod/b.py", "layer-collision-case"),
        ("caf\u00e9/a.py", "cafe\u0301/b.py", "layer-collision-case"),
        ("thing", "thing/x.py", "layer-collision"),
        ("thing/x.py", "thing", "layer-collision"),
    ],
)
def test_whatever_collides_in_a_layer_collides_with_its_base(tmp_path: Path, over: str, ground: str, code: str) -> None:
    """Issue 3.2: content, case, normal form, and file against directory; named with distributions, path and waiver."""
    parts, owner, base = over_and_ground(tmp_path, {over: "x"}, {ground: "base"})
    (found,) = refused(tmp_path, parts, below=owner, kind=LayerKind.X, base=base).diagnostics
    assert found.code == code
    assert set(found.details["distributions"]) == {"over", "ground"}
    for name in ("over", "ground", found.details["path"]):
        assert name in found.message
    waivable = "thing" not in over
    assert ("allow = { collisions = [" in (found.hint or "")) is waivable


def test_scripts_and_data_files_collide_with_the_base(tmp_path: Path) -> None:
    """Issue 3.2."""
    base_part = part(tmp_path / "base", "ground", entry_points={"tool": "ground:x"}, data={"data/share/x": "1"})
    base = layer_of(tmp_path / "base", [base_part])
    owner = Owner(str(base.id), base_part.tree, base_part.listing, lambda path: "ground")
    parts = [part(tmp_path, "over", entry_points={"tool": "over:x"}, data={"data/share/x": "2"})]
    error = refused(tmp_path, parts, below=owner, kind=LayerKind.X, base=base)
    assert [item.details["path"] for item in error.diagnostics] == ["bin/tool", "share/x"]


def test_a_waived_collision_with_the_base_is_the_bases(tmp_path: Path) -> None:
    """A base comes first on PATH and PYTHONPATH: its file is the one that counts, and layer.json says so."""
    parts, owner, base = over_and_ground(tmp_path, {"mod.py": "x"}, {"mod.py": "base"})
    hint = refused(tmp_path, parts, below=owner, kind=LayerKind.X, base=base).diagnostics[0].hint or ""
    assert "keep the file of ground" in hint
    (tmp_path / "layer").rmdir()
    linked(tmp_path, parts, below=owner, kind=LayerKind.X, base=base, collisions=["mod.py"])
    facts = json.loads((tmp_path / "layer/layer.json").read_bytes())
    assert facts["collisions"] == [{"kept": "ground", "other": "over", "path": "site-packages/mod.py"}]


def test_a_legacy_namespace_is_shared_with_the_base_but_not_with_code_in_it(tmp_path: Path) -> None:
    """Issue 3.2."""
    parts, owner, base = over_and_ground(tmp_path, {"ns/__init__.py": PKGUTIL}, {"ns/__init__.py": PKG_RESOURCES})
    linked(tmp_path, parts, below=owner, kind=LayerKind.X, base=base)
    shutil.rmtree(tmp_path / "layer")
    parts = [part(tmp_path / "second", "over", {"ns/__init__.py": PKGUTIL + "VERSION = 1\n"})]
    layer = layer_of(tmp_path / "second", parts, kind=LayerKind.X, base=base)
    (tmp_path / "layer").mkdir()
    with pytest.raises(EnvdslError, match=r"ns/__init__\.py"):
        link_layer(layer, parts, tmp_path / "layer", below=owner)


@pytest.mark.parametrize(("path", "case"), [("bin/Tool", "scripts/tool"), ("share/Doc/a", "data/share/doc/b")])
def test_case_counts_for_scripts_and_data_files_too(tmp_path: Path, path: str, case: str) -> None:
    """Issue 3.2: wherever the path stands."""
    first = {"scripts/Tool": "#!python\n"} if path == "bin/Tool" else {"data/share/Doc/a": ""}
    parts = [part(tmp_path, "one", data=first), part(tmp_path, "two", data={case: "#!python\n"})]
    assert refused(tmp_path, parts).code == "layer-collision-case"


def test_an_x_layer_holds_only_its_increment(tmp_path: Path) -> None:
    base_part = part(tmp_path / "base", "ground", {"ns/__init__.py": PKGUTIL})
    base = layer_of(tmp_path / "base", [base_part])
    x_parts = [part(tmp_path, "over", {"ns/__init__.py": PKG_RESOURCES, "ns/over.py": ""})]
    linked(tmp_path, x_parts, below=Owner("base", base_part.tree, base_part.listing), kind=LayerKind.X, base=base)
    facts = json.loads((tmp_path / "layer/layer.json").read_bytes())
    assert facts["base"] == {"id": str(base.id), "key": base.key}
    assert [package["name"] for package in facts["packages"]] == ["over"]


def test_a_module_that_shadows_the_standard_library_is_a_warning(tmp_path: Path) -> None:
    farm = linked(tmp_path, [part(tmp_path, "typing-backport", {"typing.py": ""})])
    assert [(warning.code, warning.severity) for warning in farm.warnings] == [("layer-shadows-stdlib", "warning")]
    assert "typing-backport" in farm.warnings[0].message


@pytest.mark.parametrize(
    ("module", "minor", "shadows"),
    [
        ("audioop", 12, True),
        ("audioop", 13, False),
        ("distutils", 11, True),
        ("distutils", 12, False),
        ("tomllib", 10, False),
        ("tomllib", 11, True),
        ("typing", 14, True),
        ("numpy", 12, False),
    ],
)
def test_what_shadows_depends_on_the_python_of_the_layer(module: str, minor: int, shadows: bool) -> None:
    """A backport of what a release removed shadows nothing, whatever Python envdsl itself runs on."""
    assert (module in stdlib.modules(minor)) is shadows


@pytest.mark.parametrize("reason", [errno.EMLINK, errno.EXDEV, errno.EPERM])
def test_where_no_link_is_possible_the_layer_has_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    parts = [part(tmp_path, "one", data={"scripts/tool": "#!python\n"})]

    def link(*arguments: object, **keywords: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr("os.link", link)
    farm = linked(tmp_path, parts)
    tool = tmp_path / "layer/bin/tool"
    assert not tool.samefile(parts[0].tree / "bin/tool")
    assert (tool.stat().st_mode & 0o777, tool.stat().st_mtime) == (0o555, 1)
    assert farm.listing == scan(tmp_path / "layer")


def test_import_names_are_modules_extensions_and_packages(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": "",
        "ns/deep/mod.py": "",
        "_c.abi3.so": "",
        "plain.so": "",
        "single.py": "",
        "legacy.pyc": "",
        "not-a-module/x.py": "",
        "doc/readme.txt": "",
        "native.libs/lib.so.1": "",
    }
    listing = part(tmp_path, "demo", files).listing
    assert import_names(listing) == ["_c", "legacy", "ns", "pkg", "plain", "single"]

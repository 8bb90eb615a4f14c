"""Bundles that lie: nothing of one becomes valid, and no file of one is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli import bundles
from tests.cli.bundles import Manifest
from tests.cli.conftest import LAYERS, Cli

Change = Callable[[Manifest, dict[str, bytes]], object]


def add_file(path: str, content: bytes = b"evil") -> Change:
    """A file more in the tree of an unpacked wheel, listed and consistent."""

    def change(manifest: Manifest, contents: dict[str, bytes]) -> None:
        unpack = bundles.of_kind(manifest, "unpack")
        unpack["members"].append(bundles.file_item(path, content))
        contents[f"store/{unpack['path']}/{path}"] = content

    return change


def add_item(**item: Any) -> Change:
    def change(manifest: Manifest, contents: dict[str, bytes]) -> None:
        bundles.of_kind(manifest, "unpack")["members"].append(item)

    return change


def add_project_file(path: str) -> Change:
    def change(manifest: Manifest, contents: dict[str, bytes]) -> None:
        manifest["project"].append(bundles.file_item(path, b"evil"))
        contents[f"project/{path}"] = b"evil"

    return change


def twice(manifest: Manifest, contents: dict[str, bytes]) -> None:
    members = bundles.of_kind(manifest, "unpack")["members"]
    members.append(members[0])


def set_path(of: str, **facts: Any) -> Change:
    return lambda manifest, _: bundles.of_kind(manifest, of).update(facts)


def move_path(manifest: Manifest, contents: dict[str, bytes]) -> None:
    unpack = bundles.of_kind(manifest, "unpack")
    old, new = f"store/{unpack['path']}/", "store/unpacked/elsewhere/"
    unpack["path"] = "unpacked/elsewhere"
    for name in list(contents):
        if name.startswith(old):
            contents[new + name.removeprefix(old)] = contents.pop(name)
    for path in manifest["paths"]:
        for item in path["members"]:
            if item.get("target", "").startswith(old):
                item["target"] = new + item["target"].removeprefix(old)


def other_wheel(manifest: Manifest, contents: dict[str, bytes]) -> None:
    """Other bytes under a pinned name and hash, with blake3, size and tree hash to match."""
    from envdsl.app.bundles.manifest import _path

    wheel = bundles.of_kind(manifest, "wheel")
    content = b"PK evil".ljust(wheel["members"][0]["size"], b".")
    wheel["members"] = [bundles.file_item(wheel["members"][0]["path"], content)]
    wheel["tree-hash"] = _path(wheel).actual_tree_hash()
    contents[f"store/{wheel['path']}"] = content


def extra_wheel(manifest: Manifest, contents: dict[str, bytes]) -> None:
    from envdsl.app.bundles.manifest import _path
    from envdsl.graph.derivation import WheelFile

    content = b"PK evil"
    sha256 = hashlib.sha256(content).hexdigest()
    name = "evil-1-py3-none-any.whl"
    path: dict[str, Any] = {
        "kind": "wheel",
        "path": f"wheelhouse/{sha256}/{name}",
        "key": WheelFile(name, sha256, len(content)).key,
        "tree-hash": "0" * 64,
        "members": [bundles.file_item(name, content)],
        "facts": {},
    }
    path["tree-hash"] = _path(path).actual_tree_hash()
    manifest["paths"].insert(0, path)
    contents[f"store/{path['path']}"] = content


def bomb(manifest: Manifest, contents: dict[str, bytes]) -> None:
    from envdsl.app.bundles.manifest import _path

    add_file("zeros", bytes(100 << 20))(manifest, contents)
    unpack = bundles.of_kind(manifest, "unpack")
    unpack["tree-hash"] = _path(unpack).actual_tree_hash()


def interpreter(**wrong: Any) -> Change:
    """A little tree that calls itself an interpreter, with what is ``wrong`` about it."""

    def change(manifest: Manifest, contents: dict[str, bytes]) -> None:
        from envdsl.app.bundles.manifest import _path
        from envdsl.model.digest import store_hash
        from envdsl.realise.python import content_key

        facts = {"kind": "standalone", "origin": "evil", "sha256": None, "missing": []}
        path: dict[str, Any] = {"kind": "python", "path": "", "key": "0" * 64, "tree-hash": "0" * 64, "facts": facts}
        path["members"] = [bundles.file_item("bin/python3", b"#!/bin/sh\n")]
        listing = _path(path).listing
        path |= {"key": content_key("cpython", "3.11.7", listing), "tree-hash": listing.tree_hash()}
        path["path"] = f"python/cpython-3.11.7-{store_hash(path['key'])}"
        path |= wrong
        manifest["paths"].append(path)
        contents[f"store/{path['path']}/bin/python3"] = b"#!/bin/sh\n"

    return change


def link_to(target: str) -> Change:
    def change(manifest: Manifest, contents: dict[str, bytes]) -> None:
        item = next(item for item in bundles.of_kind(manifest, "layer")["members"] if item["type"] == "link")
        item["target"] = target

    return change


HOSTILE: dict[str, tuple[Change, str]] = {
    "absolute": (add_project_file("/etc/cron.d/evil"), "archive-name-"),
    "parent": (add_file("../../../../evil"), "archive-name-parent"),
    "parent-of-the-project": (add_project_file("../evil"), "archive-name-parent"),
    "dot": (add_file("a/./b"), "archive-name-not-normal"),
    "nul": (add_file("a\0b"), "archive-name-nul"),
    "backslash": (add_file("a\\..\\b"), "archive-name-backslash"),
    "control": (add_file("a\x1b[2Jb"), "archive-name-control"),
    "device-name": (add_file("nul.txt"), "archive-name-device"),
    "long-component": (add_file("x" * 256), "archive-name-long"),
    "long-path": (add_file("/".join(["d" * 200] * 6)), "archive-name-long"),
    "duplicate": (twice, "archive-duplicate"),
    "case": (add_file("site-packages/FOO.py"), "archive-case"),
    "case-of-a-directory": (add_file("Site-Packages/other.py"), "archive-case"),
    "unicode-form": (
        lambda m, c: (add_file("é.py")(m, c), add_file("e\u0301.py")(m, c)),
        "archive-case",
    ),
    "below-a-file": (add_file("site-packages/foo.py/x"), "archive-duplicate"),
    "too-deep": (add_file("/".join("d" * 300)), "archive-"),
    "symlink-out": (add_item(path="out", type="symlink", target="/etc"), "archive-link"),
    "symlink-up": (add_item(path="a/out", type="symlink", target="../../x"), "archive-link"),
    "symlink-round": (add_item(path="a/out", type="symlink", target="b/../../../x"), "archive-link"),
    "link-in-a-part": (
        add_item(path="a", type="link", target="store/x", size=1, blake3="0" * 64, executable=False),
        "archive-link",
    ),
    "link-out": (link_to("/etc/shadow"), "archive-link"),
    "link-to-the-project": (link_to("project/layers.d/all.layer"), "archive-link"),
    "link-to-a-wheel": (lambda m, c: link_to(f"store/{bundles.of_kind(m, 'wheel')['path']}")(m, c), "archive-link"),
    "device": (add_item(path="null", type="device"), "archive-list"),
    "file-more": (add_file("site-packages/evil.pth"), "archive-tree-hash"),
    "file-less": (
        lambda m, _: bundles.of_kind(m, "bytecode").update(members=bundles.of_kind(m, "bytecode")["members"][1:]),
        "archive-tree-hash",
    ),
    "tree-hash": (set_path("source", **{"tree-hash": "0" * 64}), "archive-tree-hash"),
    "key": (set_path("layer", key="0" * 64), "archive-unlisted"),
    "kind": (set_path("unpack", kind="bytecode"), "archive-unlisted"),
    "other-kind": (set_path("unpack", kind="session"), "archive-list"),
    "path": (move_path, "archive-unlisted"),
    "wheel-of-other-bytes": (other_wheel, "archive-sha256"),
    "wheel-that-no-lock-pins": (extra_wheel, "archive-unlisted"),
    "interpreter-of-another-key": (interpreter(key="1" * 64), "archive-list"),
    "interpreter-of-another-version": (
        lambda m, c: (
            interpreter()(m, c),
            m["paths"][-1].update(path=m["paths"][-1]["path"].replace("3.11.7", "3.11.8")),
        ),
        "archive-tree-hash",
    ),
    "interpreter-elsewhere": (interpreter(path="python/current"), "archive-list"),
    "interpreter-of-no-origin": (interpreter(facts={"kind": "x"}), "archive-list"),
    "interpreter-of-an-odd-origin": (
        interpreter(facts={"kind": "evil", "origin": "x", "sha256": None, "missing": []}),
        "archive-list",
    ),
    "interpreter-that-forges-lines": (
        interpreter(facts={"kind": "archive", "origin": "x\nforged", "sha256": "1", "missing": []}),
        "archive-list",
    ),
    "file-that-no-layer-reads": (add_project_file("Makefile"), "archive-unlisted"),
    "hook": (add_project_file(".git/hooks/post-checkout"), "archive-name-vcs"),
    "hook-in-capitals": (add_project_file("src/.GIT/config"), "archive-name-vcs"),
    "no-layers": (lambda m, _: m.update(layers=[]), "archive-list"),
    "other-layers": (lambda m, _: m.update(layers=["one"]), "archive-list"),
    "newer": (lambda m, _: m.update(format=2), "archive-format-newer"),
    "older": (lambda m, _: m.update(format=0), "archive-list"),
    "more-facts": (lambda m, _: m.update(run="evil"), "archive-list"),
    "bomb": (bomb, "archive-bomb"),
    "negative": (add_item(path="x", type="file", size=-1, blake3="0" * 64, executable=False), "archive-list"),
    "size-true": (add_item(path="x", type="file", size=True, blake3="0" * 64, executable=False), "archive-list"),
    "syntax": (
        lambda m, c: replace_project(m, c, "layers.d/all.layer", b"base core {"),
        "syntax-",
    ),
    "stale": (
        lambda m, c: replace_project(m, c, "layers.d/all.layer", LAYERS.replace('"foo==1"', '"foo>0"').encode()),
        "app-lock-stale",
    ),
    "settings": (lambda m, c: replace_project(m, c, "envdsl.toml", b'locks = "../.."\n'), "config-invalid"),
}


def replace_project(manifest: Manifest, contents: dict[str, bytes], path: str, content: bytes) -> None:
    item = next(item for item in manifest["project"] if item["path"] == path)
    item.update(bundles.file_item(path, content))
    contents[f"project/{path}"] = content


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_bundle_is_refused(name: str, run: Cli, realised: Path, fresh: Path, tmp_path: Path) -> None:
    """Issue 3.8: an import refuses hostile archives by the same rules as wheels; nothing of one becomes valid, and no
    file is written."""
    change, code = HOSTILE[name]
    bad = bundles.changed(realised, change)
    before = bundles.tree(fresh)
    (tmp_path / "victim").mkdir()
    done = run("bundle", "import", bad, "--store", fresh, "--project", tmp_path / "victim", "--json")
    assert done.status == (2 if name == "settings" else 1), done.out
    found = [item["code"] for item in json.loads(done.err.splitlines()[-1])["diagnostics"]]
    assert all(item.startswith(code) for item in found), found
    assert bundles.tree(fresh) == before
    assert not list((tmp_path / "victim").iterdir())
    assert not list((fresh / "tmp").glob("process-*"))


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_a_bundle_that_ends_early_leaves_nothing(where: str, run: Cli, realised: Path, fresh: Path) -> None:
    data = realised.read_bytes()
    realised.write_bytes(data[: {"first": 10, "middle": len(data) // 2, "last": len(data) - 1}[where]])
    done = run("bundle", "import", realised, "--store", fresh)
    assert done.status == 1
    assert "archive-truncated" in done.err
    assert not list((fresh / "wheelhouse").iterdir())

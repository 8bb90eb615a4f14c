"""``envdsl fetch`` and ``envdsl bundle``: a machine without a network gets what it needs, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.cli import bundles
from tests.cli.bundles import Manifest
from tests.cli.conftest import LAYERS, PYTHON, Cli, clone
from tests.wheels import make_wheel

NOWHERE = '[[index]]\nname = "nowhere"\nurl = "http://127.0.0.1:9/simple"\ndefault = true\n'


@pytest.fixture
def fresh(pristine_store: Path, tmp_path: Path) -> Path:
    """A store of this test's own, with an interpreter."""
    return clone(pristine_store, tmp_path / "fresh")


def tree(store: Path) -> dict[str, str]:
    """Every valid path with its tree hash, and that of what is on the disk."""
    with Store.open(store) as opened:
        found = {path.path: path.tree_hash for path in opened.paths()}
        for path, tree_hash in found.items():
            if not path.startswith("python/"):
                assert scan(store / path).tree_hash() == tree_hash, path
    return found


# fetch


def test_fetch_fills_the_wheelhouse_and_build_needs_no_index_then(run: Cli, project: Path, fresh: Path) -> None:
    """Issue 3.8: `envdsl fetch` fills the wheelhouse; after it `build --offline` works."""
    run("lock")
    done = run("fetch", "--store", fresh)
    assert done.status == 0, done.err
    wheels = [row for row in done.rows if row[0] == "fetched"]
    assert [row[1] for row in wheels] == [
        "bar-1.0-py3-none-any.whl",
        "foo-1-py3-none-any.whl",
        "foo-2-py3-none-any.whl",
    ]
    for _, filename, path in wheels:
        assert Path(path).read_bytes() == (project / "wheels" / filename).read_bytes()
    shutil.rmtree(project / "wheels")
    built = run("build", "--offline", "--store", fresh)
    assert built.status == 0, built.err
    assert len(built.rows) == 4


def test_fetch_again_fetches_nothing(run: Cli, fresh: Path) -> None:
    run("lock")
    run("fetch", "--store", fresh)
    again = run("fetch", "core", "--json", "--store", fresh)
    assert [(item["filename"], item["status"], item["layers"]) for item in again.json["wheels"]] == [
        ("bar-1.0-py3-none-any.whl", "present", ["core"])
    ]
    assert again.json["interpreters"][0]["python"] == PYTHON


def test_fetch_takes_other_platforms_only_when_asked(run: Cli, project: Path, fresh: Path) -> None:
    """Issue 3.8: --all-platforms."""
    for machine in ("x86_64", "aarch64"):
        make_wheel(
            project / "wheels",
            "native",
            "1",
            tag=f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-manylinux_2_28_{machine}",
        )
    (project / "layers.d" / "all.layer").write_text(
        f'base native {{ python = "{PYTHON}"; packages = [ "native" ]; '
        'platforms = [ "manylinux_2_28_x86_64" "manylinux_2_28_aarch64" ]; }'
    )
    assert run("lock").status == 0
    here = os.uname().machine
    mine = run("fetch", "--json", "--store", fresh).json["wheels"]
    assert [item["platforms"] for item in mine] == [[f"manylinux_2_28_{here}"]]
    everybodys = run("fetch", "--all-platforms", "--json", "--store", fresh).json["wheels"]
    assert {item["status"] for item in everybodys if here in item["filename"]} == {"present"}
    assert len(everybodys) == 2


def test_what_was_fetched_outlives_gc_until_no_lock_pins_it(run: Cli, project: Path, fresh: Path) -> None:
    """Issue 3.8: a wheelhouse that was filled stays filled."""
    run("lock")
    run("fetch", "--store", fresh)
    assert run("gc", "--store", fresh).status == 0
    assert len(list((fresh / "wheelhouse").iterdir())) == 3
    (project / "layers.d" / "all.layer").write_text(f'iso alone {{ python = "{PYTHON}"; packages = [ "foo" ]; }}')
    assert run("fetch", "--store", fresh).status == 0
    run("gc", "--store", fresh)
    assert [path.name for path in (fresh / "wheelhouse").glob("*/*")] == ["foo-2-py3-none-any.whl"]


def test_fetch_refuses_a_lock_that_is_not_current(run: Cli, project: Path) -> None:
    assert "app-lock-missing" in run("fetch", "core").err
    run("lock")
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('[ "bar" ]', '[ "bar" "foo" ]', 1))
    done = run("fetch", "core")
    assert (done.status, "app-lock-stale" in done.err) == (1, True)


def test_fetch_offline_names_what_is_missing(run: Cli, project: Path, fresh: Path) -> None:
    run("lock")
    shutil.rmtree(project / "wheels")
    done = run("fetch", "alone", "--offline", "--store", fresh)
    assert done.status == 4
    assert "foo-2-py3-none-any.whl is not on this machine" in done.err


# bundle create


def made(run: Cli, place: Path, once: Path, *options: str) -> Path:
    """A bundle of the project, at ``place``; made once for all tests of a worker, since it is always the same."""
    assert run("lock").status == 0
    if not once.exists():
        done = run("bundle", "create", "-o", once, "--no-interpreter", *options)
        assert done.status == 0, done.err
    return Path(shutil.copy(once, place))


@pytest.fixture
def bundle(run: Cli, tmp_path: Path, interpreter_store: Path) -> Path:
    """A bundle of wheels."""
    return made(run, tmp_path / "wheels.tar.zst", interpreter_store.parent / "wheels.tar.zst")


@pytest.fixture
def realised(run: Cli, tmp_path: Path, interpreter_store: Path) -> Path:
    """A bundle of layers."""
    return made(run, tmp_path / "layers.tar.zst", interpreter_store.parent / "layers.tar.zst", "--layers")


def test_two_bundles_of_one_project_are_the_same_file(run: Cli, project: Path, bundle: Path, tmp_path: Path) -> None:
    """Issue 3.8: one reproducible .tar.zst: another checkout, another store, another time."""
    other = tmp_path / "elsewhere" / "checkout"
    shutil.copytree(project, other)
    for path in other.rglob("*"):
        os.utime(path, (5, 5))
    file = tmp_path / "again.tar.zst"
    done = run(
        "bundle", "create", "-o", file, "--no-interpreter", "--project", other, "--store", tmp_path / "s", "--json"
    )
    assert done.status == 0, done.err
    assert file.read_bytes() == bundle.read_bytes()
    assert done.json["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert done.json["paths"] == {"wheel": 3}


def test_a_bundle_of_one_layer_has_its_base_and_nothing_else(run: Cli, bundle: Path, tmp_path: Path) -> None:
    done = run("bundle", "create", "one", "-o", tmp_path / "one.tar.zst", "--no-interpreter")
    assert done.status == 0, done.err
    manifest, contents = bundles.load(tmp_path / "one.tar.zst")
    assert manifest["layers"] == ["core", "one"]
    assert sorted(name.rpartition("/")[2] for name in contents if name.startswith("store/")) == [
        "bar-1.0-py3-none-any.whl",
        "foo-1-py3-none-any.whl",
    ]
    assert "project/layers.d/pylock.two.toml" not in contents
    assert contents["project/src/mine/__init__.py"] == b"ANSWER = 42\n"


def test_the_files_of_a_layer_are_in_a_bundle_once(realised: Path) -> None:
    """Issue 3.8: a layer is hard links, in the archive as in the store."""
    manifest, contents = bundles.load(realised)
    layers = [path for path in manifest["paths"] if path["kind"] == "layer"]
    assert len(layers) == 4
    for layer in layers:
        assert {item["path"] for item in layer["members"] if item["type"] == "file"} == {"layer.json"}
        assert len(layer["members"]) > 2
    assert not [name for name in contents if name.startswith("store/layers/") and not name.endswith("/layer.json")]


def test_a_bundle_is_written_whole_or_not_at_all(
    run: Cli, bundle: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envdsl.store import archive

    before = bundle.read_bytes()
    monkeypatch.setattr(archive.Writer, "finish", lambda self: (_ for _ in ()).throw(OSError(28, "No space left")))
    done = run("bundle", "create", "-o", bundle, "--no-interpreter")
    assert done.status == 4
    assert bundle.read_bytes() == before
    assert not list(tmp_path.glob(".wheels*"))
    assert run("bundle", "create", "-o", tmp_path / "no" / "such.tar.zst").status == 2


# bundle import


def test_air_gap(run: Cli, project: Path, tmp_path: Path) -> None:
    """Issue 3.8: a bundle made here, imported where there is neither network nor project nor interpreter: `build
    --offline` works, and the layer runs in the sandbox."""
    run("lock")
    here = run("build", "--json").json["layers"]
    file = tmp_path / "gap.tar.zst"
    made = run("bundle", "create", "-o", file, "--json")
    assert made.status == 0, made.err
    assert made.json["paths"] == {"python": 1, "wheel": 3}
    shutil.rmtree(project / "wheels")

    place = tmp_path / "other-machine"
    (place / "project").mkdir(parents=True)
    (place / "project" / "envdsl.toml").write_text('default-base = "core"\n' + NOWHERE)
    there = ("--project", place / "project", "--store", place / "store")
    done = run("bundle", "import", file, "--sha256", made.json["sha256"], "--json", *there)
    assert done.status == 0, done.err
    assert len(done.json["imported"]) == 4
    assert "layers.d/pylock.core.toml" in done.json["written"]
    assert "envdsl.toml" not in done.json["written"]

    built = run("build", "--offline", "--json", *there)
    assert built.status == 0, built.err
    assert [(item["id"], item["tree-hash"]) for item in built.json["layers"]] == [
        (item["id"], item["tree-hash"]) for item in here
    ]
    assert run("session", "create", "s", "-l", "core", "-l", "one", *there).status == 0
    code = "import foo, mine; print(foo.__version__, mine.ANSWER)"
    ran = run("run", *there, "s", "--", "python3", "-c", code)
    assert (ran.status, ran.out) == (0, "1 42\n"), ran.err
    assert run("verify", *there).status == 0
    assert run("python", "show", "--json", *there).json["source"] == run("python", "show", "--json").json["source"]


def test_all_that_a_layer_reads_travels(run: Cli, project: Path, fresh: Path, tmp_path: Path) -> None:
    """Issue 3.8: local wheels, files that a layer reads, imports, sources with links and modes."""
    make_wheel(project / "vendor", "house", "1.0")
    (project / "layers.d" / "packages.txt").write_text("foo==1\n")
    (project / "lib").mkdir()
    (project / "lib" / "common.layer").write_text('let more = [ "house" ];\n')
    (project / "src" / "tool.sh").write_text("#!/bin/sh\n")
    (project / "src" / "tool.sh").chmod(0o755)
    (project / "src" / "alias").symlink_to("mine/__init__.py")
    (project / "unrelated.txt").write_text("stays here")
    (project / "layers.d" / "all.layer").write_text(
        'import "../lib/common.layer" as common;\n'
        f'base core {{ python = "{PYTHON}"; packages = common.more ++ readLines ./packages.txt; '
        "wheels = [ ../vendor/house-1.0-py3-none-any.whl ]; sources = [ ../src ]; }"
    )
    assert run("lock").status == 0
    file = tmp_path / "all.tar.zst"
    done = run("bundle", "create", "-o", file, "--no-interpreter")
    assert done.status == 0, done.err
    place = tmp_path / "there"
    place.mkdir()
    there = ("--project", place, "--store", fresh)
    assert run("bundle", "import", file, *there).status == 0
    shutil.rmtree(project / "wheels")
    built = run("build", "--offline", "--json", *there)
    assert built.status == 0, built.err
    assert not (place / "unrelated.txt").exists()
    assert (place / "src" / "alias").readlink() == Path("mine/__init__.py")
    assert os.access(place / "src" / "tool.sh", os.X_OK)
    assert (place / "vendor" / "house-1.0-py3-none-any.whl").stat().st_mode & 0o222, "a file that somebody works on"


def test_layers_arrive_as_they_were_built(run: Cli, realised: Path, fresh: Path, tmp_path: Path) -> None:
    """Issue 3.8: optionally realised layers: valid, verified, nothing left to build; files are hard links."""
    (tmp_path / "project-2").mkdir()
    there = ("--project", tmp_path / "project-2", "--store", fresh)
    done = run("bundle", "import", realised, *there)
    assert done.status == 0, done.err
    built = run("build", "--offline", "--json", *there)
    assert built.json["built"] == 0
    assert built.json["layers"][0]["tree-hash"] == run("build", "--json").json["layers"][0]["tree-hash"]
    assert run("verify", *there).status == 0
    layer = Path(next(item["path"] for item in built.json["layers"] if item["name"] == "one"))
    assert (layer / "site-packages" / "foo.py").stat().st_nlink == 2
    for path in layer.rglob("*"):
        assert path.stat().st_mtime == 1, path
        assert path.stat().st_mode & 0o777 == (0o555 if path.is_dir() else 0o444), path
    assert run("gc", *there).status == 0
    assert run("build", "--offline", "--json", *there).json["built"] == 0


def test_importing_again_changes_nothing(run: Cli, realised: Path, fresh: Path) -> None:
    first = run("bundle", "import", realised, "--store", fresh, "--json").json
    before = tree(fresh)
    again = run("bundle", "import", realised, "--store", fresh, "--json").json
    assert again["imported"] == []
    assert sorted(again["present"]) == sorted(first["imported"])
    assert tree(fresh) == before


def test_parts_can_be_left_out(run: Cli, realised: Path, fresh: Path, tmp_path: Path) -> None:
    """Issue 3.8: who does not trust what others built takes the wheels, which their locks pin."""
    (tmp_path / "empty").mkdir()
    done = run(
        "bundle",
        "import",
        realised,
        "--no-layers",
        "--no-files",
        "--json",
        "--store",
        fresh,
        "--project",
        tmp_path / "empty",
    )
    assert done.status == 0, done.err
    assert {path.partition("/")[0] for path in done.json["imported"]} == {"wheelhouse"}
    assert set(done.json["left-out"].values()) == {"--no-layers"}
    assert not list((tmp_path / "empty").iterdir())
    run("gc", "--store", fresh, "--project", tmp_path / "empty")
    assert len(list((fresh / "wheelhouse").iterdir())) == 3


def test_what_was_built_for_another_machine_is_left_out_and_said(run: Cli, realised: Path, fresh: Path) -> None:
    other = bundles.changed(realised, lambda manifest, _: manifest.update(platform="manylinux_2_28_aarch64"))
    # the layers of the bundle are this machine's, so for that one its locks call for others
    done = run("bundle", "import", other, "--store", fresh)
    assert done.status == 1
    assert "archive-unlisted" in done.err
    assert not list((fresh / "wheelhouse").iterdir())


def test_an_honest_bundle_of_another_machine_gives_its_wheels(
    run: Cli, realised: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from envdsl.app import host
    from envdsl.model.names import Platform

    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    monkeypatch.setattr(host, "host_platform", lambda: Platform.parse(f"manylinux_2_36_{other}"))
    done = run("bundle", "import", realised, "--json", "--store", fresh)
    assert done.status == 0, done.err
    assert {path.partition("/")[0] for path in done.json["imported"]} == {"wheelhouse"}
    assert all(f"this machine is manylinux_2_36_{other}" in reason for reason in done.json["left-out"].values())
    assert len(done.json["left-out"]) == 11


def test_a_project_in_another_state_is_refused_and_named(run: Cli, bundle: Path, project: Path, fresh: Path) -> None:
    lock = project / "layers.d" / "pylock.core.toml"
    lock.write_text(lock.read_text() + "# edited\n")
    (project / "src" / "mine" / "__init__.py").write_text("ANSWER = 43\n")
    before = {path: path.read_bytes() for path in project.rglob("*") if path.is_file()}
    done = run("bundle", "import", bundle, "--store", fresh)
    assert done.status == 1
    assert "app-bundle-project-differs" in done.err
    assert "layers.d/pylock.core.toml" in done.err
    assert "src/mine/__init__.py" in done.err
    assert not list((fresh / "wheelhouse").iterdir())
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before
    assert run("bundle", "import", bundle, "--no-files", "--store", fresh).status == 0


def test_a_bundle_with_another_sha256_is_refused(run: Cli, bundle: Path, fresh: Path) -> None:
    done = run("bundle", "import", bundle, "--sha256", "0" * 64, "--store", fresh)
    assert (done.status, "archive-sha256" in done.err) == (1, True)


def test_a_store_that_has_something_else_under_a_key_is_not_overwritten(run: Cli, realised: Path, fresh: Path) -> None:
    assert run("bundle", "import", realised, "--store", fresh).status == 0

    def change(manifest: Manifest, contents: dict[str, bytes]) -> None:
        unpack = bundles.of_kind(manifest, "unpack")
        item = next(item for item in unpack["members"] if item["path"].endswith(".py"))
        put(manifest, contents, unpack, item, b"import os\n")

    done = run("bundle", "import", bundles.changed(realised, change), "--store", fresh)
    assert done.status == 1
    assert "app-bundle-conflict" in done.err
    assert run("verify", "--store", fresh).status == 0


def put(manifest: Manifest, contents: dict[str, bytes], path: dict[str, Any], item: dict[str, Any], new: bytes) -> None:
    """Another content for a file, consistently: its links, and the tree hashes of all that have it."""
    from envdsl.app.bundles.manifest import _path

    name = f"store/{path['path']}/{item['path']}"
    contents[name] = new
    facts = bundles.file_item(item["path"], new)
    item.update(facts)
    for other in manifest["paths"]:
        for member in other["members"]:
            if member.get("target") == name:
                member.update(size=facts["size"], blake3=facts["blake3"])
        other["tree-hash"] = _path(other).actual_tree_hash()


# hostile bundles

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
    before = tree(fresh)
    (tmp_path / "victim").mkdir()
    done = run("bundle", "import", bad, "--store", fresh, "--project", tmp_path / "victim", "--json")
    assert done.status == (2 if name == "settings" else 1), done.out
    found = [item["code"] for item in json.loads(done.err.splitlines()[-1])["diagnostics"]]
    assert all(item.startswith(code) for item in found), found
    assert tree(fresh) == before
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


def test_an_import_that_is_killed_leaves_nothing_valid_and_can_be_repeated(
    run: Cli, realised: Path, fresh: Path, tmp_path: Path
) -> None:
    """Issue 3.8: nothing invalid ever becomes a valid path: not by a crash, either."""
    code = (
        "import os, sys\n"
        "from envdsl.store import archive\n"
        "archive.Reader.finish = lambda self: os._exit(9)\n"
        "from envdsl.cli.group import run\n"
        "run(sys.argv[1:])\n"
    )
    (tmp_path / "there").mkdir()
    arguments = ["bundle", "import", str(realised), "--store", str(fresh), "--project", str(tmp_path / "there")]
    assert subprocess.run([sys.executable, "-c", code, *arguments], check=False).returncode == 9
    assert {path.partition("/")[0] for path in tree(fresh)} == {"python"}
    assert not list((tmp_path / "there").iterdir())
    assert run(*arguments).status == 0
    assert run("verify", "--store", fresh).status == 0


def test_importing_needs_little_memory(run: Cli, project: Path, fresh: Path, tmp_path: Path) -> None:
    """Issue 3.8: streaming, bounded memory: a wheel of 200 MB."""
    import zipfile

    block = os.urandom(1 << 20)
    make_wheel(project / "wheels", "big", "1", files={"big.bin": block * 200}, compression=zipfile.ZIP_STORED)
    (project / "layers.d" / "all.layer").write_text(f'iso big {{ python = "{PYTHON}"; packages = [ "big" ]; }}')
    assert run("lock").status == 0
    file = tmp_path / "big.tar.zst"
    code = (
        "import pathlib, sys\n"
        "from envdsl.cli.group import run\n"
        "status = run(sys.argv[1:])\n"
        "print(pathlib.Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0], file=sys.stderr)\n"
        "sys.exit(status)\n"
    )
    for arguments in (
        ["bundle", "create", "-o", file, "--no-interpreter"],
        ["bundle", "import", file, "--store", fresh],
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
        )
        assert int(done.stderr.split()[-1]) < 140_000, arguments

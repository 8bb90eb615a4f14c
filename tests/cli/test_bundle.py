"""``envdsl bundle``: a machine without a network gets what it needs, whole, the same each time."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import bundles
from tests.cli.bundles import Manifest
from tests.cli.conftest import PYTHON, Cli
from tests.wheels import make_wheel

NOWHERE = '[[index]]\nname = "nowhere"\nurl = "http://127.0.0.1:9/simple"\ndefault = true\n'


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
    before = bundles.tree(fresh)
    again = run("bundle", "import", realised, "--store", fresh, "--json").json
    assert again["imported"] == []
    assert sorted(again["present"]) == sorted(first["imported"])
    assert bundles.tree(fresh) == before


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
        bundles.put(manifest, contents, unpack, item, b"import os\n")

    done = run("bundle", "import", bundles.changed(realised, change), "--store", fresh)
    assert done.status == 1
    assert "app-bundle-conflict" in done.err
    assert run("verify", "--store", fresh).status == 0


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
    assert {path.partition("/")[0] for path in bundles.tree(fresh)} == {"python"}
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

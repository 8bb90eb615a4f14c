"""An x layer has hard links of those libraries of its base that its own files look for beside themselves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from envdsl.graph.derivation import Layer
from envdsl.model.names import LayerKind
from envdsl.realise.collisions import Owner
from envdsl.realise.dynamic import Dynamic, read_dynamic
from envdsl.realise.layer import Part, link_layer
from envdsl.realise.libraries import borrow
from envdsl.realise.scheduler import realise
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from envdsl.store.treehash import Entry, scan
from tests.realise.building import Wheels, base_of, graph_of, unpack_of, unpacked
from tests.wheels import make_wheel

SITE = "site-packages"


def entry(path: str) -> Entry:
    return Entry(f"{SITE}/{path}", "file", False, 1, "0" * 64)


def found(own: Mapping[str, Dynamic | None], base: Mapping[str, Dynamic | None]) -> list[str]:
    """What a layer of ``own`` borrows, relative to site-packages."""

    def read(path: str, borrowed: bool) -> Dynamic | None:
        return (base if borrowed else own)[path.removeprefix(f"{SITE}/")]

    entries = {f"{SITE}/{path}": entry(path) for path in own}
    return [path.removeprefix(f"{SITE}/") for path in borrow(entries, map(entry, base), read)]


def run(needed: Sequence[str], *directories: str) -> Dynamic:
    return Dynamic(tuple(needed), directories, ())


def old(needed: Sequence[str], *directories: str) -> Dynamic:
    return Dynamic(tuple(needed), (), directories)


PLAIN = Dynamic((), (), ())


@pytest.mark.parametrize("spelled", ["$ORIGIN/../b.libs", "${ORIGIN}/../b.libs", "$ORIGIN/./../x/../b.libs/"])
def test_a_library_is_found_where_the_linker_looks_for_it(spelled: str) -> None:
    assert found({"a/_a.so": run(["libb.so.1"], spelled)}, {"b.libs/libb.so.1": PLAIN}) == ["b.libs/libb.so.1"]


@pytest.mark.parametrize(
    "spelled", ["/b.libs", "../b.libs", "$ORIGIN/../../../b.libs", "$ORIGIN/../b.libs/$LIB", "$ORIGINAL/../b.libs", ""]
)
def test_only_paths_that_begin_at_the_file_and_stay_in_the_layer_count(spelled: str) -> None:
    assert found({"a/_a.so": run(["libb.so"], spelled)}, {"b.libs/libb.so": PLAIN}) == []


def test_the_layers_own_library_comes_first_where_it_is_found_first() -> None:
    base = {"b.libs/libb.so": PLAIN}
    own = {"a/libb.so": PLAIN, "a/_a.so": run(["libb.so"], "$ORIGIN", "$ORIGIN/../b.libs")}
    assert found(own, base) == []
    own["a/_a.so"] = run(["libb.so"], "$ORIGIN/../b.libs", "$ORIGIN")
    assert found(own, base) == ["b.libs/libb.so"]


def test_what_a_borrowed_library_needs_is_borrowed_too() -> None:
    base = {
        "b.libs/libb.so": run(["libc.so.1", "libm.so.6"], "$ORIGIN/../c.libs"),
        "c.libs/libc.so.1": PLAIN,
        "d.libs/libd.so": PLAIN,
    }
    assert found({"a/_a.so": run(["libb.so"], "$ORIGIN/../b.libs")}, base) == ["b.libs/libb.so", "c.libs/libc.so.1"]


def test_an_own_library_is_looked_at_with_the_rpath_of_whoever_loads_it() -> None:
    """DT_RPATH is searched for what is loaded indirectly as well; DT_RUNPATH is not (ld.so(8))."""
    base = {"b.libs/libb.so": PLAIN}
    own = {"a/_a.so": old(["libown.so"], "$ORIGIN", "$ORIGIN/../b.libs"), "a/libown.so": old(["libb.so"])}
    assert found(own, base) == ["b.libs/libb.so"]
    own["a/_a.so"] = run(["libown.so"], "$ORIGIN", "$ORIGIN/../b.libs")
    assert found(own, base) == []
    own["a/_a.so"] = old(["libown.so"], "$ORIGIN", "$ORIGIN/../b.libs")
    own["a/libown.so"] = run(["libb.so"], "$ORIGIN/elsewhere")
    assert found(own, base) == []


def test_libraries_beside_a_borrowed_one_come_with_it_and_extension_modules_do_not() -> None:
    base = {"b/libb.so": PLAIN, "b/libb_plugin.so.9": PLAIN, "b/_b.abi3.so": PLAIN, "b/sub/libc.so": PLAIN}
    assert found({"a/_a.so": run(["libb.so"], "$ORIGIN/../b")}, base) == ["b/libb.so", "b/libb_plugin.so.9"]


def test_libraries_that_need_each_other_are_no_endless_search() -> None:
    base = {
        "b/libb.so": old(["libc.so"], "$ORIGIN", "$ORIGIN/../c"),
        "c/libc.so": old(["libb.so"], "$ORIGIN", "$ORIGIN/../b"),
    }
    assert found({"a/_a.so": old(["libb.so"], "$ORIGIN/../b")}, base) == ["b/libb.so", "c/libc.so"]


def test_nothing_is_read_where_there_is_nothing_to_find() -> None:
    def read(path: str, borrowed: bool) -> Dynamic | None:
        raise AssertionError(path)

    assert borrow({"a.py": entry("a.py")}, [entry("libb.so")], read) == {}
    assert borrow({"a.so": entry("a.so")}, [entry("b.py")], read) == {}


@pytest.mark.parametrize(
    "content", [b"", b"#!/bin/sh\n", b"\x7fELF", b"\x7fELF" + bytes(200), b"\x7fELF\2\1\1" + b"\xff" * 99]
)
def test_a_file_without_a_dynamic_section_says_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.so").write_bytes(content)
    assert read_dynamic(tmp_path / "a.so") is None


def test_pyelftools_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The quick reader of common files against the library, on the extension modules that are installed here."""
    places = [Path(entry) for entry in sys.path if entry.endswith(("lib-dynload", "site-packages"))]
    files = [path for place in places for path in sorted(place.rglob("*.so*"))[:60] if path.is_file()]
    quick = [read_dynamic(path) for path in files]

    def refuse(file: object) -> Dynamic | None:
        raise ValueError

    monkeypatch.setattr("envdsl.realise.dynamic._read", refuse)
    assert [read_dynamic(path) for path in files] == quick
    assert any(dynamic and dynamic.needed for dynamic in quick)


LIBRARY = "static int count; int take_step(void) { return ++count; }\n"
WRAPPER = "int take_step(void); int wrapped(void) { return take_step(); }\n"
# An extension module as the C API lays it out on 64-bit machines, so that no header of Python is needed.
MODULE = """
void *PyModule_Create2(void *, int);
int PyModule_AddIntConstant(void *, const char *, long);
int {function}(void);
static long def[16] = {{1, 0, 0, 0, 0, (long)"{name}", 0, -1}};
void *PyInit_{name}(void) {{
    void *module = PyModule_Create2(def, 1013);
    PyModule_AddIntConstant(module, "count", {function}());
    return module;
}}
"""


class Compiler:
    """Shared objects for one test."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made: dict[str, Path] = {}

    def __call__(self, name: str, source: str, *needed: str, rpath: str = "", old: bool = False) -> bytes:
        self.directory.mkdir(exist_ok=True)
        (self.directory / f"{name}.c").write_text(source)
        target = self.made[name] = self.directory / name
        command = ["gcc", "-shared", "-fPIC", "-o", target, self.directory / f"{name}.c", f"-Wl,-soname,{name}"]
        command += [self.made[other] for other in needed]
        if rpath:
            command += [f"-Wl,-rpath,{rpath}", f"-Wl,--{'disable' if old else 'enable'}-new-dtags"]
        subprocess.run(command, check=True, capture_output=True)
        return target.read_bytes()


@pytest.fixture
def compiler(tmp_path: Path) -> Compiler:
    if shutil.which("gcc") is None:
        pytest.skip("NOT TESTED: no gcc to build shared libraries with")
    return Compiler(tmp_path / "compiled")


def wheels(
    directory: Path, compiler: Compiler, *, old: bool = False, tag: str = "py3-none-linux_x86_64"
) -> tuple[Path, Path]:
    """A base wheel with a library and a module, and an x wheel whose module needs that library by way of another."""
    library = compiler("libstep-1a2b.so.1", LIBRARY)
    wrapper = compiler("libwrap.so", WRAPPER, "libstep-1a2b.so.1", rpath="$ORIGIN/../../ground.libs", old=old)
    ground = compiler(
        "_ground.so",
        MODULE.format(name="_ground", function="take_step"),
        "libstep-1a2b.so.1",
        rpath="$ORIGIN/../ground.libs",
    )
    over = compiler(
        "_over.so",
        MODULE.format(name="_over", function="wrapped"),
        "libwrap.so",
        rpath="$ORIGIN/../ground/lib",
        old=old,
    )
    base = make_wheel(
        directory,
        "ground",
        "1.0",
        files={
            "ground/__init__.py": "from ground._ground import count\n",
            "ground/_ground.so": ground,
            "ground/lib/libwrap.so": wrapper,
            "ground.libs/libstep-1a2b.so.1": library,
        },
        tag=tag,
    )
    files = {"over/__init__.py": "from over._over import count\n", "over/_over.so": over}
    return base, make_wheel(directory, "over", "1.0", files=files, tag=tag)


def imported(*layers: Path) -> str:
    """What a Python with ``layers`` on its path prints; both modules count with one library, if it is one."""
    script = "import ground, over; print(ground.count, over.count)"
    path = ":".join(str(layer / SITE) for layer in layers)
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


BORROWED = ["site-packages/ground.libs/libstep-1a2b.so.1", "site-packages/ground/lib/libwrap.so"]


@pytest.mark.parametrize("old", [False, True], ids=["RUNPATH", "RPATH"])
def test_an_x_layer_imports_against_libraries_of_its_base(tmp_path: Path, compiler: Compiler, old: bool) -> None:
    """Issue 3.3: compiled wheels in a real store; in either order, and with one copy of the library in the process."""
    ground, over = wheels(tmp_path / "wheels", compiler, old=old)
    base = base_of([ground])
    extension = base_of([over], kind=LayerKind.X, base=base)
    with Store.open(tmp_path / "store") as store:
        realise(
            graph_of(base=base, x=extension),
            ["x"],
            store,
            fetch=Wheels(store, ground, over),
            interpreters=lambda _: Path(sys.executable),
            project=tmp_path,
            reporter=Reporter(),
            jobs=2,
        )
        below = store.layout.absolute(store.layout.layer_path(base.id))
        layer = store.layout.absolute(store.layout.layer_path(extension.id))
        assert store.listing(extension.key) == scan(layer)
    for path in BORROWED:
        assert (layer / path).samefile(below / path)
    facts = json.loads((layer / "layer.json").read_bytes())
    assert facts["borrowed"] == [{"from": "ground", "path": path} for path in BORROWED]
    assert [package["name"] for package in facts["packages"]] == ["over"]
    assert facts["files"] == sum(path.is_file() for path in layer.rglob("*")) - 1
    assert imported(layer, below) == imported(below, layer) == "1 2"


def parts_of(directory: Path, compiler: Compiler) -> tuple[Layer, Part, Owner]:
    ground, over = wheels(directory / "wheels", compiler)
    base = base_of([ground])
    listing = unpacked(ground, directory / "ground")
    owner = Owner(str(base.id), directory / "ground", listing, lambda path: "ground")
    part = Part(unpack_of(over), directory / "over", unpacked(over, directory / "over"), None)
    return base_of([over], kind=LayerKind.X, base=base), part, owner


def test_without_the_links_the_import_fails(tmp_path: Path, compiler: Compiler) -> None:
    """What this is for: the two unpacked wheels, each in its own place, do not find each other."""
    _, part, owner = parts_of(tmp_path, compiler)
    assert "libwrap.so: cannot open shared object file" in imported(owner.tree, part.tree)


def test_the_same_base_and_wheels_give_the_same_tree(tmp_path: Path, compiler: Compiler) -> None:
    layer, part, owner = parts_of(tmp_path, compiler)
    hashes = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        hashes.append(link_layer(layer, [part], tmp_path / name, below=owner).listing.tree_hash())
    assert hashes[0] == hashes[1] == scan(tmp_path / "two").tree_hash()


def test_a_layer_that_borrows_nothing_says_nothing_of_it(tmp_path: Path, compiler: Compiler) -> None:
    layer, part, _ = parts_of(tmp_path, compiler)
    (tmp_path / "layer").mkdir()
    link_layer(layer, [part], tmp_path / "layer", below=Owner("base", tmp_path, scan(tmp_path / "wheels")))
    assert "borrowed" not in json.loads((tmp_path / "layer/layer.json").read_bytes())
    assert not os.path.lexists(tmp_path / "layer/site-packages/ground.libs")

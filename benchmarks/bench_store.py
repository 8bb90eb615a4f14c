"""What a store costs while it stands: verifying it, collecting nothing in it, and the disk that sessions share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import chdir
from itertools import chain, combinations, islice
from pathlib import Path
from shutil import copyfile

from benchmarks.harness import Row, command, pairs, spawn
from benchmarks.scratch import ENVDSL, Scratch
from envdsl.app import sessions
from envdsl.app.host import host_platform
from envdsl.app.project import Project
from envdsl.reporter import Reporter
from envdsl.store.store import Store
from tests.torture import large

VERIFY = "`verify` of a store with `office`"
DISK = "100 sessions on 10 layers: disk"
GC = "`gc` that finds nothing, 10,000 paths"

# Names of files from its standard input; each read whole, a block at a time, as fast as Python can.
_HASH = """\
import sys
from blake3 import blake3
for name in sys.stdin.buffer.read().split(b"\\0"):
    with open(name, "rb", buffering=0) as file:
        hasher = blake3()
        while block := file.read(1 << 18):
            hasher.update(block)
        hasher.digest()
"""
_RUNS = 15
_SESSIONS = 100
_PATHS = 10_000
_FILES = 50  # of each path but wheels
# A base and what stands on it, out of the packages of `office`: ten layers that share no file but what two of them
# need and the base lacks.
_BASE = ("numpy", "lxml", "pillow")


def verify(scratch: Scratch) -> Row:
    """Both read what is in the page cache; a file with several names is read once by both."""
    office = scratch.office
    store = office.store("verified")  # what other lines add to the warm one does not count
    office.build(office.curated, store)
    with Store.open(store) as opened:
        places = [opened.layout.absolute(path.path) for path in opened.paths()]
    names = scratch.root / "files-to-hash"
    names.write_bytes(b"\0".join(os.fsencode(path) for path in _distinct(places)))
    environment = {**scratch.environment, "ENVDSL_PROJECT": str(office.curated), "ENVDSL_STORE": str(store)}
    return pairs(
        VERIFY,
        "hashing the same files with blake3, one thread",
        1.5,
        lambda _: spawn([ENVDSL, "verify"], environment),
        lambda _: spawn([sys.executable, "-c", _HASH], scratch.environment, files=[(0, names)]),
        runs=scratch.runs(_RUNS),
        warmups=1,
    )


def gc(scratch: Scratch) -> Row:
    """Every layer is a root, by a list as a project registers one; `find` prints every name.

    gc looks at paths, `find` at files. A path of a real store has about two hundred (`office`, wheels counted in):
    fifty are a modest store.
    """
    root = scratch.root / "stores/ten-thousand"
    large.make(root, _PATHS, more_files=_FILES - 1)
    with Store.open(root) as store:
        keys = [path.key for path in store.paths("layer")]
        (store.layout.gcroots / "all").write_text("".join(f"{key}\n" for key in keys))
    project = scratch.directory("projects/empty")
    (project / "layers.d").mkdir(exist_ok=True)
    environment = {**scratch.environment, "ENVDSL_PROJECT": str(project), "ENVDSL_STORE": str(root)}
    row = pairs(
        GC,
        "`find` over the same store",
        1.5,
        lambda _: spawn([ENVDSL, "gc"], environment),
        lambda _: spawn(["/usr/bin/find", str(root)], scratch.environment),
        runs=scratch.runs(_RUNS),
        warmups=1,
    )
    with Store.open(root) as store:
        if len(store.paths()) != _PATHS:
            raise RuntimeError("gc found something")
    return row


def disk(scratch: Scratch) -> Row:
    """Real layers and sessions; `du` counts blocks, directories too, and a file with several names once.

    Ours is all that layers and sessions take: the layers, the parts that they link, sources, records and sessions. Not
    the interpreter, which both sides need, and not the wheelhouse: the note has it.
    """
    office = scratch.office
    place = office.scratch.directory("projects/ten")
    store = office.store("ten")
    office.configure(place)
    (place / "layers.d").mkdir(exist_ok=True)
    (place / "layers.d/ten.layer").write_text(_ten_layers(scratch))
    run = {"environment": scratch.environment, "cwd": place}
    for arguments in (["lock", "--offline"], ["build", "--offline"]):
        command([ENVDSL, *arguments, "--store", str(store)], **run)  # type: ignore[arg-type]
    _create_sessions(place, store)
    layout = Store.open(store, create=False).layout
    union = scratch.directory("union")
    _copy_union(sorted(layout.layers.iterdir()), union)
    scratch.sync()
    shared = [layout.layers, layout.unpacked, layout.bytecode, layout.sources, layout.sessions]
    records = [layout.drv, layout.locks, layout.logs, layout.gcroots, layout.cache, layout.database]
    ours, theirs = _du(*shared, *records), _du(union)
    wheels = _du(layout.wheelhouse)
    return Row(
        DISK,
        "one copy of the union of their files",
        1.05,
        ours / theirs,
        ours,
        theirs,
        f"{len(sessions_of(store))} sessions, {len(list(layout.layers.iterdir()))} layers; "
        f"with the wheelhouse {(ours + wheels) / theirs:.2f}",
        os.getloadavg()[0],
        unit="B",
    )


def sessions_of(store: Path) -> list[Path]:
    return [place for place in (store / "sessions").iterdir() if not place.name.startswith(".")]


def _ten_layers(scratch: Scratch) -> str:
    layer = scratch.office.layer
    here = host_platform().machine  # there are wheels for this machine alone
    platforms = " ".join(f'"{platform}"' for platform in layer.platforms if platform.machine == here)
    others = [item.text for item in layer.packages if item.text not in _BASE]
    base = " ".join(f'"{name}"' for name in _BASE)
    lines = [f'base core {{ python = "{layer.python}"; platforms = [ {platforms} ]; packages = [ {base} ]; }}']
    lines += [f'x with-{name} on core {{ packages = [ "{name}" ]; }}' for name in others]
    if len(lines) != 10:
        raise RuntimeError(f"{len(lines)} layers instead of 10: `office` has other packages now")
    return "\n".join(lines) + "\n"


def _create_sessions(place: Path, store: Path) -> None:
    """A hundred sessions, each on the base and another choice of three or two of the others."""
    with chdir(place):
        project = Project.find(place, store=store, reporter=Reporter())
        try:
            names = sorted(name for name in project.spec.layers if name != "core")
            choices = chain(combinations(names, 3), combinations(names, 2))
            for number, chosen in enumerate(islice(choices, _SESSIONS)):
                sessions.create(project, f"s{number}", ["core", *chosen], None)
        finally:
            project.close()


def _copy_union(layers: Iterable[Path], union: Path) -> None:
    """Each file of ``layers`` once, whatever its names; where two have one path, the second goes beside it."""
    seen: set[int] = set()
    for number, layer in enumerate(layers):
        for file in _files(layer):
            inode = file.stat().st_ino
            if inode in seen:
                continue
            seen.add(inode)
            target = union / file.relative_to(layer)
            if target.exists():
                target = union / f"other-{number}" / file.relative_to(layer)
            target.parent.mkdir(parents=True, exist_ok=True)
            copyfile(file, target)


def _distinct(places: Iterable[Path]) -> Iterator[Path]:
    seen: set[int] = set()
    for place in places:
        for file in _files(place):
            inode = file.stat().st_ino
            if inode not in seen:
                seen.add(inode)
                yield file


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for directory, _, names in os.walk(place):
        for name in sorted(names):
            file = Path(directory, name)
            if not file.is_symlink():
                yield file


def _du(*places: Path) -> float:
    """Bytes on disk."""
    said = command(["du", "-sc", "--block-size=1", *(str(place) for place in places if place.exists())])
    return float(said.splitlines()[-1].split()[0])


LINES = {VERIFY: verify, DISK: disk, GC: gc}

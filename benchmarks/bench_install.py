"""Making ``office`` against uv: from nothing, with and without bytecode, and once its wheels are known.

Both sides are whole processes that take the same wheel files from a flat directory, on one file system, for one
interpreter that is there already. Stores, virtual environments and caches are made anew for each run, before the
first is measured. Ours does more: it checks each wheel against its lock and RECORD, and hashes each file. Neither waits
for the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Row, pairs
from benchmarks.office import Office
from benchmarks.scratch import Scratch

UNPACK = "unpacking `office` from local wheels, empty store, no bytecode"
COMPILE = "the same with bytecode"
RELAYER = "a new layer whose wheels the store knows, bytecode included"

_RUNS = 7
_WARMUPS = 1


def unpack(scratch: Scratch) -> Row:
    against = "`uv pip install --link-mode hardlink` of the same wheels, empty cache"
    return _from_nothing(scratch, UNPACK, against, 0.6, "plain", bytecode=False)


def compile_(scratch: Scratch) -> Row:
    against = "uv with `--compile-bytecode`, empty cache"
    return _from_nothing(scratch, COMPILE, against, 0.85, "compiled", bytecode=True)


def _from_nothing(scratch: Scratch, work: str, against: str, at_most: float, name: str, *, bytecode: bool) -> Row:
    office, numbers = scratch.office, _numbers(scratch)
    project = office.project(name, f"bytecode = {str(bytecode).lower()};")
    stores = {number: office.store(f"{name}-{number}") for number in numbers}
    venvs = {number: office.virtual_environment(f"{name}-{number}") for number in numbers}
    options = ["--compile-bytecode"] if bytecode else []
    row = pairs(
        work,
        against,
        at_most,
        lambda number: office.build(project, stores[number]),
        lambda number: office.install(venvs[number], scratch.root / f"uv-cache-{name}-{number}", *options),
        runs=len(numbers) - _WARMUPS,
        warmups=_WARMUPS,
        before=scratch.sync,
    )
    _compare(office, stores[0], venvs[0])
    return row


def relayer(scratch: Scratch) -> Row:
    """What is new is a variable in ``env``, which is enough for another key and another farm of links.

    Our layer has bytecode, which the store knows; the virtual environment has none.
    """
    office, numbers = scratch.office, _numbers(scratch)
    projects = {number: office.project(f"new-{number}", f'env = {{ RUN = "{number}"; }};') for number in numbers}
    venvs = {number: office.virtual_environment(f"new-{number}") for number in numbers}
    store, cache = office.warm_store, scratch.root / "uv-cache-known"
    office.install(office.virtual_environment("known"), cache)
    return pairs(
        RELAYER,
        "uv, warm cache, hard links, no bytecode",
        1.0,
        lambda number: office.build(projects[number], store),
        lambda number: office.install(venvs[number], cache),
        runs=len(numbers) - _WARMUPS,
        warmups=_WARMUPS,
        before=scratch.sync,
    )


def _numbers(scratch: Scratch) -> Sequence[int]:
    return range(-_WARMUPS, scratch.runs(_RUNS))


def _compare(office: Office, store: Path, venv: Path) -> None:
    """Both sides must have installed the same distributions, or the line says nothing."""
    (layer,) = store.glob("layers/base-*/site-packages")
    (site,) = venv.glob("lib/python*/site-packages")
    ours, theirs = ({path.name for path in place.glob("*.dist-info")} for place in (layer, site))
    if len(ours) != len(office.pins) or ours != theirs:
        raise RuntimeError(f"not the same distributions: {sorted(ours ^ theirs)}")


LINES = {UNPACK: unpack, COMPILE: compile_, RELAYER: relayer}

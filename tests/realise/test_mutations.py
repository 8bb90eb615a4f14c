"""Wheels from a grammar of mutations: whatever is done to a valid one, it is laid out as it says or refused.

A sentence of the grammar is a few mutations, each of which puts something odd into a name, a RECORD row, a header, the
metadata or the archive. No oracle says which of them is legal; what holds for all of them is below.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from envdsl.errors import EnvdslError
from envdsl.store.treehash import Listing, scan
from tests.realise.archives import RawMember
from tests.realise.building import unpacked
from tests.realise.corpus.case import Rows, Wheel

PIECES = [
    "demo",
    "a.py",
    "..",
    ".",
    "",
    "~",
    "con",
    "ü",
    "u\u0308",
    "A.PY",
    "a\\b",
    "x" * 200,
    "demo-1.0.dist-info",
    "bin",
]
NAMES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("/".join)
SCHEMES = st.sampled_from(
    ["purelib", "platlib", "headers", "scripts", "data", "other", "data/bin", "data/lib/python3.12"]
)
CONTENTS = st.sampled_from([b"", b"x = 1\n", b"#!python", b"#!pythonw\r\nx", b"\x7fELF", bytes(5000)])
FILES = st.dictionaries(NAMES, CONTENTS, max_size=4)
DATA = st.dictionaries(st.tuples(SCHEMES, NAMES).map("/".join), CONTENTS, max_size=3)
ENTRY_POINTS = st.lists(
    st.tuples(
        st.sampled_from(["demo", "Demo", "../x", "python3", "a b", "", "é", "x" * 300]),
        st.sampled_from(["demo:main", "demo:a.b [extra]", "demo", ":", "%(x)s:y", "demo:main\n  more"]),
    ),
    max_size=3,
).map(lambda points: "[console_scripts]\n" + "".join(f"{name} = {target}\n" for name, target in points))
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "method": st.sampled_from([0, 8, 12, 93]),
        "flags": st.sampled_from([0, 1, 8, 0x800]),
        "mode": st.sampled_from([0, 0o100755, 0o040755, 0o120777, 0o010644]),
        "made_by": st.sampled_from([20, 3 << 8 | 20, 19 << 8]),
        "after": st.sampled_from([b"", b"hidden"]),
        "local": st.sampled_from([{}, {"crc": 0}, {"size": 0}, {"name": b"other"}]),
        "central": st.sampled_from([{}, {"crc": 0}, {"size": 1}, {"offset": 0}, {"disk": 1}]),
    },
)


@st.composite
def wheels(draw: st.DrawFn) -> Wheel:
    """A wheel, and what has been done to it."""
    which = draw(
        st.sets(st.sampled_from(["files", "data", "points", "record", "header", "names", "twice"]), max_size=3)
    )
    wheel = Wheel(
        files={"demo.py": b"x = 1\n", **(draw(FILES) if "files" in which else {})},
        data=draw(DATA) if "data" in which else {},
        entry_points=draw(ENTRY_POINTS) if "points" in which else None,
    )
    if "names" in which:
        info = draw(st.sampled_from(["demo-1.0", "Demo-1", "demo-2.0", "other-1.0", "demo", "-", "demo-1.0.data"]))
        wheel = replace(
            wheel,
            info=f"{info}.dist-info",
            version=draw(st.sampled_from(["1.0", "1", "1.0.0", "1.0+x", "2", "?"])),
            wheel_version=draw(st.sampled_from(["1.0", "1.9", "2.0", "", "1.0\nWheel-Version: 2.0"])),
        )
    if "record" in which:
        rows = draw(
            st.lists(
                st.tuples(
                    NAMES, st.sampled_from(["", "sha256=x", "md5=x", "sha512="]), st.sampled_from(["", "1", "x"])
                ),
                max_size=3,
            )
        )
        dropped = draw(st.sets(st.integers(0, 4), max_size=2))

        def record(present: Rows) -> Rows:
            kept = [line for index, line in enumerate(present) if index not in dropped]
            return kept + [",".join(row) for row in rows]

        wheel = replace(wheel, record=record)
    number = draw(st.integers(0, 3))
    header = draw(HEADERS) if "header" in which else {}

    def members(present: list[RawMember]) -> Sequence[RawMember]:
        changed = present[number % len(present)]
        for attribute, value in header.items():
            setattr(changed, attribute, value)
        return [*present, present[0]] if "twice" in which else present

    return replace(wheel, members=members)


def outcome(wheel: Path, root: Path, *, waived: bool) -> Listing | str:
    try:
        return unpacked(wheel, root, record_mismatch=waived)
    except EnvdslError as error:
        (diagnostic,) = error.diagnostics
        assert diagnostic.code.startswith("intake-")
        assert wheel.name in diagnostic.message
        return diagnostic.code


@settings(max_examples=150, deadline=None)
@given(wheels())
def test_a_mutated_wheel_is_laid_out_as_it_says_or_refused(wheel: Wheel) -> None:
    """Issue 3.1: never another exception, nothing outside of the output; a waiver changes nothing that is accepted."""
    place = Path(tempfile.mkdtemp(prefix="envdsl-mutation-"))
    try:
        made = wheel.build(place)
        strict = outcome(made, place / "strict", waived=False)
        lenient = outcome(made, place / "lenient", waived=True)
        assert {path.name for path in place.iterdir()} == {made.name, "strict", "lenient"}
        if isinstance(strict, Listing):
            assert strict == lenient == scan(place / "strict")
            check(place / "strict", strict)
        elif isinstance(lenient, Listing):
            assert strict.startswith("intake-record-")
            check(place / "lenient", lenient)
        else:
            assert strict == lenient or strict.startswith("intake-record-")
    finally:
        shutil.rmtree(place)


def check(root: Path, listing: Listing) -> None:
    """What holds for whatever is accepted."""
    tops = {entry.path.partition("/")[0] for entry in listing}
    assert "site-packages" in tops
    assert not {"layer.json", "pyvenv.cfg"} & tops
    assert not [entry.path for entry in listing if "__pycache__" in entry.path.split("/")]
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert stat.S_ISDIR(mode) or stat.S_ISREG(mode)
        assert not stat.S_IMODE(mode) & 0o222
    programs = root / "bin"
    assert not programs.exists() or not {"python", "python3", "sh", "env"} & {path.name for path in programs.iterdir()}
    assert len(list((root / "site-packages").glob("*.dist-info"))) == 1

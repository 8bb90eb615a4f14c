"""RECORD: rows that are missing, too many, wrong, or spelled in a way of their own."""

from __future__ import annotations

import base64
import hashlib

from tests.realise.archives import RawMember
from tests.realise.corpus.case import Case, Wheel, replaced, row, with_member, without

INFO = "demo-1.0.dist-info"
CODE = b"x = 1\n"
# Its sha256 has both characters that the two alphabets of base64 spell differently.
ODD = next(
    content
    for content in (f"x = {number}\n".encode() for number in range(10_000))
    if {b"+", b"/"} <= {bytes([byte]) for byte in base64.b64encode(hashlib.sha256(content).digest())}
)

RECORDS = (
    Case(
        "signature-without-row",
        "pypi/warehouse#18502",
        "RECORD.jws must not be in RECORD, so it is not",
        Wheel(members=with_member(RawMember(f"{INFO}/RECORD.jws".encode(), b"{}"))),
        holds=lambda root: (root / "site-packages" / INFO / "RECORD.jws").read_bytes() == b"{}",
    ),
    Case(
        "signature-with-row-without-hash",
        "pypa/pip#6198",
        "RECORD.p7s is listed, and cannot be hashed before RECORD is signed",
        Wheel(
            members=with_member(RawMember(f"{INFO}/RECORD.p7s".encode(), b"\x30")),
            record=lambda rows: [*rows, f"{INFO}/RECORD.p7s,,"],
        ),
    ),
    Case(
        "bytecode-without-hash",
        "hylang/hy#2299",
        "bytecode is made while the wheel is, and its rows have no hash",
        Wheel(files={"demo.pyc": b"code"}, record=replaced("demo.pyc", "demo.pyc,,")),
        holds=lambda root: (root / "site-packages/demo.pyc").is_file(),
    ),
    Case(
        "pycache-in-the-wheel",
        "nicolargo/glances#3516",
        "__pycache__ was packed; what an interpreter runs instead of the source is made here and never taken over",
        Wheel(files={"demo.py": CODE, "__pycache__/demo.cpython-312.pyc": b"code"}),
        holds=lambda root: not list(root.rglob("__pycache__")),
    ),
    Case(
        "row-missing",
        "pypa/installer#100",
        "catboost 1.0.4 and selenium 4.1.0 list some of their files only; pip does not look",
        Wheel(record=without("demo.py")),
        code="intake-record-missing",
        waivable=True,
        holds=lambda root: "demo.py,sha256=" in (root / "site-packages" / INFO / "RECORD").read_text(),
    ),
    Case(
        "libraries-added-later",
        "CATIA-Systems/FMPy#544",
        "shared objects were put into the finished wheel",
        Wheel(members=with_member(RawMember(b"demo/lib.so", b"\x7fELF"))),
        code="intake-record-missing",
        waivable=True,
    ),
    Case(
        "row-of-a-file-that-is-not-there",
        "Kitware/LookingGlassVTKModule#37",
        "files were taken out after the wheel was repaired",
        Wheel(record=lambda rows: [*rows, row("gone.py", b"")]),
        code="intake-record-extra",
        waivable=True,
    ),
    Case(
        "all-rows-with-backslashes",
        "pypa/flit#126",
        "RECORD was written on Windows with Windows's separator",
        Wheel(files={"demo/a.py": CODE}, record=lambda rows: [line.replace("demo/", "demo\\") for line in rows]),
        code="intake-record-missing",
        waivable=True,
    ),
    Case(
        "own-row-with-backslash",
        "pypa/installer#149",
        "PyQt5_Qt5 5.15.2: RECORD lists itself as dist-info\\RECORD",
        Wheel(record=replaced(f"{INFO}/RECORD", f"{INFO}\\RECORD,,")),
        code="intake-record-extra",
        waivable=True,
    ),
    Case(
        "absolute-path-in-a-row",
        "pypa/pip#14257",
        "an uninstaller that believes it would remove a file of the system",
        Wheel(record=lambda rows: [*rows, row("/etc/passwd", b"")]),
        code="intake-record-extra",
        waivable=True,
        holds=lambda root: "/etc" not in (root / "site-packages" / INFO / "RECORD").read_text(),
    ),
    Case(
        "row-that-climbs",
        "pypa/pip#13871",
        "a row outside of the environment, for the uninstaller",
        Wheel(record=lambda rows: [*rows, row("../../../tmp/target", b"")]),
        code="intake-record-extra",
        waivable=True,
        holds=lambda root: "tmp" not in (root / "site-packages" / INFO / "RECORD").read_text(),
    ),
    Case(
        "root-as-a-row",
        "pypa/pip#10118",
        "a row for ./ makes site-packages the wheel's own; the RECORD that is written here names files alone",
        Wheel(record=lambda rows: [*rows, "./,,"]),
        holds=lambda root: "./" not in (root / "site-packages" / INFO / "RECORD").read_text(),
    ),
    Case(
        "directories-as-rows",
        "MeshInspector/MeshLib#6875",
        "directory entries in the archive, with rows in RECORD",
        Wheel(
            files={f"{INFO}/licenses/LICENSE": b"free\n"},
            members=with_member(RawMember(f"{INFO}/licenses/".encode(), mode=0o040755)),
            record=lambda rows: [*rows, f"{INFO}/licenses/,,"],
        ),
    ),
    Case(
        "same-row-twice",
        "python-zeroconf/python-zeroconf#1125",
        "two identical rows say nothing that one does not",
        Wheel(record=lambda rows: [*rows, rows[0]]),
    ),
    Case(
        "two-rows-that-differ",
        "pypa/pip#5913",
        "two rows for a file, of which one is right",
        Wheel(record=lambda rows: [*rows, row("demo.py", b"other")]),
        code="intake-record-duplicate",
        waivable=True,
    ),
    Case(
        "hash-with-padding",
        "pypa/pip#11762",
        "catboost leaves the padding on its digests; they are the same digests",
        Wheel(record=lambda rows: [rows[0].replace(",6", "=,6"), *rows[1:]]),
    ),
    Case(
        "hash-in-the-other-alphabet",
        "pantsbuild/pants#18111",
        "pantsbuild.pants writes digests with + and / where - and _ are meant",
        Wheel(
            files={"demo.py": ODD},
            record=replaced(
                "demo.py",
                f"demo.py,sha256={base64.b64encode(hashlib.sha256(ODD).digest()).decode()},{len(ODD)}",
            ),
        ),
        code="intake-record-mismatch",
        waivable=True,
    ),
    Case(
        "hash-too-short",
        "pradyunsg/sphinx-theme-builder#13",
        "digests that are not as long as a sha256",
        Wheel(record=lambda rows: [rows[0].replace("=", "=AAAA", 1)[:30] + ",6", *rows[1:]]),
        code="intake-record-mismatch",
        waivable=True,
    ),
    Case(
        "edited-without-new-record",
        "pypa/pip#2752",
        "somebody unpacked the wheel, changed a file and packed it again",
        Wheel(record=replaced("demo.py", row("demo.py", b"# before\n"))),
        code="intake-record-mismatch",
        waivable=True,
        holds=lambda root: (root / "site-packages/demo.py").read_bytes() == CODE,
    ),
    Case(
        "no-hash",
        "pantsbuild/pants#4886",
        "rows of sources without a hash",
        Wheel(record=replaced("demo.py", "demo.py,,")),
        code="intake-record-no-hash",
        waivable=True,
    ),
    Case(
        "unknown-hash",
        "pypa/installer#179",
        "a hash of a kind that does not exist, or is not allowed",
        Wheel(record=replaced("demo.py", "demo.py,sha1=AAAA,6")),
        code="intake-record-weak-hash",
        waivable=True,
    ),
    Case(
        "carriage-returns",
        "pypa/wheel#383",
        "WHEEL and RECORD were written with the line ends of Windows",
        Wheel(record=lambda rows: [f"{line}\r" for line in rows]),
    ),
    Case(
        "comma-in-a-name",
        "pypa/installer#16",
        "RECORD is CSV: a name with a comma stands in quotes",
        Wheel(files={"demo/a,b.txt": b"x"}),
        holds=lambda root: (root / "site-packages/demo/a,b.txt").is_file(),
    ),
)

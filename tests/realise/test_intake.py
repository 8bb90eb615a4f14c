"""What the intake of a wheel refuses, and which odd wheels are legal all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.realise.intake import Intake, open_wheel
from envdsl.realise.placement import place
from tests.realise.building import altered, unpack_of, unpacked
from tests.wheels import make_wheel

INFO = "demo-1.0.dist-info"


def demo(directory: Path, **arguments: object) -> Path:
    return make_wheel(directory, "demo", "1.0", **arguments)  # type: ignore[arg-type]


def refused(wheel: Path, root: Path) -> EnvdslError:
    with pytest.raises(EnvdslError) as caught:
        unpacked(wheel, root)
    error = caught.value
    assert wheel.name in str(error)
    return error


@pytest.mark.parametrize("change", ["size", "sha256"])
def test_a_wheel_that_is_not_the_locked_file_is_refused_and_named(tmp_path: Path, change: str) -> None:
    """Issue 2.9: a wheel whose bytes differ from the lock is refused and named."""
    wheel = demo(tmp_path)
    unpack = unpack_of(wheel)
    content = bytearray(wheel.read_bytes())
    if change == "size":
        content.append(0)
    else:
        content[len(content) // 2] ^= 1
    wheel.write_bytes(content)
    with pytest.raises(EnvdslError, match=wheel.name) as caught, open_wheel(wheel, unpack):
        pass
    assert caught.value.code == ("intake-size" if change == "size" else "intake-hash")


def record_of(wheel: Path) -> bytes:
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"{INFO}/RECORD")


def without(line: bytes) -> Callable[[bytes], bytes]:
    return lambda record: b"".join(row for row in record.splitlines(keepends=True) if not row.startswith(line))


RECORDS: dict[str, Callable[[bytes], bytes]] = {
    "record-missing": without(b"demo.py"),
    "record-extra": lambda record: record + b"ghost.py,sha256=AAAA,1\n",
    "record-mismatch": lambda record: record.replace(b"demo.py,sha256=", b"demo.py,sha256=x"),
    "record-no-hash": lambda record: without(b"demo.py")(record) + b"demo.py,,\n",
    "record-weak-hash": lambda record: without(b"demo.py")(record) + b"demo.py,md5=AAAA,19\n",
    "record-duplicate": lambda record: record + b"demo.py,sha256=AAAA,1\n",
    "record-malformed": lambda record: record + b"demo2.py\n",
}


@pytest.mark.parametrize("rule", RECORDS)
def test_a_wrong_record_is_refused_and_the_waiver_is_named(tmp_path: Path, rule: str) -> None:
    """Issue 2.9: RECORD is checked; the hint says how to waive it."""
    wheel = demo(tmp_path)
    altered(wheel, {f"{INFO}/RECORD": RECORDS[rule](record_of(wheel))})
    error = refused(wheel, tmp_path / "out")
    assert error.code == f"intake-{rule}"
    assert 'record-mismatch = [ "demo" ]' in (error.diagnostics[0].hint or "")


def test_a_size_in_record_is_checked_too(tmp_path: Path) -> None:
    wheel = demo(tmp_path)
    altered(wheel, {f"{INFO}/RECORD": record_of(wheel).replace(b",20\n", b",21\n", 1)})
    assert refused(wheel, tmp_path / "out").code == "intake-record-mismatch"


@pytest.mark.parametrize("rule", RECORDS)
def test_the_waiver_lets_a_wrong_record_pass(tmp_path: Path, rule: str) -> None:
    wheel = demo(tmp_path)
    altered(wheel, {f"{INFO}/RECORD": RECORDS[rule](record_of(wheel))})
    unpacked(wheel, tmp_path / "out", record_mismatch=True)
    written = (tmp_path / "out/site-packages" / INFO / "RECORD").read_text()
    assert "demo.py,sha256=" in written
    assert "ghost" not in written


def test_stronger_hashes_in_record_are_checked(tmp_path: Path) -> None:
    import base64
    import hashlib

    wheel = demo(tmp_path)
    digest = base64.urlsafe_b64encode(hashlib.sha512(b'__version__ = "1.0"\n').digest()).rstrip(b"=")
    good = without(b"demo.py")(record_of(wheel)) + b"demo.py,sha512=" + digest + b",20\n"
    unpacked(altered(wheel, {f"{INFO}/RECORD": good}), tmp_path / "good")
    assert "demo.py,sha256=" in (tmp_path / "good/site-packages" / INFO / "RECORD").read_text()
    altered(wheel, {f"{INFO}/RECORD": good.replace(b"sha512=", b"sha512=x")})
    assert refused(wheel, tmp_path / "bad").code == "intake-record-mismatch"


METADATA = {
    "dist-info-missing": {f"{INFO}/{name}": None for name in ("METADATA", "WHEEL", "RECORD")},
    "dist-info-ambiguous": {"demo-2.0.dist-info/METADATA": b"Name: demo\nVersion: 2.0\n"},
    "metadata-missing": {f"{INFO}/METADATA": None},
    "metadata-missing: RECORD": {f"{INFO}/RECORD": None},
    "metadata-encoding": {f"{INFO}/METADATA": b"Name: d\xffmo\nVersion: 1.0\n"},
    "wheel-version": {f"{INFO}/WHEEL": b"Wheel-Version: 2.0\n"},
    "entry-point-malformed": {f"{INFO}/entry_points.txt": b"[console_scripts]\ndemo = !!\n"},
    "script-name": {f"{INFO}/entry_points.txt": b"[console_scripts]\n../../demo = demo:main\n"},
    "script-shadows-interpreter": {f"{INFO}/entry_points.txt": b"[console_scripts]\npython3 = demo:main\n"},
    "identity": {f"{INFO}/METADATA": b"Name: other\nVersion: 1.0\n"},
}


@pytest.mark.parametrize("rule", METADATA)
def test_wrong_metadata_is_refused(tmp_path: Path, rule: str) -> None:
    """Issue 2.9: exactly one dist-info, the name and version of the file, a known Wheel-Version, safe entry points."""
    wheel = altered(demo(tmp_path), METADATA[rule])
    with pytest.raises(EnvdslError, match=wheel.name) as caught:
        unpacked(wheel, tmp_path / "out", record_mismatch=True)
    assert caught.value.code == f"intake-{rule.partition(':')[0]}"


@pytest.mark.parametrize("version", ["1", "x.y", "0.1", ""])
def test_a_wheel_version_without_sense_is_refused(tmp_path: Path, version: str) -> None:
    wheel = altered(demo(tmp_path), {f"{INFO}/WHEEL": f"Wheel-Version: {version}\n".encode()})
    with pytest.raises(EnvdslError, match="Wheel-Version"):
        unpacked(wheel, tmp_path / "out", record_mismatch=True)


@pytest.mark.parametrize("name", ["other-1.0-py3-none-any.whl", "demo-1.1-py3-none-any.whl"])
def test_a_wheel_under_another_name_is_refused(tmp_path: Path, name: str) -> None:
    wheel = demo(tmp_path).rename(tmp_path / name)
    assert refused(wheel, tmp_path / "out").code == "intake-identity"


@pytest.mark.parametrize("name", ["python", "python3", "Python3.12", "pythonw", "pypy3", "env"])
@pytest.mark.parametrize("how", ["entry point", "script", "data"])
def test_no_script_may_stand_before_the_interpreter(tmp_path: Path, name: str, how: str) -> None:
    if how == "entry point":
        wheel = demo(tmp_path, entry_points={name: "demo:main"})
    else:
        wheel = demo(tmp_path, data={f"scripts/{name}" if how == "script" else f"data/bin/{name}": "#!python\n"})
    assert refused(wheel, tmp_path / "out").code == "intake-script-shadows-interpreter"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("data/site-packages/evil.py", "data-in-site-packages"),
        ("data/lib/python3.12/site-packages/evil.py", "data-in-site-packages"),
        ("data/lib/python3.12/os.py", "data-in-site-packages"),
        ("data/lib64/python3.12/dist-packages/evil.py", "data-in-site-packages"),
        ("data/layer.json", "data-place"),
        ("data/pyvenv.cfg", "data-place"),
        ("nonsense/x", "scheme"),
        ("scripts/deeper/tool", "script-name"),
    ],
)
def test_data_files_stay_where_they_belong(tmp_path: Path, path: str, rule: str) -> None:
    assert refused(demo(tmp_path, data={path: "x"}), tmp_path / "out").code == f"intake-{rule}"


def test_two_members_for_one_place_are_refused(tmp_path: Path) -> None:
    wheel = demo(tmp_path, files={"demo.py": "a"}, data={"purelib/demo.py": "b"})
    assert refused(wheel, tmp_path / "out").code == "intake-place-twice"
    wheel = demo(tmp_path, data={"scripts/demo": "#!python\n"}, entry_points={"demo": "demo:main"})
    assert refused(wheel, tmp_path / "out2").code == "intake-place-twice"


def test_a_place_is_either_a_file_or_a_directory(tmp_path: Path) -> None:
    wheel = demo(tmp_path, files={"demo": "a"}, data={"purelib/demo/x.py": "b"})
    assert refused(wheel, tmp_path / "out").code == "intake-place-twice"


@pytest.mark.parametrize("name", ["RECORD", "INSTALLER"])
def test_what_is_generated_cannot_come_in_by_the_data_directory(tmp_path: Path, name: str) -> None:
    wheel = demo(tmp_path, data={f"purelib/{INFO}/{name}": "x"})
    assert refused(wheel, tmp_path / "out").code == "intake-place-twice"


def test_a_second_distribution_cannot_come_in_by_the_data_directory(tmp_path: Path) -> None:
    wheel = demo(tmp_path, data={"purelib/pip-99.0.dist-info/METADATA": "Name: pip\n"})
    assert refused(wheel, tmp_path / "out").code == "intake-dist-info-ambiguous"


def test_programs_may_stand_deeper_in_a_bin_of_data_files(tmp_path: Path) -> None:
    wheel = demo(tmp_path, data={"data/bin/tools/python3": "x"})
    assert "bin/tools/python3" in [entry.path for entry in unpacked(wheel, tmp_path / "out")]


def take(wheel: Path) -> Intake:
    with open_wheel(wheel, unpack_of(wheel)) as intake:
        return intake


def test_a_newer_minor_wheel_version_is_accepted_with_a_warning(tmp_path: Path) -> None:
    wheel = demo(tmp_path)
    record = without(f"{INFO}/WHEEL".encode())(record_of(wheel)) + f"{INFO}/WHEEL,,\n".encode()
    altered(wheel, {f"{INFO}/WHEEL": b"Wheel-Version: 1.9\n", f"{INFO}/RECORD": record})
    with open_wheel(wheel, unpack_of(wheel, record_mismatch=True)) as intake:
        assert "1.9" in intake.oddities[0]


def test_directories_need_not_be_spelled_in_normal_form(tmp_path: Path) -> None:
    """`Foo.Bar-1.0.0.dist-info` in `foo_bar-1.0-…whl` is one distribution (PEP 503, PEP 440)."""
    made = make_wheel(tmp_path, "Foo.Bar", "1.0.0", data={"data/share/x": "x"}, files={"foo.py": ""})
    intake = take(made.rename(tmp_path / "foo_bar-1.0-py3-none-any.whl"))
    assert intake.dist_info == "Foo.Bar-1.0.0.dist-info"
    assert "share/x" in [placed.path for placed in place(intake)]


def test_record_needs_no_hash_for_bytecode_and_no_row_for_signatures(tmp_path: Path) -> None:
    wheel = demo(tmp_path)
    record = record_of(wheel) + b"old.pyc,,\n__pycache__/demo.cpython-312.pyc,,\n"
    altered(wheel, {"old.pyc": b"x", f"{INFO}/RECORD.jws": b"{}", f"{INFO}/RECORD": record})
    unpacked(wheel, tmp_path / "out")
    assert (tmp_path / "out/site-packages/old.pyc").read_bytes() == b"x"
    assert (tmp_path / "out/site-packages" / INFO / "RECORD.jws").exists()


def test_a_refused_wheel_leaves_its_mapping_and_its_file_closed(tmp_path: Path) -> None:
    wheel = altered(demo(tmp_path), {f"{INFO}/RECORD": b""})
    before = len(list(Path("/proc/self/fd").iterdir()))
    refused(wheel, tmp_path / "out")
    assert len(list(Path("/proc/self/fd").iterdir())) == before

"""Bytecode: reproducible, never compared with its source, and useful in tracebacks."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import PythonVersion
from envdsl.realise.bytecode import Compiled, Compiler
from envdsl.realise.crew import Cancelled
from envdsl.store.treehash import scan

HERE = PythonVersion(sys.version_info.minor)
EXECUTABLE = Path(sys.executable)


def tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def compiled(source: Path, out: Path, *, processes: int = 2, executable: Path = EXECUTABLE) -> Compiled:
    out.mkdir(parents=True)
    with Compiler(executable, HERE, processes) as compiler:
        return compiler.compile(source, scan(source), out)


def test_every_module_gets_an_unchecked_hash_pyc(tmp_path: Path) -> None:
    """Issue 2.8, PEP 552: flags 0b01, and the hash of the source."""
    content = b"x = 1\n"
    source = tree(
        tmp_path / "src", {"site-packages/a.py": content, "site-packages/p/b.py": content, "share/c.py": content}
    )
    result = compiled(source, tmp_path / "out")
    tag = HERE.cache_tag
    files = [entry.path for entry in result.listing if entry.type == "file"]
    assert files == [f"site-packages/__pycache__/a.{tag}.pyc", f"site-packages/p/__pycache__/b.{tag}.pyc"]
    assert result.listing == scan(tmp_path / "out")
    pyc = (tmp_path / "out" / files[0]).read_bytes()
    assert pyc[:4] == importlib.util.MAGIC_NUMBER
    assert pyc[4:8] == b"\1\0\0\0"
    assert pyc[8:16] == importlib.util.source_hash(content)


def test_what_is_no_source_of_this_python_is_skipped(tmp_path: Path) -> None:
    """Issue 2.9: as pip does it; templates and Python 2 are no error."""
    source = tree(
        tmp_path / "src",
        {
            "site-packages/good.py": "x = 1\n",
            "site-packages/two.py": "print 'hello'\n",
            "site-packages/template.py": "class {{ name }}: pass\n",
            "site-packages/nul.py": b"x = 1\0\n",
            "site-packages/latin.py": b"x = '\xff'\n",
            "site-packages/deep.py": "x = " + "(" * 5000 + ")" * 5000 + "\n",
        },
    )
    result = compiled(source, tmp_path / "out")
    names = ("deep", "latin", "nul", "template", "two")
    assert result.skipped == tuple(f"site-packages/{name}.py" for name in names)
    assert result.crashed == ()
    assert sum(entry.type == "file" for entry in result.listing) == 1


def test_bytecode_is_bit_identical_whatever_the_order_place_and_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 2.8: two builds in two places, by one worker or three, give the same bytes."""
    library = Path(os.__file__).parent
    modules = [*library.glob("*.py"), *library.glob("asyncio/*.py"), *library.glob("email/*.py")]
    files = {f"site-packages/{path.relative_to(library)}": path.read_bytes() for path in modules}
    assert len(files) > 200
    one = compiled(tree(tmp_path / "one", files), tmp_path / "out1", processes=1)
    monkeypatch.setenv("PYTHONHASHSEED", "12345")
    shuffled = list(files.items())
    random.Random(7).shuffle(shuffled)
    two = compiled(tree(tmp_path / "deeper/two", dict(shuffled)), tmp_path / "out2", processes=3)
    assert one.listing.tree_hash() == two.listing.tree_hash()
    name = shuffled[0][0]
    alone = compiled(tree(tmp_path / "three", {name: files[name]}), tmp_path / "out3")
    assert set(alone.listing) & set(one.listing)


def test_no_place_of_this_machine_is_in_the_bytecode(tmp_path: Path) -> None:
    source = tree(tmp_path / "src", {"site-packages/p/m.py": "def f():\n    return lambda: __file__\n"})
    compiled(source, tmp_path / "out")
    (pyc,) = (tmp_path / "out").rglob("*.pyc")
    assert str(tmp_path).encode() not in pyc.read_bytes()
    assert b"site-packages/p/m.py" in pyc.read_bytes()


def test_tracebacks_show_the_lines_of_the_source(tmp_path: Path) -> None:
    """The importer replaces the name in the code objects by the true place, nested functions included."""
    text = "def outer():\n    def inner():\n        raise RuntimeError('from inside')\n    inner()\n"
    source = tree(tmp_path / "src", {"site-packages/broken.py": text})
    compiled(source, tmp_path / "out")
    (pyc,) = (tmp_path / "out").rglob("*.pyc")
    cache = source / "site-packages/__pycache__"
    cache.mkdir()
    pyc.rename(cache / pyc.name)
    site = source / "site-packages"
    # Only the bytecode is executed: with another source beside it the old code still runs, by design.
    code = "import broken; broken.outer()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )
    assert f'File "{site}/broken.py", line 3, in inner\n    raise RuntimeError' in done.stderr


def test_an_interpreter_of_another_release_is_refused(tmp_path: Path) -> None:
    other = PythonVersion(14 if HERE.minor != 14 else 13)
    source = tree(tmp_path / "src", {"site-packages/a.py": "x = 1\n"})
    with Compiler(EXECUTABLE, other, 1) as compiler, pytest.raises(EnvdslError, match="magic number") as caught:
        compiler.compile(source, scan(source), tmp_path)
    assert caught.value.code == "bytecode-interpreter"
    assert caught.value.exit_status == ExitStatus.ENVIRONMENT


@pytest.mark.parametrize("program", ["/nonexistent/python3", "/bin/true"])
def test_an_interpreter_that_does_not_start_is_named(tmp_path: Path, program: str) -> None:
    source = tree(tmp_path / "src", {"site-packages/a.py": "x = 1\n"})
    with Compiler(Path(program), HERE, 1) as compiler, pytest.raises(EnvdslError, match=program):
        compiler.compile(source, scan(source), tmp_path)


def fake(tmp_path: Path, body: str) -> Path:
    """An interpreter whose worker treats files with a certain word in their name in a bad way."""
    worker = tmp_path / "worker.py"
    real = Path(__file__).parents[2] / "envdsl/realise/bytecode_worker.py"
    text = real.read_text().replace(
        "    try:\n        code = compile(", f"    {body}\n    try:\n        code = compile("
    )
    worker.write_text(text)
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -S -B {worker}\n")
    script.chmod(0o755)
    return script


def test_a_file_that_kills_the_compiler_costs_only_itself(tmp_path: Path) -> None:
    python = fake(tmp_path, "if 'deadly' in path: import os; os.abort()")
    files: dict[str, str | bytes] = {f"site-packages/m{n}.py": f"x = {n}\n" for n in range(30)}
    source = tree(tmp_path / "src", files | {"site-packages/deadly.py": "x = 1\n"})
    result = compiled(source, tmp_path / "out", executable=python)
    assert result.crashed == ("site-packages/deadly.py",)
    assert sum(entry.type == "file" for entry in result.listing) == 30


def test_a_file_that_hangs_the_compiler_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envdsl.realise.bytecode.TIMEOUT", 0.5)
    python = fake(tmp_path, "if 'endless' in path: import time; time.sleep(60)")
    source = tree(tmp_path / "src", {"site-packages/endless.py": "x = 1\n", "site-packages/a.py": "x = 1\n"})
    result = compiled(source, tmp_path / "out", executable=python)
    assert result.crashed == ("site-packages/endless.py",)
    assert sum(entry.type == "file" for entry in result.listing) == 1


def test_a_worker_that_dies_once_loses_no_file(tmp_path: Path) -> None:
    mark = tmp_path / "died"
    body = f"import os; os.path.exists({str(mark)!r}) or 'once' not in path or (open({str(mark)!r}, 'w'), os.abort())"
    source = tree(tmp_path / "src", {"site-packages/once.py": "x = 1\n"})
    result = compiled(source, tmp_path / "out", executable=fake(tmp_path, body))
    assert mark.exists()
    assert result.crashed == ()
    assert sum(entry.type == "file" for entry in result.listing) == 1


def test_no_worker_outlives_its_compiler(tmp_path: Path) -> None:
    source = tree(tmp_path / "src", {"site-packages/a.py": "x = 1\n"})
    (tmp_path / "out").mkdir()
    with Compiler(EXECUTABLE, HERE, 2) as compiler:
        compiler.compile(source, scan(source), tmp_path / "out")
        (worker,) = compiler._workers
        pid = worker._process.pid
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_an_interrupted_compilation_ends(tmp_path: Path) -> None:
    """Ctrl-C closes the compiler while others wait for its files: each of them hears of it."""
    source = tree(tmp_path / "source", {f"site-packages/m{n}.py": "x = [" + "1, " * 20_000 + "]\n" for n in range(200)})
    compiler = Compiler(EXECUTABLE, HERE, 2)
    (tmp_path / "out").mkdir()
    ended: list[type[BaseException] | None] = []

    def compile_all() -> None:
        try:
            compiler.compile(source, scan(source), tmp_path / "out")
        except BaseException as error:
            ended.append(type(error))
        else:
            ended.append(None)

    thread = threading.Thread(target=compile_all, daemon=True)
    thread.start()
    time.sleep(0.5)
    compiler.close()
    thread.join(20)
    assert ended == [Cancelled]

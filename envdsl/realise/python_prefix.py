"""Assemble a managed prefix from an installation: what is taken, what is left, and its bytecode.

One recipe for every source, be it a python-build-standalone archive, uv's download of one, or a Python of
the host. A prefix is small and closed: the interpreter, its own library, the standard library with its
bytecode. No pip, no site-packages of its own, no headers, no tests.

    bin/python3.12  python3 -> python3.12  python -> python3.12
    lib/libpython3.12.so.1.0            (and libraries that the origin had outside the system's directories)
    lib/python3.12/                     standard library, lib-dynload, __pycache__ (unchecked-hash)
    lib/python3.12/site-packages/       envdsl.pth: see `python_site`
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from envdsl.realise.python_elf import make_relocatable
from envdsl.realise.python_host import Installation, NotUsableError
from envdsl.realise.python_site import EXTERNALLY_MANAGED, SITE_HOOK

# Raised when what a prefix holds changes: it enters the key of every interpreter.
PYTHON_RECIPE = 1

_STDLIB_WITHOUT = frozenset(
    {
        "__pycache__",  # made anew: the origin's may be stale, timestamp-checked or missing
        "site-packages",
        "dist-packages",
        "test",
        "tests",
        "idlelib",
        "tkinter",  # no display in a sandbox
        "turtledemo",
        "turtle.py",
        "ensurepip",  # would install a pip that has no index to ask
        "EXTERNALLY-MANAGED",
        "sitecustomize.py",
        "usercustomize.py",
    }
)
_EXTENSIONS_WITHOUT = ("_tkinter.", "_test", "_xxtestfuzz.", "xxlimited", "_xxinterpchannels_test.")

# Modules without which no layer works. Others that the origin lacks are recorded, for `doctor` to report.
_REQUIRED = ("zlib", "hashlib", "math", "select", "struct", "unicodedata", "_socket")
_EXPECTED = ("bz2", "ctypes", "lzma", "readline", "sqlite3", "ssl", "uuid")

_COMPILE = """
import compileall, py_compile, sys
ok = True
for path in sys.stdin.read().split("\\0"):
    if path:
        ok &= compileall.compile_file(path, quiet=1, force=True, stripdir=sys.argv[1],
                                      invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
sys.exit(not ok)
"""
_IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        print(name)
"""


def assemble(origin: Installation, prefix: Path) -> tuple[str, ...]:
    """Copy what a sandbox needs of ``origin`` to the new directory ``prefix``, and make it stand on its own.

    Returns the names of standard modules that the origin lacks. Raises :class:`NotUsableError`, OSError.
    """
    version = str(origin.python)
    stdlib = prefix / origin.libraries / f"python{version}"
    binary = prefix / "bin" / f"python{version}"
    binary.parent.mkdir(parents=True)
    copied = [(binary, origin.executable)]
    shutil.copyfile(origin.executable, binary)
    binary.chmod(0o755)
    for alias in ("python3", "python"):
        (binary.parent / alias).symlink_to(binary.name)
    copied += _copy_tree(origin.stdlib, stdlib, origin.stdlib.resolve())
    if not any(path.parent.name == "lib-dynload" for path, _ in copied):
        (stdlib / "lib-dynload").mkdir(exist_ok=True)  # getpath looks for it, and complains where it is missing
    make_relocatable(prefix, origin.prefix, copied)
    _forget_origin(stdlib, origin.prefix)
    (stdlib / "EXTERNALLY-MANAGED").write_text(EXTERNALLY_MANAGED, encoding="utf-8")
    site = _site_directory(binary, prefix)
    site.mkdir(parents=True, exist_ok=True)
    for name, content in SITE_HOOK.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(content, encoding="utf-8")
    return _missing_modules(binary)


def compile_bytecode(prefix: Path, python: str) -> None:
    """Compile every module below ``prefix``: it will be read-only, and would be compiled at each import.

    The files are reproducible: names inside them are relative to the prefix, and how they are shared out
    over processes does not depend on the machine. Raises :class:`NotUsableError`.
    """
    modules = sorted(str(path) for path in prefix.rglob("*.py"))
    shares = [modules[start::2] for start in range(2)]

    def compile_share(paths: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            # Not -I, under which the interpreter would not read its hash seed.
            [prefix / "bin" / f"python{python}", "-s", "-S", "-B", "-c", _COMPILE, prefix],
            input="\0".join(paths),
            capture_output=True,
            text=True,
            env={"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"},
            check=False,
        )

    with ThreadPoolExecutor(len(shares)) as pool:
        for done in pool.map(compile_share, shares):
            if done.returncode != 0:
                raise NotUsableError(f"its standard library does not compile: {done.stdout}{done.stderr}".strip())


def _copy_tree(source: Path, target: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    """Copy the standard library; yields (copy, original) of each binary file."""
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    for entry in ordered:
        if _left_out(entry, source):
            continue
        path, copy = Path(entry.path), target / entry.name
        real = path.resolve() if entry.is_symlink() else path
        if real is not path and not real.is_relative_to(root):
            continue  # Debian's sitecustomize.py -> /etc: configuration of the host
        if real.is_dir():
            yield from _copy_tree(path, copy, root)
        elif real.is_file():
            shutil.copyfile(real, copy)
            copy.chmod(0o644)
            if ".so" in copy.suffixes:
                yield copy, real


def _left_out(entry: os.DirEntry[str], directory: Path) -> bool:
    if entry.name in _STDLIB_WITHOUT or entry.name.endswith((".pyc", ".a", ".o", ".exe")):
        return True
    if directory.name == "lib-dynload":
        return entry.name.startswith(_EXTENSIONS_WITHOUT)
    return entry.name.startswith("config-")  # Makefile and objects for embedding


def _forget_origin(stdlib: Path, origin: Path) -> None:
    """uv writes where it installed a build into its description; other Pythons were built for where they stand. Say
    `/install`, as python-build-standalone does, so that the same build gives the same bytes everywhere."""
    if origin.is_relative_to("/usr"):
        return  # the same on every host, and a part of other paths
    for pattern in ("_sysconfigdata_*.py", "_sysconfig_vars_*.json", "build-details.json"):
        for path in stdlib.glob(pattern):
            path.write_bytes(path.read_bytes().replace(os.fsencode(origin), b"/install"))


def _site_directory(binary: Path, prefix: Path) -> Path:
    """Where `site` of this interpreter looks for .pth files below its prefix (Debian's has names of its own)."""
    script = "import site; print('\\n'.join(site.getsitepackages()))"
    lines = _run(binary, script).splitlines()
    inside = [Path(line) for line in lines if Path(line).is_relative_to(prefix)]
    if not inside:
        raise NotUsableError(f"its site-packages would lie outside the prefix: {', '.join(lines)}")
    return inside[-1]


def _missing_modules(binary: Path) -> tuple[str, ...]:
    missing = _run(binary, _IMPORT, *_REQUIRED, *_EXPECTED).split()
    needed = [name for name in missing if name in _REQUIRED]
    if needed:
        raise NotUsableError(f"the copy can't import {', '.join(needed)}")
    return tuple(sorted(missing))


def _run(binary: Path, script: str, *arguments: str) -> str:
    done = subprocess.run(
        [binary, "-I", "-S", "-B", "-c", script, *arguments],
        capture_output=True,
        text=True,
        env={"LC_ALL": "C.UTF-8"},
        check=False,
    )
    if done.returncode != 0:
        raise NotUsableError(f"the copy does not run: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout

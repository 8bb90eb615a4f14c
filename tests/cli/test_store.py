"""``envdsl gc``, ``verify``, ``python``, ``doctor``, and the commands that only look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import LAYERS, PYTHON, Cli, clone

CHECKS = {
    "store", "disk", "kernel", "user-namespaces", "apparmor", "bubblewrap", "isolation", "network", "seccomp",
    "cgroups", f"interpreter {PYTHON}", "session bound",
}  # fmt: skip


@pytest.fixture
def own_store(run: Cli, pristine_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of this test's own: what it deletes or damages is nobody else's."""
    store = clone(pristine_store, tmp_path / "own-store")
    monkeypatch.setenv("ENVDSL_STORE", str(store))
    assert run("ensure").status == 0
    return store


def test_gc_keeps_locked_layers_sessions_and_current_and_deletes_the_rest(
    own_store: Path, run: Cli, project: Path
) -> None:
    """Issue 2.12: gc keeps `current`, locked layers and sessions; --dry-run deletes nothing."""
    assert run("session", "create", "keeper", "-l", "core", "-l", "one").status == 0
    bound = run("path", "one").out.strip()
    unbound = run("path", "two").out.strip()
    # `one` and `two` are declared no more; a session still stands on `one`
    (project / "layers.d" / "all.layer").write_text("\n".join(LAYERS.splitlines()[:9]) + "\n")
    for name in ("one", "two", "alone"):
        (project / "layers.d" / f"pylock.{name}.toml").unlink()
    planned = run("gc", "--dry-run", "--json").json
    assert Path(unbound).relative_to(own_store).as_posix() in planned["paths"]
    assert Path(bound).relative_to(own_store).as_posix() not in planned["paths"]
    assert Path(unbound).is_dir()
    done = run("gc", "--json")
    assert done.json["paths"] == planned["paths"]
    assert not Path(unbound).exists()
    assert Path(bound).is_dir()
    assert run("verify").status == 0
    assert run("run", "keeper", "--", "python3", "-c", "import foo, bar").status == 0
    assert run("session", "remove", "keeper").status == 0
    run("gc")
    assert not Path(bound).exists()
    assert run("build", "--json").json["layers"][0]["path"] == str((own_store / "current").resolve())


def test_gc_of_one_project_keeps_the_layers_of_another(
    own_store: Path, run: Cli, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "layers.d").mkdir(parents=True)
    (other / "layers.d" / "e.layer").write_text(f'base nothing {{ python = "{PYTHON}"; }}')
    layer = run("path", "core").out.strip()
    assert run("gc", "--project", other).status == 0
    assert Path(layer).is_dir()


def test_gc_of_a_broken_project_keeps_what_its_last_build_made(own_store: Path, run: Cli, project: Path) -> None:
    layer = run("path", "core").out.strip()
    (project / "layers.d" / "all.layer").write_text("base core {")
    done = run("gc")
    assert done.status == 0
    assert "app-gc-project-broken" in done.err
    assert Path(layer).is_dir()


def test_gc_that_finds_nothing_says_so(own_store: Path, run: Cli) -> None:
    run("gc")
    done = run("gc", "--json")
    assert (done.json["paths"], done.json["rubbish"], done.json["freed"]) == ([], [], 0)


def test_verify_names_what_differs(own_store: Path, run: Cli) -> None:
    file = Path(run("path", "two").out.strip()) / "site-packages" / "foo.py"
    file.chmod(0o644)
    file.write_text("changed\n")
    done = run("verify", "--json")
    assert done.status == 1
    problems = {(finding["problem"], finding["member"]) for finding in done.json["findings"]}
    assert ("content", "site-packages/foo.py") in problems


def test_python_list_show_and_path(own_store: Path, run: Cli) -> None:
    """Issue 2.11: `envdsl python list|show`; `show --path` is what sandboxes run; SOURCE says where it came from."""
    listed = run("python", "list", "--json").json["interpreters"]
    assert [item["python"] for item in listed] == [PYTHON]
    executable = run("python", "show", "--path").out.strip()
    assert executable == listed[0]["executable"]
    assert Path(executable).is_relative_to(own_store / "python")
    assert (own_store / "python" / "SOURCE").read_text().strip()
    assert (own_store / "python" / "current").exists()
    run("session", "create", "which", "-l", "alone")
    assert run("run", "which", "--", "python3", "-c", "import sys; print(sys.executable)").out.strip() == executable


def test_python_of_an_impossible_release_says_what_was_tried(run: Cli) -> None:
    done = run("python", "install", "3.99", "--offline")
    assert done.status == 4
    assert "realise-python-missing" in done.err
    assert run("python", "install", "3.12.1").status == 2
    assert run("python", "install", "3.12", "--archive", __file__).status == 2


def test_show_says_what_a_layer_holds(built: Cli) -> None:
    """Issue 2.12: packages, sizes, files, sources, base, platforms, age of the lock."""
    facts = built("show", "core", "--json").json
    assert [(package["name"], package["version"]) for package in facts["packages"]] == [("bar", "1.0")]
    assert facts["size"] > 0
    assert facts["files"] > 0
    assert facts["sources"] == ["src"]
    assert facts["platforms"]
    assert facts["lock-age"] >= 0
    assert built("show", "one", "--json").json["base"] == "core"
    assert "description  " in built("show", "core").out
    assert built("show", facts["id"], "--json").json == facts


def test_graph_in_four_formats(built: Cli) -> None:
    """Issue 2.12: graph [--format tree|dot|mermaid|json]."""
    assert "one  x " in built("graph").out
    assert built("graph", "--format", "dot").out.startswith("digraph")
    assert built("graph", "--format", "mermaid").out.startswith("flowchart")
    layers = built("graph", "one", "--format", "json").json["layers"]
    assert set(layers) == {"core", "one"}


def test_show_derivation_by_name_id_and_key(built: Cli) -> None:
    """Issue 2.12: show-derivation ID."""
    by_name = built("show-derivation", "core").json
    assert built("show-derivation", Path(by_name["path"]).name).json == by_name
    assert built("show-derivation", by_name["key"][:20]).json == by_name
    assert built("show-derivation", "zzz").status == 2


def test_path_and_ls(built: Cli, project: Path) -> None:
    """Issue 2.12: path, ls."""
    path = built("path", "one").out.strip()
    assert built("path", Path(path).name).out.strip() == path
    states = {row["name"]: row["state"] for row in built("ls", "--json").json["layers"] if row["name"]}
    assert states == {"alone": "built", "core": "built", "one": "built", "two": "built"}
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('"foo==1"', '"foo"'))
    (project / "layers.d" / "pylock.alone.toml").unlink()
    states = {row["name"]: row["state"] for row in built("ls", "--json").json["layers"] if row["name"]}
    assert states == {"alone": "not locked", "core": "built", "one": "stale", "two": "built"}


def test_path_of_a_layer_that_is_not_built(run: Cli, project: Path) -> None:
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('"core"', '"never built"'))
    run("lock")
    done = run("path", "core")
    assert done.status == 1
    assert "app-not-built" in done.err


def test_doctor_finds_a_working_machine_and_tries_each_session(own_store: Path, run: Cli) -> None:
    """Issue 2.14: doctor [--json]: each finding has a remedy; a real import probe of each bound base."""
    run("session", "create", "bound", "-l", "core")
    done = run("doctor", "--json")
    assert done.status == 0, done.out
    findings = {finding["check"]: finding for finding in done.json["findings"]}
    assert findings.keys() >= CHECKS, findings.keys()
    assert findings["session bound"]["status"] == "ok"
    assert "bar" in findings["session bound"]["message"]
    for finding in findings.values():
        assert finding["status"] == "ok" or finding["remedy"], finding


def test_doctor_says_when_a_session_is_broken(own_store: Path, run: Cli) -> None:
    """Issue 2.14: exit status tells."""
    run("session", "create", "bound", "-l", "core")
    package = Path(run("path", "core").out.strip()) / "site-packages" / "bar" / "__init__.py"
    cached = next(package.parent.glob("__pycache__/*.pyc"))
    cached.unlink()
    package.chmod(0o644)
    package.write_text("raise ImportError('damaged')\n")
    done = run("doctor", "--json")
    assert done.status == 4
    broken = next(finding for finding in done.json["findings"] if finding["check"] == "session bound")
    assert broken["status"] == "failed"
    assert "damaged" in json.dumps(broken)
    assert broken["remedy"]

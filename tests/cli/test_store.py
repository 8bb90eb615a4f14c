"""``envdsl gc``, ``verify``, ``python``, ``doctor``, and the commands that only look."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import LAYERS, PYTHON, Cli, clone
from tests.realise.building import altered
from tests.wheels import make_wheel

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
    assert "`envdsl verify --repair`" in done.err


def damage(file: Path) -> None:
    mode = file.stat().st_mode
    file.chmod(0o644)
    file.write_text("changed\n")
    file.chmod(mode)


def test_verify_says_which_layers_and_sessions_a_difference_touches(own_store: Path, run: Cli) -> None:
    """Issue 3.7: verify says which layers and sessions it touches."""
    run("session", "create", "touched", "-l", "core", "-l", "two")
    run("session", "create", "untouched", "-l", "alone")
    damage(Path(run("path", "two").out.strip()) / "site-packages" / "foo.py")
    done = run("verify", "--json", "--jobs", "1")
    assert done.status == 1
    # `alone` has the same foo
    assert [label.split()[0] for label in done.json["layers"]] == ["alone", "two"]
    assert done.json["sessions"] == ["touched", "untouched"]
    assert "this touches the sessions touched, untouched" in run("verify").err


def test_verify_repairs_and_sandboxes_run_again(own_store: Path, run: Cli, project: Path) -> None:
    """Issue 3.7: verify --repair rebuilds what differs; links, sessions and answers of build are right."""
    run("session", "create", "s", "-l", "core", "-l", "two")
    before = run("build", "--json").json
    file = Path(run("path", "two").out.strip()) / "site-packages" / "foo.py"
    for cached in file.parent.glob("__pycache__/*.pyc"):
        damage(cached)
    damage(file)
    damage(own_store / "current" / "layer.json")
    next((own_store / "sources").glob("*/mine/__init__.py")).unlink()
    (project / "wheels").rename(project / "elsewhere")  # the wheelhouse is enough
    assert run("run", "s", "--", "python3", "-c", "import foo").status != 0
    done = run("verify", "--repair", "--json")
    assert (done.status, done.json["remaining"]) == (0, []), done.err
    assert any(path.startswith("sources/") for path in done.json["repaired"])
    assert run("verify").status == 0
    assert not (own_store / "cache" / "build").exists()
    assert {layer["tree-hash"] for layer in run("build", "--json").json["layers"]} == {
        layer["tree-hash"] for layer in before["layers"]
    }
    assert run("run", "s", "--", "python3", "-c", "import foo, bar, mine; print(foo.__version__)").out == "2\n"
    run("gc")
    assert [place.name for place in (own_store / "tmp").iterdir()] == ["locks"]


def test_what_cannot_be_repaired_is_said_with_its_reason(own_store: Path, run: Cli, project: Path) -> None:
    wheel = next((own_store / "wheelhouse").glob("*/bar-1.0-*.whl"))
    damage(wheel)
    (project / "wheels").rename(project / "elsewhere")
    done = run("verify", "--repair", "--offline")
    assert done.status == 4  # as a build that cannot have a wheel
    assert "bar-1.0" in done.out
    assert "fetch-" in done.err
    (project / "elsewhere").rename(project / "wheels")
    assert run("verify", "--repair").status == 0


def test_an_interpreter_is_repaired_from_where_it_came(own_store: Path, run: Cli) -> None:
    prefix = Path(run("python", "show", "--path").out.strip()).parent.parent
    damaged = next(prefix.glob("lib/python3*/this.py"))
    # links of the store that the tests share: a file of its own first
    content = damaged.read_bytes()
    damaged.parent.chmod(0o755)
    damaged.unlink()
    damaged.write_bytes(content + b"# changed\n")
    damaged.chmod(0o444)
    damaged.parent.chmod(0o555)
    assert run("verify").status == 1
    done = run("verify", "--repair", "--json")
    assert done.status == 0, done.err
    assert done.json["repaired"] == [f"python/{prefix.name}"]
    assert damaged.read_bytes() == content


def test_why_alive_names_roots_and_chains(own_store: Path, run: Cli, project: Path) -> None:
    """Issue 3.6: why-alive PATH."""
    run("session", "create", "s", "-l", "core", "-l", "one")
    wheel = next((own_store / "wheelhouse").glob("*/foo-1-*.whl"))
    roots = {item["root"]: item["chain"] for item in run("why-alive", wheel, "--json").json["roots"]}
    assert roots.keys() == {"session s", f"one of project {project}"}
    assert [path.partition("/")[0] for path in roots["session s"]] == ["layers", "unpacked", "wheelhouse"]
    by_name = run("why-alive", "core")
    assert by_name.status == 0
    assert by_name.out.startswith("core of project ")
    assert "current\n" in by_name.out
    assert run("why-alive", Path(run("path", "core").out.strip()).name).out == by_name.out
    assert run("why-alive", "nonsense").status == 2
    (project / "layers.d" / "all.layer").write_text("\n".join(LAYERS.splitlines()[:9]) + "\n")
    assert run("why-alive", next((own_store / "wheelhouse").glob("*/foo-2-*.whl"))).status == 1


def test_gc_takes_no_more_than_it_is_asked_to(own_store: Path, run: Cli, project: Path) -> None:
    """Issue 3.6: --free, --older-than, --keep-last."""
    two = Path(run("path", "two").out.strip())
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace("foo==2", "foo==1").replace('"foo"', '"foo==1"'))
    run("lock")
    run("build")
    everything = run("gc", "--dry-run", "--json").json
    assert two.relative_to(own_store).as_posix() in everything["paths"]
    assert run("gc", "--dry-run", "--keep-last", "2", "--json").json["paths"] == []
    assert run("gc", "--dry-run", "--older-than", "14d", "--json").json["paths"] == []
    some = run("gc", "--free", "1", "--json").json
    assert 0 < len(some["paths"]) < len(everything["paths"]), some
    assert some["kept"] == len(everything["paths"]) - len(some["paths"])
    rest = run("gc", "--free", "1T")
    assert rest.status == 0
    assert "less than the 1024.0 GiB that were asked for" in rest.err
    for wrong in (["--free", "much"], ["--older-than", "old"], ["--keep-last", "-1"]):
        assert run("gc", *wrong).status == 2


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
    by_id = built("show", facts["id"], "--json").json
    assert {**by_id, "lock-age": 0} == {**facts, "lock-age": 0}


def test_show_names_the_waivers_and_layer_json_records_them(run: Cli, project: Path) -> None:
    """Issue 3.1: `allow.record-mismatch` and `allow.collisions` of a layer."""
    wheels = project / "wheels"
    for name in ("one", "two"):
        make_wheel(wheels, name, "1", files={"shared/tool.py": f"# {name}\n", f"{name}.py": ""})
    altered(wheels / "one-1-py3-none-any.whl", {"one.py": b"# edited later\n"})
    layer = project / "layers.d" / "waived.layer"
    text = 'iso waived {{ python = "{}"; packages = [ "one" "two" ]; {} }}\n'
    layer.write_text(text.format(PYTHON, ""))
    assert run("lock", "waived").status == 0
    assert "intake-record-mismatch" in run("build", "waived").err
    allow = 'allow = { record-mismatch = [ "one" ]; collisions = [ "shared/*" ]; };'
    layer.write_text(text.format(PYTHON, allow))
    done = run("build", "waived")
    assert done.status == 0, done.err
    shown = run("show", "waived", "--json").json
    assert shown["waivers"] == ["record-mismatch: one", "collisions: shared/*"]
    assert "record-mismatch: one, collisions: shared/*" in run("show", "waived").out
    facts = json.loads((Path(shown["path"]) / "layer.json").read_bytes())
    assert facts["waivers"] == {"collisions": ["shared/*"], "record-mismatch": ["one"]}
    assert facts["collisions"] == [{"kept": "one", "other": "two", "path": "site-packages/shared/tool.py"}]


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


def test_doctor_says_when_a_workspace_is_gone(own_store: Path, run: Cli, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    run("session", "create", "homeless", "-l", "core", "--workspace", tmp_path / "work")
    (tmp_path / "work").rmdir()
    done = run("doctor", "--json")
    (found,) = [item for item in done.json["findings"] if item["check"] == "session homeless"]
    assert (found["status"], str(tmp_path / "work") in found["message"]) == ("failed", True)
    assert done.status == 4


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


def test_ls_lists_the_rest_where_a_layer_was_removed_by_hand(own_store: Path, run: Cli) -> None:
    import shutil

    shutil.rmtree(run("path", "two").out.strip())
    done = run("ls", "--json")
    assert done.status == 0, done.err
    states = {row["name"]: row["state"] for row in done.json["layers"] if row["name"]}
    assert states == {"alone": "built", "core": "built", "one": "built", "two": "not built"}


def test_the_layers_of_a_deleted_project_go_when_that_is_said(
    own_store: Path, run: Cli, project: Path, tmp_path: Path
) -> None:
    """Issue 3.6: a project that is gone keeps nothing for ever."""
    layer = Path(run("path", "alone").out.strip())
    other = tmp_path / "other"
    (other / "layers.d").mkdir(parents=True)
    (other / "layers.d" / "e.layer").write_text(f'base nothing {{ python = "{PYTHON}"; }}')
    project.rename(tmp_path / "moved")
    assert "(missing)" in run("why-alive", layer, "--project", other).out
    kept = run("gc", "--project", other)
    assert (kept.status, "app-gc-project-missing" in kept.err, layer.is_dir()) == (0, True, True)
    planned = run("gc", "--drop-missing", "-n", "--json", "--project", other).json
    assert layer.relative_to(own_store).as_posix() in planned["paths"]
    assert layer.is_dir()
    dropped = run("gc", "--drop-missing", "--project", other)
    assert (dropped.status, layer.is_dir()) == (0, False)
    assert "missing" not in run("gc", "--project", other).err


def test_gc_takes_nothing_of_a_session_although_the_database_is_lost(own_store: Path, run: Cli) -> None:
    """Issue 3.6: without its database a store does not know what lives; gc refuses, and a build brings it back."""
    assert run("session", "create", "keeper", "-l", "core", "-l", "one").status == 0
    layers = [Path(run("path", name).out.strip()) for name in ("core", "one")]
    for file in own_store.glob("envdsl.db*"):
        file.unlink()
    for arguments in (["gc", "-n"], ["gc"]):
        done = run(*arguments)
        assert (done.status, "app-gc-unknown-layers" in done.err, "keeper" in done.err) == (4, True, True)
    assert all((layer / "layer.json").is_file() for layer in layers)
    assert run("build").status == 0
    assert run("gc").status == 0
    assert run("run", "keeper", "--", "python3", "-c", "import foo, bar").status == 0


def test_a_session_that_is_removed_meanwhile_is_no_hindrance_to_gc(
    own_store: Path, run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 3.5: gc and sessions that come and go."""
    from envdsl.session import bindings

    names = bindings.names
    known = iter([["gone"], ["gone"]])  # what gc sees first; `show` looks again
    monkeypatch.setattr(bindings, "names", lambda layout: next(known, None) or names(layout))
    assert run("gc", "-n").status == 0


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("ls", 0), ("path core", 1), ("show core", 0), ("graph core", 0), ("show-derivation core", 0),
        ("session list", 0), ("session show s", 2), ("python list", 0), ("python show", 4), ("gc", 0), ("gc -n", 0),
        ("verify", 0), ("why-alive core", 2), ("build -n", 0),
    ],
)  # fmt: skip
def test_looking_makes_no_store_where_there_is_none(
    run: Cli, project: Path, tmp_path: Path, command: str, status: int
) -> None:
    run("lock")
    done = run(*command.split(), "--store", tmp_path / "nowhere")
    assert (done.status, "internal-defect" in done.err) == (status, False)
    assert not (tmp_path / "nowhere").exists()


def test_interpreters_that_were_removed_by_hand_come_back(own_store: Path, run: Cli) -> None:
    shutil.rmtree(own_store / "python")
    assert run("build", "core").status == 0
    assert run("python", "list").rows


def test_what_graph_prints_is_taken_by_all_that_ask_for_one_thing(built: Cli) -> None:
    short = next(line.split()[-1] for line in built("graph", "core").out.splitlines() if "bar 1.0" in line)
    for name in (short, built("path", short).out.strip().rpartition("/")[2][:12]):
        assert json.loads(built("show-derivation", name).out)["label"] == "bar 1.0"
        assert "/unpacked/" in built("path", name).out
        assert built("why-alive", name, "--json").json["path"].startswith("unpacked/")
    layer = built("path", "core").out.strip().rpartition("/")[2]
    assert built("path", layer[:12]).out.strip().endswith(layer)
    assert built("why-alive", layer[:12], "--json").json["path"] == f"layers/{layer}"
    nothing = built("show-derivation", "zzzz")
    assert (nothing.status, "app-unknown-derivation" in nothing.err) == (2, True)
    assert "did you mean `core`" in built("path", "coer").err


def test_a_family_is_asked_for_by_its_name(own_store: Path, run: Cli, project: Path) -> None:
    (project / "layers.d" / "all.layer").write_text(
        f'base "kit-py{PYTHON.replace(".", "")}" {{ python = "{PYTHON}"; packages = [ "bar" ]; }}'
    )
    for lock in (project / "layers.d").glob("pylock.*"):
        lock.unlink()
    (project / "envdsl.toml").write_text((project / "envdsl.toml").read_text().replace("core", "kit"))
    assert run("ensure").status == 0
    assert run("why-alive", "kit").status == 0
    assert run("why-alive", "kit", "--json").json["path"] in run("path", "kit").out
    assert json.loads(run("show-derivation", "kit").out)["kind"] == "layer"


def test_what_stands_on_a_stale_base_is_stale(built: Cli, project: Path) -> None:
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('[ "bar" ]', '[ "bar" "foo" ]', 1))
    states = {row["name"]: row["state"] for row in built("ls", "--json").json["layers"] if row["name"]}
    assert (states["core"], states["one"], states["alone"]) == ("stale", "stale", "built")
    assert any("base `core`" in reason for reason in built("show", "one", "--json").json["stale"])
    assert "stale" in built("show", "core").out
    assert built("show", "alone", "--json").json["stale"] == []


def test_a_layer_without_a_lock_is_told_in_one_way(run: Cli) -> None:
    for command in ("show", "graph", "path", "build", "show-derivation"):
        done = run(command, "core")
        assert (done.status, "app-lock-missing" in done.err) == (1, True), command


def test_completion_knows_families_and_ids(built: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    from envdsl.cli.inspect import show_derivation
    from envdsl.cli.options import complete_ids, complete_layers

    (project / "layers.d" / "more.layer").write_text(
        f'base "kit-py{PYTHON.replace(".", "")}" {{ python = "{PYTHON}"; }}'
    )
    context = click.Context(show_derivation)
    parameter = show_derivation.params[0]
    assert "kit" in complete_layers(context, parameter, "ki")
    assert complete_ids(context, parameter, "on") == ["one"]
    short = next(line.split()[-1] for line in built("graph", "core").out.splitlines() if "bar 1.0" in line)
    assert len(complete_ids(context, parameter, short)) == 1

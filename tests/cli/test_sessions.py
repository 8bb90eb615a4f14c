"""``envdsl session`` and ``envdsl run``, in real sandboxes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import LAYERS, Cli, Result
from tests.wheels import make_wheel


@pytest.fixture
def name(request: pytest.FixtureRequest, interpreter_store: Path, built: Cli) -> Iterator[str]:
    """A session name of this test's own: the store is shared."""
    wanted = request.node.name[:60].replace("[", "-").replace("]", "")
    yield wanted
    for directory in (interpreter_store / "sessions").glob(f"{wanted}*"):
        built("session", "remove", directory.name)


def python(run: Cli, name: str, code: str, *options: str) -> Result:
    return run("run", *options, name, "--", "python3", "-c", code)


def test_two_sessions_with_foo_1_and_foo_2_over_one_unchanged_base(built: Cli, name: str) -> None:
    """Issue 2.13: two sessions that need foo==1 and foo==2 get two x layers over an unchanged base."""
    base = built("path", "core").out
    for number, layer in (("1", "one"), ("2", "two")):
        assert built("session", "create", f"{name}-{number}", "-l", "core", "-l", layer).status == 0
        done = python(built, f"{name}-{number}", "import foo, bar; print(foo.__version__)")
        assert (done.status, done.out) == (0, f"{number}\n"), done.err
    assert built("path", "core").out == base
    assert built("verify").status == 0


def test_two_versions_in_one_session_are_refused_with_the_way_out(built: Cli, name: str) -> None:
    done = built("session", "create", name, "-l", "core", "-l", "one", "-l", "two")
    assert done.status == 1
    assert "session-version-conflict" in done.err
    assert "joint x layer" in done.err


def test_an_x_layer_alone_is_refused_with_its_base_as_the_hint(built: Cli, name: str) -> None:
    done = built("session", "create", name, "-l", "one")
    assert done.status == 2
    assert "name core as well: `session create --layer core --layer one`" in done.err


def test_a_rebase_to_an_x_layer_says_how_it_is_added_and_names_it_once(built: Cli, name: str) -> None:
    """The options of the hint are those of the command."""
    assert built("session", "create", name, "-l", "core", "-l", "one").status == 0
    done = built("session", "rebase", name, "--to", "one")
    assert done.status == 2
    assert "and one is an x layer" in done.err
    assert "`session rebase --to core --add one`" in done.err
    assert built("session", "rebase", name, "--to", "core", "--add", "one").err == "nothing changes\n"


def test_create_builds_what_is_missing(run: Cli, project: Path) -> None:
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('FLAVOUR = "core"', 'FLAVOUR = "new"'))
    run("lock")
    try:
        assert run("session", "create", "fresh", "-l", "core").status == 0
        assert python(run, "fresh", "import os; print(os.environ['FLAVOUR'])").out == "new\n"
    finally:
        run("session", "remove", "fresh")


def test_sources_and_scripts_and_env_reach_the_sandbox(built: Cli, name: str) -> None:
    built("session", "create", name, "-l", "core")
    code = "import mine, os, sys; print(mine.ANSWER, os.environ['FLAVOUR'], sys.executable.startswith('/usr'))"
    assert python(built, name, code).out == "42 core False\n"
    assert built("run", name, "--", "bar").out == "bar runs\n"


def test_the_workspace_outlives_a_run_and_nothing_else_does(built: Cli, name: str, tmp_path: Path) -> None:
    """Issue 2.13: only the workspace and the session's cache outlive a run."""
    work = tmp_path / "work"
    work.mkdir()
    built("session", "create", name, "-l", "core", "--workspace", work)
    code = (
        "import pathlib, os\n"
        "for d in ('/workspace', '/tmp', os.environ['HOME'], os.environ['XDG_CACHE_HOME']):\n"
        "    p = pathlib.Path(d, 'mark'); print(p.exists()); p.write_text('x')\n"
    )
    assert python(built, name, code).out.split() == ["False"] * 4
    assert python(built, name, code).out.split() == ["True", "False", "False", "True"]
    assert (work / "mark").read_text() == "x"


def test_exit_statuses_pass_through(built: Cli, name: str) -> None:
    """Issue 2.13: exit statuses pass through."""
    built("session", "create", name, "-l", "core")
    assert python(built, name, "raise SystemExit(7)").status == 7
    assert python(built, name, "import os; os.kill(os.getpid(), 15)").status == 128 + 15
    assert built("run", name, "--", "no-such-command").status == 127


def test_a_timeout_ends_the_whole_tree_with_124(built: Cli, name: str) -> None:
    """Issue 2.13: --timeout, exit status 124, the whole process tree ended."""
    built("session", "create", name, "-l", "core")
    code = "import subprocess, time; subprocess.Popen(['sleep', '98765'], start_new_session=True); time.sleep(100)"
    assert python(built, name, code, "--timeout", "1.5").status == 124
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert b"98765" not in place.read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile


def test_variables_and_mounts_are_added_for_a_run(built: Cli, name: str, tmp_path: Path) -> None:
    """Issue 2.13: --env, --mount."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("hello")
    built("session", "create", name, "-l", "core")
    code = "import os; print(os.environ['WHO'], open('/data/a.txt').read(), os.access('/data', os.W_OK))"
    done = python(built, name, code, "--env", "WHO=me", "--mount", f"{tmp_path / 'data'}:/data")
    assert done.out == "me hello False\n"
    writable = python(built, name, "open('/data/b', 'w')", "--mount", f"{tmp_path / 'data'}:/data:rw")
    assert writable.status == 0
    assert (tmp_path / "data" / "b").exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--env", "NOVALUE"),
        ("--mount", "/nowhere-at-all:/data"),
        ("--mount", "/tmp"),
        ("--memory", "lots"),
        ("--timeout", "-1"),
        ("--mount", "/:/host"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(built: Cli, name: str, options: tuple[str, str]) -> None:
    built("session", "create", name, "-l", "core")
    done = built("run", *options, name, "--", "true")
    assert done.status == 2
    assert "error[app-" in done.err


def test_memory_and_processes_are_limited(built: Cli, name: str) -> None:
    """Issue 2.13: --memory, --pids, --cpus."""
    built("session", "create", name, "-l", "core")
    greedy = "x = bytearray(400 * 2**20)"
    assert python(built, name, greedy, "--memory", "100M").status != 0
    assert python(built, name, greedy, "--memory", "2G", "--cpus", "1").status == 0
    if os.geteuid() == 0:  # RLIMIT_NPROC does not bind root; control groups do
        forks = "import os, time\nfor _ in range(40):\n    if os.fork() == 0: time.sleep(60)\n"
        assert python(built, name, forks, "--pids", "10", "--timeout", "20").status == 1


def test_pip_says_how_to_ask_and_fails(built: Cli, name: str) -> None:
    """Issue 2.13: the pip shim says how to ask for a package and exits non-zero."""
    built("session", "create", name, "-l", "core")
    for command in (["pip", "install", "rich"], ["pip3", "list"], ["python3", "-m", "pip", "install", "rich"]):
        done = built("run", name, "--", *command)
        assert done.status != 0
        assert "python_env" in done.out + done.err


def test_a_new_base_changes_no_session_until_rebase(built: Cli, project: Path, name: str) -> None:
    """Issue 2.13: a new base changes no session until `rebase`."""
    built("session", "create", name, "-l", "core", "-l", "one")
    before = built("session", "show", name, "--json").json
    make_wheel(project / "wheels", "bar", "1.5", files={"bar/__init__.py": "VERSION = '1.5'\n"})
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('[ "bar" ]', '[ "bar>=1.5" ]', 1))
    assert built("lock").status == 0
    assert built("build").status == 0
    assert built("session", "show", name, "--json").json == before

    preview = built("session", "rebase", name, "--dry-run")
    assert "~ bar 1.0 -> 1.5" in preview.out
    assert built("session", "show", name, "--json").json == before

    assert built("session", "rebase", name).status == 0
    assert python(built, name, "import bar, foo; print(bar.VERSION, foo.__version__)").out == "1.5 1\n"
    assert built("session", "rebase", name).err == "nothing changes\n"


def test_the_run_script_needs_nothing_of_envdsl(built: Cli, name: str) -> None:
    """Issue 2.13: `run` and `bwrap.args` beside the manifest."""
    directory = Path(built("session", "create", name, "-l", "core").out.strip())
    assert {"manifest.json", "bwrap.args", "run"} <= {path.name for path in directory.iterdir()}
    done = subprocess.run(
        [directory / "run", "python3", "-c", "import bar; print('in')"],
        env={},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "in\n"


def test_the_manifest_is_valid_under_its_published_schema(built: Cli, name: str) -> None:
    """Issue 2.13: the manifest with its JSON Schema."""
    import jsonschema

    schema = json.loads((Path(__file__).parents[2] / "docs" / "manifest.schema.json").read_text())
    jsonschema.validate(built("session", "create", name, "-l", "core", "-l", "two", "--json").json, schema)


def test_list_and_remove(built: Cli, name: str) -> None:
    built("session", "create", name, "-l", "alone")
    assert name in [row[0] for row in built("session", "list").rows]
    assert built("session", "remove", name).status == 0
    assert name not in [item["name"] for item in built("session", "list", "--json").json["sessions"]]
    done = built("session", "show", name)
    assert done.status == 2
    assert "session-unknown" in done.err


def test_layers_can_be_bound_by_id(built: Cli, name: str) -> None:
    identifiers = {row[0]: row[1] for row in built("build").rows}
    assert built("session", "create", name, "-l", identifiers["core"], "-l", identifiers["one"]).status == 0
    assert python(built, name, "import foo; print(foo.__version__)").out == "1\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("a/b",), "session-name"), (("fine", "--workspace", "/nowhere/at/all"), "session-workspace-missing")],
)
def test_a_name_or_workspace_that_is_no_good_is_refused_before_anything_is_built(
    run: Cli, project: Path, arguments: tuple[str, ...], code: str
) -> None:
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('FLAVOUR = "core"', 'FLAVOUR = "never"'))
    run("lock")
    done = run("session", "create", *arguments, "-l", "core")
    assert done.status == 2
    assert code in done.err
    assert "never" not in run("ls").out
    assert run("build", "core", "--dry-run").out != ""


def test_a_rebase_adds_and_drops_layers_and_a_dry_run_builds_nothing(built: Cli, project: Path, name: str) -> None:
    """Issue 4.5: --dry-run must not build or write anything."""
    built("session", "create", name, "-l", "core", "-l", "one")
    (project / "layers.d" / "all.layer").write_text(LAYERS.replace('"foo==2"', '"foo<3"'))
    built("lock")
    missing = built("build", "--dry-run").out
    preview = built("session", "rebase", name, "--drop", "one", "--add", "two", "--dry-run")
    assert "~ foo 1 -> 2" in preview.out
    assert built("build", "--dry-run").out == missing
    assert built("session", "rebase", name, "--drop", "one", "--add", "two").out == preview.out
    assert python(built, name, "import foo; print(foo.__version__)").out == "2\n"
    unknown = built("session", "rebase", name, "--drop", "three")
    assert unknown.status == 2
    assert "app-not-bound" in unknown.err


def test_an_option_after_the_session_is_said_to_be_in_the_wrong_place(built: Cli, name: str) -> None:
    built("session", "create", name, "-l", "core")
    done = built("run", name, "--timeout", "5", "--", "true")
    assert done.status == 2
    assert "--timeout stands after SESSION" in done.err

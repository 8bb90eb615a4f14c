"""``envdsl check`` and ``envdsl eval``."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tests.cli.conftest import PYTHON, Cli
from tests.patience import TWO_SECONDS

BROKEN = """\
base core { python = "3.11"; pakages = [ "a" ]; packages = [ "numpy >> 1" ]; }
x more on coer { packages = [ ]; }
"""


def test_eval_prints_nix_notation(run: Cli) -> None:
    """Issue 2.2: `envdsl eval --expr` prints a value in Nix notation, evaluated strictly."""
    done = run("eval", "--expr", 'rec { a = 1; b = [ a "x" true null ]; }')
    assert (done.status, done.out) == (0, '{ a = 1; b = [ 1 "x" true null ]; }\n')


def test_eval_prints_json(run: Cli) -> None:
    """Issue 2.2: --json."""
    assert run("eval", "--json", "-E", '{ a = [ 1 "x" ]; b = null; }').json == {"a": [1, "x"], "b": None}


def test_eval_reads_one_expression_from_a_file_and_paths_start_there(run: Cli, project: Path) -> None:
    """Issue 2.2: a FILE is one expression."""
    (project / "sub").mkdir()
    (project / "sub" / "list.txt").write_text("rich\nhttpx\n")
    (project / "sub" / "e.nix").write_text("length (readLines ./list.txt)")
    assert run("eval", project / "sub" / "e.nix").out == "2\n"


def test_eval_reads_stdin_for_a_dash(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("map (x: x * 2) [ 1 2 ]\n"))
    assert run("eval", "-").out == "[ 2 4 ]\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("1 +"))
    done = run("eval", "-")
    assert (done.status, "<stdin>:1" in done.err) == (1, True)


def test_eval_prints_one_layer(run: Cli) -> None:
    """Issue 2.2: --layer NAME prints one evaluated layer specification."""
    value = run("eval", "--layer", "one").json
    assert (value["kind"], value["base"], value["packages"]) == ("x", "core", ["foo==1"])


def test_eval_takes_exactly_one_thing(run: Cli) -> None:
    done = run("eval")
    assert done.status == 2
    assert "one of FILE, --expr and --layer" in done.err


def test_trace_goes_to_stderr(run: Cli) -> None:
    done = run("eval", "--expr", 'trace "here" 1')
    assert (done.out, done.err) == ("1\n", "trace: here\n")


def test_check_says_that_all_is_well(run: Cli) -> None:
    done = run("check")
    assert (done.status, done.out, done.err) == (0, "", "1 file, 4 layers: no errors\n")


def test_check_reports_all_errors_with_place_line_and_hint(run: Cli, project: Path) -> None:
    """Issue 2.3: all errors, each with code, place, marked source line and hint; "did you mean"."""
    (project / "layers.d" / "all.layer").write_text(BROKEN)
    done = run("check")
    assert done.status == 1
    assert done.err.count("error[") == 3
    assert "did you mean `packages`" in done.err
    assert "did you mean `core`" in done.err
    # a bad specifier points at its own string
    column = BROKEN.index('"numpy >> 1"') + 1
    assert f"layers.d/all.layer:1:{column}" in done.err
    assert '"numpy >> 1"' in done.err


def test_check_as_json_is_for_editors(run: Cli, project: Path) -> None:
    """Issue 2.3: --json."""
    (project / "layers.d" / "all.layer").write_text(BROKEN)
    done = run("check", "--json")
    assert done.status == 1
    lines = {item["place"]["line"] for item in done.json["diagnostics"]}
    assert lines == {1, 2}
    assert all(item["code"].startswith(("eval-", "syntax-")) for item in done.json["diagnostics"])


def test_check_annotates_on_github(run: Cli, project: Path) -> None:
    """Issue 2.3: --format github."""
    (project / "layers.d" / "all.layer").write_text(BROKEN)
    done = run("check", "--format", "github")
    assert done.status == 1
    assert all(line.startswith("::error ") for line in done.out.splitlines())
    assert "file=layers.d/all.layer,line=1" in done.out


def test_check_reports_only_what_is_asked_for(run: Cli, project: Path) -> None:
    (project / "layers.d" / "bad.layer").write_text("base bad {")
    assert run("check", project / "layers.d" / "all.layer").status == 0
    assert run("check", project / "layers.d" / "bad.layer").status == 1


def test_check_of_a_path_outside_of_the_project_is_a_usage_error(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "other.layer").write_text("")
    done = run("check", tmp_path / "other.layer")
    assert done.status == 2
    assert "app-outside-project" in done.err


def test_hostile_files_get_an_error_and_no_traceback(run: Cli, project: Path) -> None:
    """Issue 2.4: nested brackets, bytes that are not UTF-8, infinite recursion, 50 MB."""
    import time

    file = project / "layers.d" / "bad.layer"
    for content in (
        b"let a = " + b"[" * 100_000 + b"]" * 100_000 + b";",
        b"let a = \xff\xfe;",
        b"let a = let a = a; in a; base b { python = a; }",
        b"#" * 50_000_000,
        b'import "bad.layer" as me;',
    ):
        file.write_bytes(content)
        begin = time.monotonic()
        done = run("check")
        assert time.monotonic() - begin < TWO_SECONDS
        assert done.status == 1, content[:40]
        assert "error[" in done.err
        assert "Traceback" not in done.err
        assert "internal-defect" not in done.err


def test_check_finds_an_index_and_a_default_base_that_are_declared_nowhere(run: Cli, project: Path) -> None:
    settings = project / "envdsl.toml"
    settings.write_text(settings.read_text().replace('"core"', '"coer"'))
    layers = project / "layers.d" / "all.layer"
    layers.write_text(layers.read_text() + f'base corporate {{ python = "{PYTHON}"; index = [ "locl" ]; }}\n')
    found = {item["code"]: item for item in run("check", "--json").json["diagnostics"]}
    assert found.keys() == {"app-default-base", "lock-unknown-index"}
    assert "did you mean `core`" in found["app-default-base"]["hint"]
    assert "did you mean `local`" in found["lock-unknown-index"]["hint"]
    assert found["lock-unknown-index"]["place"]["line"] == len(layers.read_text().splitlines())


def test_an_index_directory_that_is_not_there_is_said(run: Cli, project: Path) -> None:
    (project / "wheels").rename(project / "elsewhere")
    done = run("lock", "core")
    assert (done.status, "lock-index-missing" in done.err, str(project / "wheels") in done.err) == (4, True, True)
    assert "unknown-package" not in done.err
    (project / "elsewhere").rename(project / "wheels")
    assert run("lock", "core").status == 0
    (project / "wheels").rename(project / "elsewhere")
    done = run("fetch", "core", "--store", project.parent / "fresh", "--no-interpreter")
    assert (done.status, str(project / "wheels") in done.err) == (4, True)


def test_verbose_says_which_project_and_store(run: Cli, project: Path, interpreter_store: Path) -> None:
    assert run("check", "-v").err.splitlines()[0] == f"project {project}, store {interpreter_store}"
    assert "project" not in run("check").err

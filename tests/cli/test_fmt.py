"""``envdsl fmt``."""

from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

UGLY = 'base   core{python="3.12" ;}\n'
PRETTY = 'base core { python = "3.12"; }\n'
BROKEN = "base core { python = }\n"


@pytest.fixture
def layer(project: Path) -> Path:
    path = project / "layers.d" / "all.layer"
    path.write_text(UGLY)
    return path


def test_fmt_rewrites_and_names_the_files_of_the_project(run: Cli, layer: Path) -> None:
    """Issue 5.1: without FILES, all layer files of the project; a second run has nothing to do."""
    done = run("fmt")
    assert (done.status, done.out, layer.read_text()) == (0, "layers.d/all.layer\n", PRETTY)
    again = run("fmt")
    assert (again.status, again.out, again.err) == (0, "", "1 file: 0 changed\n")


def test_fmt_takes_imported_files_along(run: Cli, layer: Path) -> None:
    layer.write_text('import "lib/a.layer" as a;\n')
    (layer.parent / "lib").mkdir()
    imported = layer.parent / "lib" / "a.layer"
    imported.write_text("let b=1;")
    assert run("fmt").out == "layers.d/lib/a.layer\n"
    assert imported.read_text() == "let b = 1;\n"


def test_check_changes_nothing_names_files_and_fails(run: Cli, layer: Path) -> None:
    """Issue 5.1: --check."""
    done = run("fmt", "--check")
    assert (done.status, done.out, layer.read_text()) == (1, "layers.d/all.layer\n", UGLY)
    run("fmt")
    assert run("fmt", "--check").status == 0


def test_diff_shows_what_would_change(run: Cli, layer: Path) -> None:
    """Issue 5.1: --diff is a unified diff and changes nothing; with --check it fails too."""
    done = run("fmt", "--diff", layer)
    assert done.status == 0
    assert done.out.splitlines()[2:] == ["@@ -1 +1 @@", f"-{UGLY.strip()}", f"+{PRETTY.strip()}"]
    assert layer.read_text() == UGLY
    assert run("fmt", "--diff", "--check").status == 1


def test_a_file_with_errors_is_left_alone_and_the_others_are_formatted(run: Cli, layer: Path) -> None:
    """Issue 5.1: a file with errors is left alone and the error shown."""
    broken = layer.with_name("broken.layer")
    broken.write_text(BROKEN)
    done = run("fmt")
    assert (done.status, done.out) == (1, "layers.d/all.layer\n")
    assert "error[syntax-" in done.err
    assert "broken.layer:1:" in done.err
    assert (broken.read_text(), layer.read_text()) == (BROKEN, PRETTY)


def test_standard_input_goes_to_standard_output(run: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5.1: `envdsl fmt -`."""

    class Input:
        def __init__(self, text: str) -> None:
            self.buffer = io.BytesIO(text.encode())

    monkeypatch.setattr("sys.stdin", Input(UGLY))
    done = run("fmt", "-")
    assert (done.status, done.out, done.err) == (0, PRETTY, "")
    monkeypatch.setattr("sys.stdin", Input(BROKEN))
    done = run("fmt", "-")
    assert (done.status, done.out) == (1, "")
    assert "<stdin>:1:" in done.err


def test_a_file_is_replaced_whole_and_keeps_its_mode(run: Cli, layer: Path) -> None:
    """Issue 5.1: a temporary file renamed over the old one; links stay links; nothing is left behind."""
    layer.chmod(0o640)
    link = layer.with_name("link.layer")
    link.symlink_to("all.layer")
    before = layer.stat().st_ino
    assert run("fmt", link).status == 0
    assert link.is_symlink()
    assert layer.read_text() == PRETTY
    assert layer.stat().st_ino != before
    assert stat.S_IMODE(layer.stat().st_mode) == 0o640
    assert sorted(path.name for path in layer.parent.iterdir()) == ["all.layer", "link.layer"]


def test_json_says_what_became_of_each_file(run: Cli, layer: Path) -> None:
    """Issue 5.1: --json."""
    layer.with_name("broken.layer").write_text(BROKEN)
    value = run("fmt", "--check", "--json").json
    assert [(item["path"], item["status"]) for item in value["files"]] == [
        ("layers.d/all.layer", "changed"),
        ("layers.d/broken.layer", "error"),
    ]
    assert value["files"][0]["diff"].startswith("--- a/layers.d/all.layer")
    assert value["diagnostics"][0]["place"]["file"] == "layers.d/broken.layer"


def test_outside_of_a_project_a_file_is_needed(run: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The curated layers that travel with envdsl are nobody's to format."""
    place = tmp_path / "nowhere"
    place.mkdir()
    monkeypatch.chdir(place)
    done = run("fmt")
    assert done.status == 2
    assert "app-no-project" in done.err
    (place / "a.layer").write_text(UGLY)
    assert run("fmt", "a.layer").status == 0
    assert (place / "a.layer").read_text() == PRETTY


def test_byte_order_mark_and_line_ends_are_the_canonical_ones(run: Cli, layer: Path) -> None:
    layer.write_bytes(b"\xef\xbb\xbf" + PRETTY.replace("\n", "\r\n").encode())
    assert run("fmt").out == "layers.d/all.layer\n"
    assert layer.read_bytes() == PRETTY.encode()

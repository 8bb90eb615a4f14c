"""The workspace of an editor: what it does anew when a text changes, and what it makes of odd projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.app.editing import workspace as module
from envdsl.app.editing.completion import complete
from envdsl.app.editing.hover import hover
from envdsl.app.editing.workspace import Workspace
from envdsl.syntax.tolerant import Reading, read_file

LIB = "layers.d/lib/common.layer"
MAIN = "layers.d/main.layer"
TEXT = 'import "lib/common.layer" as common;\nbase a { python = "3.12"; packages = common.docs; }\n'


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "layers.d" / "lib").mkdir(parents=True)
    (tmp_path / LIB).write_text('let docs = [ "foo" ];\n')
    (tmp_path / MAIN).write_text(TEXT)
    return Workspace.around(tmp_path / MAIN)


def test_only_the_file_that_changed_is_parsed(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 5.8: quick, however many files there are."""
    parsed: list[str] = []

    def counting(source: module.Source) -> Reading:
        parsed.append(source.path)
        return read_file(source)

    monkeypatch.setattr(module, "read_file", counting)
    monkeypatch.setattr(module, "parse_file", lambda source: pytest.fail(f"{source.path} is parsed twice"))
    workspace.diagnostics()
    hover(workspace, MAIN, TEXT.index("docs"))
    assert sorted(parsed) == [LIB, MAIN]
    parsed.clear()
    workspace.change(MAIN, TEXT + "# more\n")
    assert workspace.diagnostics() == {LIB: (), MAIN: ()}
    hover(workspace, MAIN, TEXT.index("docs"))
    assert parsed == [MAIN]


def test_files_that_others_change_are_read_again(workspace: Workspace) -> None:
    assert workspace.diagnostics()[MAIN] == ()
    (workspace.root / LIB).write_text("let papers = [ ];\n")
    workspace.refresh()
    assert [item.code for item in workspace.diagnostics()[MAIN]] == ["eval-missing-attribute"]


def test_an_open_file_need_not_be_on_disk_or_in_the_project(workspace: Workspace) -> None:
    """A new file that was never saved, outside of what `layers` of envdsl.toml names."""
    workspace.change("notes/new.layer", "let a = nobody;")
    assert [item.code for item in workspace.diagnostics()["notes/new.layer"]] == ["eval-undefined-name"]
    workspace.change("notes/new.layer", None)
    assert "notes/new.layer" not in workspace.diagnostics()


def test_a_wrong_configuration_does_not_stop_the_editor(workspace: Workspace) -> None:
    (workspace.root / "envdsl.toml").write_text("layers = 1\n")
    workspace.change(MAIN, TEXT.replace("common.docs", "common.dox"))
    assert [item.code for item in workspace.diagnostics()[MAIN]] == ["eval-missing-attribute"]
    found = hover(workspace, MAIN, TEXT.index("python"))
    assert found is not None
    assert "The Python release" in found.text


def test_bytes_that_are_no_text_are_an_error_of_the_file(workspace: Workspace) -> None:
    (workspace.root / LIB).write_bytes(b"let a = \xff;")
    workspace.refresh()
    assert [item.code for item in workspace.diagnostics()[LIB]] == ["syntax-not-utf8"]


def test_a_value_that_fails_says_why(workspace: Workspace) -> None:
    """Issue 5.8: hover on a name whose value is an error, or a function."""
    text = 'let bad = throw "no such thing";\nlet f = x: x;\n'
    workspace.change(MAIN, text)
    for name, expected in (("bad", "no such thing"), ("f =", "LAMBDA")):
        found = hover(workspace, MAIN, text.index(name))
        assert found is not None
        assert expected in found.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("let n = 2;\nlet a = let |here = n * 21; in here;", "42"),
        ("let n = 2;\nlet a = { |here = n * 21; };\nlet b = a.here;", "42"),
        ("let f = n: let |here = n * 21; in here;", "n * 21"),
        ("for (n in [ 1 2 ]) { let |here = n * 21; }", "n * 21"),
        ("let f = { |here ? 1 + 1 }: here;", "1 + 1"),
        ("let a = let |here = let m = 6; in m * 7; in here;", "42"),
    ],
)
def test_a_binding_has_a_value_where_it_depends_on_no_argument(workspace: Workspace, text: str, shown: str) -> None:
    """Issue 5.8: hover on what is bound inside: its value, or where there is no one value what was written."""
    workspace.change(MAIN, text.replace("|", ""))
    found = hover(workspace, MAIN, text.index("|"))
    if found is None:  # the name of an attribute: asked for where it is used
        found = hover(workspace, MAIN, text.rindex("here") - 1)
    assert found is not None
    assert f"```nix\n{shown}\n```" in found.text


def test_nothing_is_proposed_behind_a_version(workspace: Workspace) -> None:
    text = 'base a { packages = [ "foo>=" ]; }'
    workspace.change(MAIN, text)
    found = complete(workspace, MAIN, text.index('" ]'))
    assert found is not None
    assert found.items == ()

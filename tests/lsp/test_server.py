"""``envdsl lsp``, driven by a client over standard input and output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.lsp.conftest import Editor, apply, piece
from tests.wheels import make_wheel

PYTHON = f"3.{sys.version_info.minor}"

LIB = """\
# What the layers share.
let documents = [ "foo" ];
let settings = { debug.level = 1; name = "lib"; };
base office { python = "3.12"; packages = documents; }
"""

MAIN = """\
import "lib/common.layer" as common;

let extra = [ "bar" ] ++ common.documents;

base core {
  python = "3.12";
  packages = extra;
  description = common.settings.name;
}

x one on core { packages = [ "baz" ]; }
x two on common.office { packages = map (word: word) extra; }

for (v in [ "11" "12" ]) {
  base "tools-${v}" { python = "3." + v; }
  x "more-${v}" on "tools-${v}" { packages = [ ]; }
}
"""

NAME = "layers.d/main.layer"
COMMON = "layers.d/lib/common.layer"


@pytest.fixture
def project(editor: Editor) -> Editor:
    (editor.root / NAME).write_text(MAIN)
    (editor.root / COMMON).write_text(LIB)
    editor.open(NAME)
    assert editor.diagnostics(NAME) == []
    return editor


# -- diagnostics --


def test_errors_are_shown_as_one_types(project: Editor) -> None:
    """Issue 5.8: diagnostics as you type, with code, hint and place; they go when the mistake does."""
    project.type(NAME, MAIN.replace("packages = extra", "pakages = extra"))
    (found,) = project.diagnostics(NAME)
    assert (found.code, found.severity, found.source) == (
        "eval-unknown-attribute",
        types.DiagnosticSeverity.Error,
        "envdsl",
    )
    assert "did you mean `packages`?" in found.message
    assert piece(MAIN.replace("packages = extra", "pakages = extra"), found.range) == "pakages"
    project.type(NAME, MAIN)
    assert project.diagnostics(NAME) == []


def test_an_unfinished_file_has_its_error_where_it_is_unfinished(project: Editor) -> None:
    """Issue 5.8: with an unfinished file too; the other declarations go on being understood."""
    text = MAIN + "\nbase late { python = "
    project.type(NAME, text)
    found = project.diagnostics(NAME)
    assert [item.code for item in found] == ["syntax-missing-expression"] or all(
        str(item.code).startswith("syntax-") for item in found
    )
    assert found[0].range.start.line >= MAIN.count("\n")
    symbols = project.run(
        project.client.text_document_document_symbol_async(types.DocumentSymbolParams(project.document(NAME)))
    )
    assert symbols is not None
    assert "core" in [symbol.name for symbol in symbols]


def test_a_mistake_in_an_imported_file_is_shown_there_and_where_it_matters(project: Editor) -> None:
    """Issue 5.8: across files, and from texts that are not saved."""
    project.open(COMMON)
    project.type(COMMON, LIB.replace("documents =", "papers ="))
    in_lib = project.diagnostics(COMMON, bool)
    assert [item.code for item in in_lib] == ["eval-undefined-name"]
    assert project.diagnostics(NAME, bool)
    project.type(COMMON, LIB)
    assert project.diagnostics(COMMON, lambda found: not found) == []
    assert project.diagnostics(NAME, lambda found: not found) == []


def test_a_file_that_is_closed_counts_as_it_is_on_disk(project: Editor) -> None:
    project.type(NAME, "base core { }")
    assert project.diagnostics(NAME, bool)
    project.close()
    assert project.diagnostics(NAME, lambda found: not found) == []


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_places_count_utf_16_units(editor: Editor, line_end: str) -> None:
    """Issue 5.8: astral characters are two units, wherever they stand; CR LF ends a line, U+2028 does not."""
    text = line_end.join(
        ["# 🐍\u2028 first", "let 𝑎 = 1;", 'let a = "🐍𐐷" + nobody;', 'let b = "é" ++ unknown;', ""]
    ).replace("let 𝑎", "let c")
    editor.open(NAME, text)
    found = editor.diagnostics(NAME)
    lines = text.split(line_end)
    for item, name, line in zip(found, ("nobody", "unknown"), (2, 3), strict=True):
        start = len(lines[line][: lines[line].index(name)].encode("utf-16-le")) // 2
        assert (item.range.start, item.range.end) == (
            types.Position(line, start),
            types.Position(line, start + len(name)),
        )


def test_another_encoding_is_agreed_on_where_the_client_offers_one(tmp_path: Path) -> None:
    """Issue 5.8: UTF-8 or UTF-32 columns (LSP 3.17)."""
    for encoding, width in ((types.PositionEncodingKind.Utf8, 4), (types.PositionEncodingKind.Utf32, 1)):
        root = tmp_path / encoding.value
        (root / "layers.d").mkdir(parents=True)
        editor = Editor(root)
        try:
            assert editor.start([encoding]).capabilities.position_encoding == encoding
            editor.open(NAME, 'let a = "🐍" + nobody;')
            (found,) = editor.diagnostics(NAME)
            assert found.range.start.character == len('let a = "" + ') + width
        finally:
            editor.stop()


# -- hover --


def test_hover_shows_the_value_of_a_name(project: Editor) -> None:
    """Issue 5.8: value, across files and through evaluation."""
    assert '[ "bar" "foo" ]' in project.hover(NAME, "packages = ex|tra;")
    assert '[ "foo" ]' in project.hover(NAME, "common.docu|ments")
    assert '"lib"' in project.hover(NAME, "common.settings.na|me")
    assert "lib/common.layer" in project.hover(NAME, "++ com|mon.documents")
    assert "base **core**: Python 3.12, not locked" in project.hover(NAME, "x one on co|re")


def test_hover_documents_builtins_and_attributes(project: Editor) -> None:
    """Issue 5.8: a builtin's documentation; an attribute's meaning and, inside a loop, its value for each layer."""
    assert "Applies `f` to each element." in project.hover(NAME, "m|ap (word")
    text = project.hover(NAME, '{ pyt|hon = "3."')
    assert "The Python release" in text
    assert 'tools-11\n```nix\n"3.11"' in text
    assert 'tools-12\n```nix\n"3.12"' in text


# -- definitions, references --


def test_definitions_are_found_across_files(project: Editor) -> None:
    """Issue 5.8: go to definition: variables, what an import offers, attributes of sets, bases, imported files."""
    assert project.definition(NAME, "packages = ex|tra;") == [(NAME, "extra")]
    assert project.definition(NAME, "common.docu|ments") == [(COMMON, "documents")]
    assert project.definition(NAME, "common.settings.na|me") == [(COMMON, "name")]
    assert project.definition(NAME, "x one on co|re") == [(NAME, "core")]
    assert project.definition(NAME, "on common.off|ice") == [(COMMON, "office")]
    assert project.definition(NAME, 'on "tool|s-${v}"') == [(NAME, '"tools-${v}"')]
    assert project.definition(NAME, "(word: wo|rd)") == [(NAME, "word")]
    assert project.definition(NAME, '"lib/com|mon.layer"') == [(COMMON, "")]
    assert project.definition(NAME, "m|ap (word") == []


def test_references_are_found_across_files(project: Editor) -> None:
    """Issue 5.8."""
    assert project.references(COMMON, "let docu|ments") == [(COMMON, 2), (COMMON, 4), (NAME, 3)]
    assert project.references(COMMON, "let docu|ments", declaration=False) == [(COMMON, 4), (NAME, 3)]
    assert project.references(NAME, "base co|re {") == [(NAME, 5), (NAME, 11)]


# -- renaming --


def test_rename_changes_all_places_of_all_files(project: Editor) -> None:
    """Issue 5.8: rename; afterwards the project means the same."""
    changed = project.rename(NAME, "common.docu|ments", "papers")
    assert changed == {
        NAME: MAIN.replace("common.documents", "common.papers"),
        COMMON: LIB.replace("documents", "papers"),
    }
    assert project.rename(NAME, "x one on co|re", "kern")[NAME] == MAIN.replace("base core", "base kern").replace(
        "on core", "on kern"
    )
    assert project.rename(NAME, "(wo|rd: word)", "w")[NAME] == MAIN.replace("(word: word)", "(w: w)")


@pytest.mark.parametrize(
    ("place", "new", "reason"),
    [
        ("let ex|tra", "common", "defined already"),
        ("let ex|tra", "map", "of the language itself"),
        ("let ex|tra", "in", "cannot be a name"),
        ("let ex|tra", "not a name", "cannot be a name"),
        ("(wo|rd: word)", "extra", None),
        ("let ex|tra", "word", None),
        ("base co|re {", "one", "defined already"),
        ("common.settings.na|me", "title", "may be asked for by its name"),
        ("m|ap (word", "apply", "no name of this project"),
        ('base "too|ls-', "x", "computed"),
    ],
)
def test_a_rename_that_is_not_safe_is_refused(project: Editor, place: str, new: str, reason: str | None) -> None:
    """Issue 5.8: refuses collisions, names that hide one another, and what may be asked for by its name."""
    if reason is None:  # harmless: the inner name hides one that nothing there speaks of
        assert NAME in project.rename(NAME, place, new)
        return
    with pytest.raises(JsonRpcException) as raised:
        project.rename(NAME, place, new)
    assert reason in raised.value.message


def test_an_editor_can_ask_first_whether_a_name_can_be_renamed(project: Editor) -> None:
    """Issue 5.8: the range of the name, or the reason why not."""
    ask = project.client.text_document_prepare_rename_async
    place = project.position(NAME, "x one on co|re")
    found = project.run(ask(types.PrepareRenameParams(project.document(NAME), place)))
    assert isinstance(found, types.Range)
    assert piece(MAIN, found) == "core"
    with pytest.raises(JsonRpcException) as raised:
        project.run(ask(types.PrepareRenameParams(project.document(NAME), project.position(NAME, "m|ap (word"))))
    assert "no name of this project" in raised.value.message


def test_files_that_change_on_disk_are_read_again(project: Editor) -> None:
    """Issue 5.8: a checkout of another branch shows at once, in the files that are open."""
    (project.root / COMMON).write_text(LIB.replace("documents", "papers"))
    event = types.FileEvent(project.uri(COMMON), types.FileChangeType.Changed)
    project.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    assert [item.code for item in project.diagnostics(NAME, bool)] == ["eval-missing-attribute"]
    (project.root / COMMON).write_text(LIB)
    project.client.text_document_did_save(types.DidSaveTextDocumentParams(project.document(NAME)))
    assert project.diagnostics(NAME, lambda found: not found) == []


def test_a_rename_that_would_capture_another_name_is_refused(editor: Editor) -> None:
    """Issue 5.8: `b` inside the function would come to mean its parameter."""
    (editor.root / NAME).write_text("let b = 1;\nlet f = a: a + b;\n")
    editor.open(NAME)
    for place, new in (("= |a: a", "b"), ("let |b =", "a")):
        with pytest.raises(JsonRpcException) as raised:
            editor.rename(NAME, place, new)
        assert "means something else" in raised.value.message


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_edits_are_right_behind_astral_characters(editor: Editor, line_end: str) -> None:
    """Issue 5.8: what comes back is placed in the same units."""
    text = line_end.join(["let a = 1; # 🐍", 'let b = { "🐍🐍" = a; c = "𐐷${toString a}"; };', ""])
    (editor.root / NAME).write_bytes(text.encode())
    editor.open(NAME)
    assert editor.rename(NAME, "let |a", "snake") == {
        NAME: text.replace("let a", "let snake").replace("= a;", "= snake;").replace("toString a", "toString snake")
    }
    assert editor.references(NAME, "toString |a") == [(NAME, 1), (NAME, 2), (NAME, 2)]


# -- completion --


def test_attributes_of_layers_are_proposed_with_their_documentation(project: Editor) -> None:
    """Issue 5.8: completion of attributes, in a file that is not finished; those that are there are left out."""
    found = project.typed(NAME, 'base core {\n  python = "3.12";\n  pack|')
    assert {"packages", "platforms", "env", "exclude-newer"} <= found.keys()
    assert "python" not in found
    documentation = found["packages"].documentation
    assert isinstance(documentation, types.MarkupContent)
    assert "PEP 508" in documentation.value
    assert found["packages"].detail == "list of requirements"
    edit = found["packages"].text_edit
    assert isinstance(edit, types.TextEdit)
    assert edit.range == types.Range(types.Position(2, 2), types.Position(2, 6))


def test_names_in_scope_and_builtins_are_proposed(project: Editor) -> None:
    """Issue 5.8: what is visible at the place, and nothing else."""
    found = project.typed(NAME, "let a = 1;\nlet f = inner: inn|;\nlet g = other: 1;\n")
    assert {"a", "f", "g", "inner", "map", "true"} <= found.keys()
    assert "other" not in found


def test_what_an_import_or_set_offers_is_proposed_behind_the_dot(project: Editor) -> None:
    """Issue 5.8: attributes of known sets, also of values that have to be evaluated for it."""
    start = 'import "lib/common.layer" as common;\n'
    assert {"documents", "settings"} == project.typed(NAME, start + "let a = common.|").keys()
    assert {"debug", "name"} == project.typed(NAME, start + "let a = common.settings.|;\nlet b = 2;\n").keys()
    assert {"level"} == project.typed(NAME, start + "let a = common.settings.debug.|;").keys()
    assert "concatMap" in project.typed(NAME, "let a = builtins.conc|;")
    (project.root / "pyproject.toml").write_text('[project]\nname = "a"\n')
    project.type(NAME, "let p = readToml ../pyproject.toml;\n")
    assert {"project"} == project.typed(NAME, "let p = readToml ../pyproject.toml;\nlet a = p.|;\n").keys()


def test_bases_are_proposed_behind_on_and_declarations_at_the_start_of_a_line(project: Editor) -> None:
    """Issue 5.8."""
    found = project.typed(NAME, MAIN + "x three on |")
    assert {"core", "office", "common"} <= found.keys()
    assert "one" not in found
    assert {"office"} == project.typed(NAME, MAIN + "x three on common.| { }").keys()
    assert {"base", "x", "iso", "let", "import", "for"} == project.typed(NAME, MAIN + "\n|").keys()
    assert project.typed(NAME, MAIN + "# ba|") == {}


# -- locks --


@pytest.fixture
def locked(editor: Editor) -> Editor:
    """A project with an index of its own and one layer."""
    make_wheel(editor.root / "wheels", "foo", "1.5", extra_metadata="Summary: All about foo\n")
    (editor.root / "envdsl.toml").write_text(
        '[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n'
    )
    (editor.root / NAME).write_text(
        f'base core {{\n  python = "{PYTHON}";\n  packages = [ "foo>=1" ];\n}}\nx more on core {{ packages = [ ]; }}\n'
    )
    editor.open(NAME)
    return editor


def _actions(editor: Editor, marked: str) -> list[types.Command]:
    place = editor.position(NAME, marked)
    found = editor.run(
        editor.client.text_document_code_action_async(
            types.CodeActionParams(editor.document(NAME), types.Range(place, place), types.CodeActionContext([]))
        )
    )
    return [action for action in found or [] if isinstance(action, types.Command)]


def test_a_layer_is_locked_from_the_editor_and_its_packages_are_known_then(locked: Editor) -> None:
    """Issue 5.8: code action "lock this layer"; hover shows a package's locked version and summary; completion
    proposes package names from locks."""
    (action,) = _actions(locked, 'packages = [ |"foo')
    assert action.title == "Lock core"
    command = types.ExecuteCommandParams(action.command, action.arguments)
    (outcome,) = locked.run(locked.client.workspace_execute_command_async(command))
    assert (outcome["layer"], outcome["status"], outcome["added"]) == ("core", "created", ["foo 1.5"])
    assert (locked.root / "layers.d" / "pylock.core.toml").is_file()
    assert locked.message() == "core: created"
    text = locked.hover(NAME, '"fo|o>=1"')
    assert "1.5 in core" in text
    assert "All about foo" in text
    assert "1 package locked" in locked.hover(NAME, "base co|re")
    text = (locked.root / NAME).read_text()
    found = locked.typed(NAME, text.replace("packages = [ ];", 'packages = [ "f|'))
    assert found["foo"].detail == "1.5"


def test_unsaved_changes_are_not_locked_by_mistake(locked: Editor) -> None:
    (action,) = _actions(locked, 'packages = [ |"foo')
    locked.type(NAME, (locked.root / NAME).read_text() + "# more\n")
    command = types.ExecuteCommandParams(action.command, action.arguments)
    with pytest.raises(JsonRpcException) as raised:
        locked.run(locked.client.workspace_execute_command_async(command))
    assert "unsaved changes" in raised.value.message


def test_no_action_where_there_is_no_layer(project: Editor) -> None:
    assert _actions(project, "let ex|tra") == []
    (action,) = _actions(project, 'base "too|ls-')
    assert action.title == "Lock tools-11 and 1 more"


# -- formatting, symbols --


def test_formatting_is_that_of_fmt(project: Editor) -> None:
    """Issue 5.8: formatting; a file with errors has no edits."""
    text = MAIN.replace(" = ", "=")
    project.type(NAME, text)
    options = types.FormattingOptions(2, True)
    params = types.DocumentFormattingParams(project.document(NAME), options)
    edits = project.run(project.client.text_document_formatting_async(params))
    assert edits is not None
    assert apply(text, list(edits)) == MAIN
    project.type(NAME, "base a {")
    assert project.run(project.client.text_document_formatting_async(params)) is None


def test_symbols_are_the_declarations_with_their_attributes(project: Editor) -> None:
    """Issue 5.8: document symbols."""
    params = types.DocumentSymbolParams(project.document(NAME))
    found = project.run(project.client.text_document_document_symbol_async(params))
    assert found is not None
    symbols = [symbol for symbol in found if isinstance(symbol, types.DocumentSymbol)]
    assert [symbol.name for symbol in symbols] == ["common", "extra", "core", "one", "two", "for v"]
    assert [child.name for child in symbols[2].children or []] == ["python", "packages", "description"]
    assert [child.name for child in symbols[5].children or []] == ["tools-${v}", "more-${v}"]

"""What lies in ``editors/``: the grammar for colours, and the files that guides in docs/editors.md tell to copy."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envdsl.evaluate.builtins import DOCUMENTATION
from envdsl.syntax.grammar import tables

ROOT = Path(__file__).parents[1]
EDITORS = ROOT / "editors"
GRAMMAR = json.loads((EDITORS / "textmate" / "layer.tmLanguage.json").read_text(encoding="utf-8"))
GUIDE = (ROOT / "docs" / "editors.md").read_text(encoding="utf-8")

# A line for each word of the language, and the scope that the word has in it.
WORDS = {
    "base": ("base office { }", "keyword.declaration"),
    "iso": ("  iso legacy {", "keyword.declaration"),
    "x": ('x "a-${v}" on "b" {', "keyword.declaration"),
    "on": ("x viz on common.office {", "keyword.control.on"),
    "import": ('import "lib/a.layer" as a;', "keyword.control.import"),
    "as": ('import "lib/a.layer" as a;', "keyword.control.as"),
    "for": ("for (v in [ 1 ]) {", "keyword.control.for"),
    "let": ("let a = 1;", "keyword.declaration.let"),
    "in": ("in a", "keyword.control"),
    "if": ("a = if b then c else d;", "keyword.control"),
    "then": ("a = if b then c else d;", "keyword.control"),
    "else": ("a = if b then c else d;", "keyword.control"),
    "assert": ("assert a; b", "keyword.control"),
    "with": ("with a; b", "invalid.illegal"),
    "rec": ("rec { }", "keyword.control"),
    "inherit": ("inherit a;", "keyword.control"),
    "or": ("a.b or c", "keyword.control"),
}


def rules(node: Any) -> Iterator[dict[str, Any]]:
    """All rules of the grammar."""
    if isinstance(node, dict):
        if "match" in node or "begin" in node:
            yield node
        for value in node.values():
            yield from rules(value)
    elif isinstance(node, list):
        for value in node:
            yield from rules(value)


def scopes(line: str, word: str) -> set[str]:
    """The scopes that rules give to just ``word`` in ``line``."""
    found = set()
    for rule in rules(GRAMMAR):
        for match in re.finditer(rule.get("match", "(?!)"), line):
            captures = rule.get("captures", {})
            named = {0: rule.get("name", "")} | {int(group): item["name"] for group, item in captures.items()}
            found |= {name for group, name in named.items() if name and match[group] == word}
    return found


def test_every_word_of_the_language_is_coloured() -> None:
    """Issue 5.8: the TextMate grammar knows each keyword of grammar/layer.lark."""
    keywords = {
        match[1]
        for terminal in tables().terminals.values()
        if (match := re.fullmatch(r"(?:\(\?:)?([a-z]+)\(\?!\[a-zA-Z0-9_'-\]\)\)?", terminal.pattern))
    }
    assert keywords == WORDS.keys()
    for word, (line, scope) in WORDS.items():
        assert f"{scope}.layer" in scopes(line, word), word


def test_words_of_declarations_are_not_coloured_where_they_are_names() -> None:
    """Issue 5.8: they are not reserved."""
    for line, word in (("x: x + 1", "x"), ("{ base = 1; on = 2; }", "base"), ("{ base = 1; on = 2; }", "on")):
        assert not any(scope.startswith("keyword.declaration") or ".control" in scope for scope in scopes(line, word))
    assert "keyword.control.layer" not in scopes("a.in-b", "in")


def test_every_builtin_is_coloured() -> None:
    """A builtin that is added has to be added to the grammar."""
    pattern = re.compile(GRAMMAR["repository"]["builtins"]["match"])
    assert [name for name in DOCUMENTATION if not pattern.fullmatch(name)] == []


def test_the_grammar_holds_together() -> None:
    """Issue 5.8: each expression is one, each include leads somewhere, each rule names something."""
    for rule in rules(GRAMMAR):
        for key in ("match", "begin", "end"):
            re.compile(rule.get(key, ""))
        assert ("begin" in rule) == ("end" in rule)
    included = set(re.findall(r'"include": "#([a-z]+)"', json.dumps(GRAMMAR)))
    assert included == GRAMMAR["repository"].keys()
    assert GRAMMAR["scopeName"] == "source.layer"


def test_the_guides_name_files_that_are_there() -> None:
    """Issue 5.8: guides for VS Code, Neovim, Helix and JetBrains."""
    for name in ("Visual Studio Code", "Neovim", "Helix", "JetBrains"):
        assert f"## {name}" in GUIDE
    for path in re.findall(r"`(editors/[a-zA-Z/.]+)`", GUIDE):
        assert (ROOT / path).exists(), path


def test_each_configuration_starts_the_server() -> None:
    """Issue 5.8: the files are well formed and start ``envdsl lsp`` for ``.layer`` files."""
    package = json.loads((EDITORS / "vscode" / "package.json").read_text(encoding="utf-8"))
    assert package["contributes"]["configuration"]["properties"]["envdsl.command"]["default"] == ["envdsl", "lsp"]
    (language,) = package["contributes"]["languages"]
    assert language["extensions"] == [".layer"]
    for name in (language["configuration"], package["main"]):
        assert (EDITORS / "vscode" / name).is_file()
    configuration = json.loads((EDITORS / "vscode" / "language-configuration.json").read_text(encoding="utf-8"))
    for pattern in (configuration["wordPattern"], *configuration["indentationRules"].values()):
        re.compile(pattern)
    helix = tomllib.loads((EDITORS / "helix" / "languages.toml").read_text(encoding="utf-8"))
    server = helix["language-server"]["envdsl"]
    assert [server["command"], *server["args"]] == ["envdsl", "lsp"]
    assert helix["language"][0]["language-servers"] == ["envdsl"]
    assert 'cmd = { "envdsl", "lsp" }' in (EDITORS / "neovim" / "envdsl.lua").read_text(encoding="utf-8")


def test_the_command_is_there() -> None:
    pytest.importorskip("pygls", reason="envdsl[lsp] is not installed")
    from envdsl.lsp.server import LOCK, create

    assert LOCK in create().protocol.fm.commands

from __future__ import annotations

import json
import logging
from pathlib import Path

import lark
import pytest

from envdsl.syntax import grammar
from envdsl.syntax.builder import TreeBuilder
from envdsl.syntax.tables import Tables


def test_the_tables_that_travel_are_those_of_the_grammar() -> None:
    """If this fails: `python -m envdsl.syntax.grammar`."""
    stored = Path(grammar.__file__).with_name("layer.json").read_text(encoding="utf-8")
    assert stored == grammar.encode(grammar.generate(grammar.grammar_text()))


def test_the_grammar_has_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger=lark.logger.name):
        lark.Lark(grammar.grammar_text(), parser="lalr", start=list(grammar.STARTS), debug=True)
    assert [record.getMessage() for record in caplog.records if "onflict" in record.getMessage()] == []


def test_the_builder_has_a_method_for_each_action() -> None:
    actions = {rule.action for rule in grammar.tables().rules}
    assert len(actions) > 60
    assert {action for action in actions if not callable(getattr(TreeBuilder, action, None))} == set()


def test_an_edited_grammar_is_used_without_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    edited = grammar.grammar_text().replace('NOT: "!"', 'NOT: "~"')
    monkeypatch.setattr(grammar, "grammar_text", lambda: edited)
    assert json.loads(grammar.encode(grammar.generate(edited)))["grammar"] == grammar.digest(edited)
    tables = grammar.tables.__wrapped__()
    assert isinstance(tables, Tables)
    assert tables.terminals["NOT"].literal == "~"

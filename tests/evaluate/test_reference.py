"""The documentation of the language is made from the code, and its examples are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from envdsl.errors import EnvdslError
from envdsl.evaluate.builtins import GLOBALS, TOPICS, Documentation
from envdsl.evaluate.expression import evaluate_expression, evaluate_json
from envdsl.evaluate.limits import Limits
from envdsl.evaluate.reference import update
from envdsl.evaluate.render import render_nix, to_json
from tests.evaluate.language import MemoryReader, value

SPEC = Path(__file__).parents[2] / "docs" / "spec.md"

READER = MemoryReader(
    {
        "requirements.txt": "# ours\nnumpy>=2\nrich\n",
        "pyproject.toml": '[project]\ndependencies = ["httpx2"]\n',
        "settings.json": '{"debug": false}',
    }
)

DOCUMENTED = [text for topic in TOPICS for _, text in topic.functions.values()]

NAMED_IN_THE_ISSUE = [
    "map",
    "filter",
    "foldl'",
    "concatMap",
    "length",
    "head",
    "tail",
    "elem",
    "elemAt",
    "attrNames",
    "attrValues",
    "mapAttrs",
    "hasAttr",
    "removeAttrs",
    "listToAttrs",
    "range",
    "toString",
    "replaceStrings",
    "splitString",
    "concatStringsSep",
    "hasPrefix",
    "hasSuffix",
    "optional",
    "optionals",
    "optionalString",
    "throw",
    "readLines",
    "readToml",
    "readJson",
    "any",
    "all",
    "sort",
    "partition",
    "groupBy",
    "intersectAttrs",
    "catAttrs",
    "isString",
    "isList",
    "isAttrs",
    "isInt",
    "isBool",
    "isNull",
    "isFunction",
    "isPath",
    "typeOf",
    "functionArgs",
    "substring",
    "stringLength",
    "match",
    "split",
    "toJSON",
    "fromJSON",
    "seq",
    "deepSeq",
    "trace",
    "tryEval",
    "genList",
    "concatLists",
    "filterAttrs",
    "baseNameOf",
    "dirOf",
    "min",
    "max",
]


@pytest.mark.parametrize("text", DOCUMENTED, ids=lambda text: text.name)
def test_the_example_of_a_builtin_gives_what_it_says(text: Documentation) -> None:
    assert value(text.example, READER) == text.result


@pytest.mark.parametrize("name", NAMED_IN_THE_ISSUE)
def test_every_named_builtin_is_found_plain_and_below_builtins(name: str) -> None:
    """Issue 2.1: both ``builtins.map`` and plain ``map`` are found."""
    assert value(f"[ (isFunction {name}) (isFunction builtins.{name}) ]") == "[ true true ]"
    assert name in GLOBALS


def test_the_language_page_is_current() -> None:
    """``python -m envdsl.evaluate.reference docs/spec.md`` has been run."""
    text = SPEC.read_text(encoding="utf-8")
    assert update(text) == text


def test_the_language_page_states_the_limits_in_force() -> None:
    text = " ".join(SPEC.read_text(encoding="utf-8").split())
    limits = Limits()
    for stated in (
        f"{limits.steps:,} steps",
        f"{limits.depth:,} calls",
        f"{limits.items:,} elements",
        f"{limits.memory // 2**20} MiB of values",
        f"{limits.file // 2**20} MiB a file",
        f"{limits.string // 2**20} Mi characters",
        f"{limits.layers:,} layers",
        f"{limits.subject:,}",
        f"{limits.read // 2**20} MiB and {limits.files:,} files",
        f"{limits.pattern:,} characters",
    ):
        assert stated in text, stated


def test_an_expression_as_json() -> None:
    """Issue 2.2: ``--json``, with ``__toString`` as in Nix."""
    assert evaluate_json('{ b = 1; a = { __toString = self: "x"; }; }') == '{"a":"x","b":1}'
    with pytest.raises(EnvdslError) as raised:
        evaluate_json("[ (x: x) ]")
    assert raised.value.code == "eval-json"


def test_values_as_json() -> None:
    """Issue 2.2: ``--json``."""
    shared = evaluate_expression('{ b = [ 1 null true "é\\n" ]; a = { }; p = ./x; o = { outPath = "s"; }; }')
    assert to_json(shared) == '{"a":{},"b":[1,null,true,"é\\n"],"o":"s","p":"x"}'
    assert render_nix(shared) == '{ a = { }; b = [ 1 null true "é\\n" ]; o = { outPath = "s"; }; p = ./x; }'

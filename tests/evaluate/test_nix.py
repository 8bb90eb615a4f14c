"""The oracle: Nix itself, where ``nix-instantiate`` is installed, over every table of the other modules."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.evaluate import (
    test_arithmetic,
    test_comparison,
    test_functions,
    test_json,
    test_laziness,
    test_lists,
    test_regex,
    test_sets,
    test_strings,
    test_types,
)
from tests.evaluate.language import Differs

# Where CI has installed it, it has to be found.
pytestmark = pytest.mark.skipif(
    shutil.which("nix-instantiate") is None and not os.environ.get("ENVDSL_CI"), reason="Nix is not installed"
)

MODULES = (
    test_arithmetic,
    test_comparison,
    test_functions,
    test_json,
    test_laziness,
    test_lists,
    test_regex,
    test_sets,
    test_strings,
    test_types,
)

# Builtins that every envdsl file sees by their plain names, and those that Nix has in nixpkgs' lib.
PRELUDE = r"""
let
  inherit (builtins) add all any attrNames attrValues catAttrs concatLists concatMap concatStringsSep deepSeq div elem
    elemAt filter foldl' fromJSON functionArgs genList getAttr groupBy hasAttr head intersectAttrs isAttrs isBool
    isFunction isInt isList isPath isString length lessThan listToAttrs mapAttrs match mul partition replaceStrings
    seq sort split stringLength sub substring tail toJSON trace tryEval typeOf;
  min = x: y: if x < y then x else y;
  max = x: y: if x > y then x else y;
  range = first: last: if first > last then [ ] else genList (n: first + n) (last - first + 1);
  optional = cond: e: if cond then [ e ] else [ ];
  optionals = cond: es: if cond then es else [ ];
  optionalString = cond: s: if cond then s else "";
  hasPrefix = p: s: substring 0 (stringLength p) s == p;
  hasSuffix = suffix: content:
    let n = stringLength content; m = stringLength suffix;
    in n >= m && substring (n - m) n content == suffix;
  filterAttrs = pred: set:
    let keep = name: if pred name set.${name} then [ { inherit name; value = set.${name}; } ] else [ ];
    in listToAttrs (concatMap keep (attrNames set));
  escape = list: replaceStrings list (map (c: "\\${c}") list);
  escapeRegex = escape [ "\\" "[" "{" "(" ")" "^" "$" "?" "*" "+" "|" "." ];
  splitString = sep: s: filter isString (split (escapeRegex (toString sep)) (toString s));
in
"""


def run_nix(*expressions: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            "nix-instantiate",
            "--eval",
            "--strict",
            "--readonly-mode",
            "--expr",
            *(PRELUDE + text for text in expressions),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture(autouse=True)
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "NIX_STATE_DIR", "NIX_STORE_DIR", "NIX_LOG_DIR", "NIX_LOCALSTATE_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_nix_prints_the_same(module: object) -> None:
    """Issue 2.1: what a table says is Nix's answer, Nix says."""
    cases = [(text, expected) for text, expected in module.CASES if isinstance(expected, str)]  # type: ignore[attr-defined]
    result = run_nix(*(text for text, _ in cases))
    printed = result.stdout.splitlines()
    answers = {text: answer for (text, _), answer in zip(cases, printed, strict=False)}
    assert answers == dict(cases), result.stderr


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_nix_refuses_the_same(module: object) -> None:
    # Overflow wraps around in Nix 2.8, and is an error in newer ones.
    texts = [text for text, code in module.ERRORS if code != "eval-overflow"]  # type: ignore[attr-defined]
    accepted = [text for text in texts if run_nix(text).returncode == 0]
    assert accepted == []


def test_differences_are_real() -> None:
    """A difference that is listed with its reason is one."""
    for module in MODULES:
        for text, expected in module.CASES:
            if isinstance(expected, Differs):
                assert run_nix(text).stdout.strip() != expected.text, text

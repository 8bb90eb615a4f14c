"""Regular expressions."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ('match "ab" "abc"', "null"),
    ('match "abc" "abc"', "[ ]"),
    ('match "a(b)(c)" "abc"', '[ "b" "c" ]'),
    ('match "[[:space:]]+([[:upper:]]+)[[:space:]]+" "  FOO   "', '[ "FOO" ]'),
    ('match "a(x)?b" "ab"', "[ null ]"),
    ('match "([a-z]+)-([0-9.]+)" "foo-1.2"', '[ "foo" "1.2" ]'),
    ('match ".*\\\\.nix" "a.nix"', "[ ]"),
    ('match "" ""', "[ ]"),
    ('match "" "a"', "null"),
    ('match "a{2,3}" "aaa"', "[ ]"),
    ('match "a{2}" "aaa"', "null"),
    ('match "(a*)(a*)" "aaa"', '[ "aaa" "" ]'),
    ('match "(a)|(b)" "b"', '[ null "b" ]'),
    ('match "a.c" "a\\nc"', "[ ]"),
    ('match "[^a-z]+" "ABC"', "[ ]"),
    ('match "[]a]+" "]a"', "[ ]"),
    ('match "[\\\\]" "\\\\"', "[ ]"),
    ('match "[a\\\\]+" "a\\\\"', "[ ]"),
    ('match "([[:alpha:]_][[:alnum:]_]*)" "ab_1"', '[ "ab_1" ]'),
    ('match "a|b" "b"', "[ ]"),
    ('match "(..)(.*)" "abcde"', '[ "ab" "cde" ]'),
    ('match "\\\\(x\\\\)" "(x)"', "[ ]"),
    ('match "^abc$" "abc"', "[ ]"),
    ('split "(a)b" "abc"', '[ "" [ "a" ] "c" ]'),
    ('split "([ac])" "abc"', '[ "" [ "a" ] "b" [ "c" ] "" ]'),
    ('split "(a)|(c)" "abc"', '[ "" [ "a" null ] "b" [ null "c" ] "" ]'),
    ('split "([[:upper:]]+)" " FOO "', '[ " " [ "FOO" ] " " ]'),
    ('split "," "a,b,c"', '[ "a" [ ] "b" [ ] "c" ]'),
    ('split "x" "abc"', '[ "abc" ]'),
    ('split "," ""', '[ "" ]'),
    ('split "" "ab"', '[ "" [ ] "a" [ ] "b" [ ] "" ]'),
    ('split "a*" "baac"', '[ "" [ ] "b" [ ] "" [ ] "c" [ ] "" ]'),
    ('split "[,;] *" "a, b;c"', '[ "a" [ ] "b" [ ] "c" ]'),
    ('filter isString (split "[.]" "1.2.3")', '[ "1" "2" "3" ]'),
    ('split "(ab|a)" "ab"', '[ "" [ "ab" ] "" ]'),
    ('split "a|ab" "ab"', '[ "" [ ] "" ]'),
]

ERRORS: list[tuple[str, str]] = [
    ('match "(" "a"', "eval-regex"),
    ('match "[" "a"', "eval-regex"),
    ('match "*" "a"', "eval-regex"),
    ('match 1 "a"', "eval-type"),
    ('match "a" 1', "eval-type"),
    ('split "(" "a"', "eval-regex"),
    ('match "a{2,1}" "a"', "eval-regex"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_regex_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: match and split follow POSIX extended regular expressions, as in Nix."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_regex_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

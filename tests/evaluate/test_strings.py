"""Strings: literals, interpolation and builtins."""

from __future__ import annotations

import pytest

from tests.evaluate.language import Differs, error, text_of, value

CASES: list[tuple[str, str | Differs]] = [
    ('""', '""'),
    ('"a"', '"a"'),
    ('"a\\nb\\tc\\rd\\\\e\\"f"', '"a\\nb\\tc\\rd\\\\e\\"f"'),
    ('"\\${x}"', '"\\${x}"'),
    ('"$x $"', '"$x $"'),
    ('"\\q"', '"q"'),
    ('"a${"b"}c"', '"abc"'),
    ('"${"a"}${"b"}"', '"ab"'),
    ('"${"${"a"}"}"', '"a"'),
    ('"a" + "b" + "c"', '"abc"'),
    ('let x = "1"; in "a${x}b${x}"', '"a1b1"'),
    ('"é✓"', '"é✓"'),
    ("''a''", '"a"'),
    ("''\n  a\n  b\n''", '"a\\nb\\n"'),
    ("''\n    a\n      b\n  ''", '"a\\n  b\\n"'),
    ("''a ${\"b\"} c''", '"a b c"'),
    ("''''", '""'),
    ("''a'''b''", "\"a''b\""),
    ("''a''${b}''", '"a\\${b}"'),
    ("''a''\\nb''", '"a\\nb"'),
    ("''\n  a\n\n  b''", '"a\\n\\nb"'),
    ("''  a''", '"a"'),
    ('stringLength "abc"', "3"),
    ('stringLength ""', "0"),
    ('stringLength "é"', Differs("1", "a string is counted in characters, not in bytes")),
    ('substring 0 2 "abc"', '"ab"'),
    ('substring 1 100 "abc"', '"bc"'),
    ('substring 3 1 "abc"', '""'),
    ('substring 10 1 "abc"', '""'),
    ('substring 1 (0 - 1) "abc"', '"bc"'),
    ('substring 0 0 "abc"', '""'),
    ('hasPrefix "a" "abc"', "true"),
    ('hasPrefix "b" "abc"', "false"),
    ('hasPrefix "" "abc"', "true"),
    ('hasPrefix "abcd" "abc"', "false"),
    ('hasSuffix "c" "abc"', "true"),
    ('hasSuffix "" "abc"', "true"),
    ('hasSuffix "b" "abc"', "false"),
    ('replaceStrings [ "a" ] [ "b" ] "aaa"', '"bbb"'),
    ('replaceStrings [ "a" "b" ] [ "b" "a" ] "ab"', '"ba"'),
    ('replaceStrings [ "oo" "a" ] [ "a" "i" ] "foobar"', '"fabir"'),
    ('replaceStrings [ "" ] [ "X" ] "ab"', '"XaXbX"'),
    ('replaceStrings [ "a" "" ] [ "x" "-" ] "ab"', '"x-b-"'),
    ('replaceStrings [ "" "a" ] [ "-" "x" ] "ab"', '"-a-b-"'),
    ('replaceStrings [ ] [ ] "ab"', '"ab"'),
    ('replaceStrings [ "ab" "a" ] [ "1" "2" ] "aab"', '"21"'),
    ('replaceStrings [ "a" "ab" ] [ "1" "2" ] "aab"', '"11b"'),
    ('replaceStrings [ "." ] [ "" ] "3.12"', '"312"'),
    ('replaceStrings [ "a" "a" ] [ "1" "2" ] "a"', '"1"'),
    ('replaceStrings [ "." "*" ] [ "x" "y" ] "a.*"', '"axy"'),
    ('splitString "." "a.b.c"', '[ "a" "b" "c" ]'),
    ('splitString "." ""', '[ "" ]'),
    ('splitString "." "abc"', '[ "abc" ]'),
    ('splitString "." ".a."', '[ "" "a" "" ]'),
    ('splitString "ab" "xabyab"', '[ "x" "y" "" ]'),
    ('splitString "" "abc"', '[ "" "a" "b" "c" "" ]'),
    ('splitString "" ""', '[ "" "" ]'),
    ('splitString "*" "a*b"', '[ "a" "b" ]'),
    ('splitString "." 12', '[ "12" ]'),
    ('concatStringsSep ", " [ "a" "b" ]', '"a, b"'),
    ('concatStringsSep "," [ ]', '""'),
    ('concatStringsSep "," [ "a" ]', '"a"'),
    ('concatStringsSep "" [ "a" "b" ]', '"ab"'),
    ('concatStringsSep "," [ { __toString = self: "x"; } "y" ]', '"x,y"'),
    ('optionalString true "a"', '"a"'),
    ('optionalString false (throw "x")', '""'),
    ('baseNameOf "a/b/c"', '"c"'),
    ('baseNameOf "a/b/"', '"b"'),
    ('baseNameOf "a"', '"a"'),
    ('baseNameOf ""', '""'),
    ('baseNameOf "/"', '""'),
    ('baseNameOf "a//"', '""'),
    ('dirOf "a/b/c"', '"a/b"'),
    ('dirOf "a"', '"."'),
    ('dirOf "/a"', '"/"'),
    ('dirOf "/"', '"/"'),
    ('dirOf "a/"', '"a"'),
    ('dirOf ""', '"."'),
    ('dirOf "a//b"', '"a/"'),
    ('map (splitString "=") [ "a=1" "b=2" ]', '[ [ "a" "1" ] [ "b" "2" ] ]'),
    ('concatMap (s: [ s (s + "!") ]) [ "a" ]', '[ "a" "a!" ]'),
    ('stringLength { outPath = "abc"; }', "3"),
]

ERRORS: list[tuple[str, str]] = [
    ("stringLength 1", "eval-type"),
    ('substring (0 - 1) 1 "a"', "eval-out-of-bounds"),
    ('substring "a" 1 "a"', "eval-type"),
    ('replaceStrings [ "a" ] [ ] "a"', "eval-type"),
    ('replaceStrings [ 1 ] [ "a" ] "a"', "eval-type"),
    ('replaceStrings "a" "b" "c"', "eval-type"),
    ('concatStringsSep "," [ 1 ]', "eval-type"),
    ("concatStringsSep 1 [ ]", "eval-type"),
    ('concatStringsSep "," "a"', "eval-type"),
    ('hasPrefix 1 "a"', "eval-type"),
    ("baseNameOf 1", "eval-type"),
    ("dirOf null", "eval-type"),
    ('optionalString 1 "a"', "eval-type"),
    ('splitString "." (x: x)', "eval-type"),
]


@pytest.mark.parametrize(("expression", "expected"), CASES)
def test_strings_as_in_nix(expression: str, expected: str | Differs) -> None:
    """Issue 2.1: strings and their builtins are Nix's."""
    assert value(expression) == text_of(expected)


@pytest.mark.parametrize(("expression", "code"), ERRORS)
def test_strings_errors(expression: str, code: str) -> None:
    assert error(expression).code == code

"""Text made to break a parser gets an answer: a tree or an error, in bounded time, whatever it is."""

from __future__ import annotations

import random
import time

import pytest

from envdsl.errors import Diagnostic, EnvdslError
from envdsl.syntax.automaton import STACK_LIMIT, TOKEN_LIMIT
from envdsl.syntax.decode import SIZE_LIMIT, decode
from envdsl.syntax.depth import DEPTH_LIMIT, children
from envdsl.syntax.parser import parse_expression, parse_file
from tests.patience import TWO_SECONDS
from tests.syntax.notation import findings, source

MANY = 100_000

NESTED = {
    "brackets": "[" * MANY,
    "closed brackets": "[" * MANY + "]" * MANY,
    "parentheses": "(" * MANY,
    "sets": "{a=" * MANY,
    "interpolations": '"${' * MANY,
    "indented interpolations": "''${" * MANY,
    "else if": "if a then b else " * 50_000,
    "functions": "x: " * MANY + "x",
    "let": "let a = " * MANY,
    "not": "!" * MANY,
    "minus": "-" * MANY,
    "or": "a.b or " * MANY,
    "assert": "assert a; " * MANY,
    "for": "for (a in b) {" * 50_000,
    "defaults": "{a?" * MANY,
}
LONG = {
    "sum without spaces": "1+" * (SIZE_LIMIT // 2 - 1) + "1",
    "short sum": "1 + " * 1000 + "1",
    "concatenation": "a ++ " * 2000 + "a",
    "call": "a " * 2000,
    "tests": "a" + " ? b" * 2000,
    "calls in brackets": "(" * 100 + "f" + " a a a a a a)" * 100,
    "sums in brackets": "(" * 100 + "1" + " + 1 + 1 + 1 + 1 + 1 + 1)" * 100,
    "list": "[" + "1 " * (SIZE_LIMIT // 2 - 2) + "]",
    "comments": "#\n" * (SIZE_LIMIT // 2 - 1),
    "unclosed comments": "/*" * (SIZE_LIMIT // 2),
    "quotes": '"' * (SIZE_LIMIT - 1),
    "dollars": '"' + "$" * (SIZE_LIMIT - 2) + '"',
    "escapes": '"' + "\\n" * (SIZE_LIMIT // 2 - 1) + '"',
    "indented lines": "''" + "\n  a" * (SIZE_LIMIT // 4 - 2) + "''",
    "line breaks": "\n" * (SIZE_LIMIT - 1) + "1",
    "name": "a" * SIZE_LIMIT,
    "number": "1" * SIZE_LIMIT,
    "path": "a/" * (SIZE_LIMIT // 2),
    "dashes": "-a" * (SIZE_LIMIT // 2),
    "dots": "." * SIZE_LIMIT,
    "colons": "a:" * (SIZE_LIMIT // 2),
    "less than": "<a" * (SIZE_LIMIT // 2),
    "semicolons": ";" * SIZE_LIMIT,
    "formals": "{" + "a," * (SIZE_LIMIT // 2 - 4) + "}: a",
    "broken layers": "base a { b = ; }\n" * (SIZE_LIMIT // 17),
    "unterminated strings": 'base a { b = "c; }\n' * (SIZE_LIMIT // 19),
    "unclosed lists": "base a { b = [ ;\n" * (SIZE_LIMIT // 17),
    "unclosed layers": "base a {\n" * (SIZE_LIMIT // 9),
    "let without semicolon": "let a = 1\n" * (SIZE_LIMIT // 10),
    "heads in a string": 'let a = "' + "base b {\n" * (SIZE_LIMIT // 10),
    "let in a layer": "base a { b = " + "let " * (SIZE_LIMIT // 5),
    "stray brackets": "base a { b = ; ]; " + "]; " * (SIZE_LIMIT // 4),
    "floats": "[" + "1.5 " * 90_000 + "]",
    "nothing known": "é" * SIZE_LIMIT,
    "nul": "\0" * SIZE_LIMIT,
}


def timed_findings(text: str, *, expression: bool = False) -> list[Diagnostic]:
    """What is wrong with a text, found in the time that the promise allows."""
    start = time.process_time()
    found = findings(text, expression=expression)
    assert time.process_time() - start < TWO_SECONDS
    return found


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_deep_nesting_is_an_error_in_bounded_time(text: str) -> None:
    """Issue 2.4: 100,000 nested brackets."""
    found = timed_findings(text, expression=not text.startswith("for"))
    assert [finding.code for finding in found] in (["syntax-too-deep"], ["syntax-too-long"])
    assert all(finding.hint and finding.span for finding in found)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_text_is_read_or_refused_in_bounded_time(text: str) -> None:
    """Issue 2.4: bounds, each a clear error within two seconds."""
    for found in (timed_findings(text), timed_findings(text, expression=True)):
        assert all(finding.span and finding.code.startswith("syntax-") for finding in found)


@pytest.mark.parametrize("name", ["short sum", "concatenation", "call", "calls in brackets", "sums in brackets"])
def test_a_long_chain_is_refused_because_its_tree_is_deep(name: str) -> None:
    assert [finding.code for finding in findings(LONG[name], expression=True)] == ["syntax-too-deep"]


def test_the_bounds_are_where_they_are_said_to_be() -> None:
    def depth(text: str) -> int:
        level, levels = [parse_expression(source(text))], 0
        while level:
            level = [child for node in level for child in children(node)]  # type: ignore[misc]
            levels += 1
        return levels

    assert depth("1 + " * (DEPTH_LIMIT - 1) + "1") == DEPTH_LIMIT
    assert findings("1 + " * DEPTH_LIMIT + "1", expression=True)
    assert depth("(" * (STACK_LIMIT - 3) + "1" + ")" * (STACK_LIMIT - 3)) == 1
    assert findings("(" * STACK_LIMIT + "1" + ")" * STACK_LIMIT, expression=True)


def test_as_many_tokens_are_read_as_the_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert TOKEN_LIMIT == 100_000
    monkeypatch.setattr("envdsl.syntax.automaton.TOKEN_LIMIT", 100)
    assert not findings("[" + "1 " * 97 + "]", expression=True)  # two brackets, and the end of the text
    assert [finding.code for finding in findings("[" + "1 " * 98 + "]", expression=True)] == ["syntax-too-long"]


def test_ordinary_files_are_far_from_the_bounds() -> None:
    layer = "base a%d {\n  packages = f [ " + '"b>=1" ' * 200 + "] ++ (if c then [ ./d ] else [ ]);\n}\n"
    text = "".join(layer % number for number in range(300))
    assert len(parse_file(source(text)).declarations) == 300
    assert not findings("[ 1 ]" + " ++ [ 1 ]" * 200, expression=True)


def test_a_file_of_fifty_megabytes_is_refused_at_once() -> None:
    """Issue 2.4: a file of 50 MB."""
    data = b"base a { }\n" * 5_000_000
    start = time.process_time()
    with pytest.raises(EnvdslError) as caught:
        decode("a.layer", data)
    assert caught.value.code == "syntax-too-large"
    assert time.process_time() - start < TWO_SECONDS


@pytest.mark.parametrize("seed", range(4))
def test_random_signs_get_an_answer_in_bounded_time(seed: int) -> None:
    generator = random.Random(seed)
    words = ["base a {\n", "x b on a {", "a = ", "let ", "in ", *'{}[]();"1', "''", "${", "\n"]
    for alphabet in ("{}[]()\"'$;=. ax1/-+#*\n", words, "".join(map(chr, range(256)))):
        text = "".join(generator.choice(alphabet) for _ in range(100_000))
        assert all(finding.span and finding.code.startswith("syntax-") for finding in timed_findings(text))

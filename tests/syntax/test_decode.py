from __future__ import annotations

import pytest

from envdsl.errors import EnvdslError
from envdsl.syntax.decode import SIZE_LIMIT
from envdsl.syntax.parser import decode, parse_expression
from tests.syntax.notation import source


def test_text_is_decoded_and_a_byte_order_mark_dropped() -> None:
    assert decode("a.layer", "é = 1".encode()).text == "é = 1"
    assert decode("a.layer", b"\xef\xbb\xbflet").text == "let"
    assert decode("a.layer", b"").text == ""
    assert decode("sub/a.layer", b"").path == "sub/a.layer"


@pytest.mark.parametrize(
    ("data", "code", "place", "word"),
    [
        (b"let a = 1;\nlet b = \xff;", "syntax-not-utf8", "a.layer:2:9", "0xff"),
        ("é\n".encode() + b"\xc3", "syntax-not-utf8", "a.layer:2:1", "0xc3"),
        ("let".encode("utf-16"), "syntax-not-utf8", "a.layer:1:1", "UTF-16"),
        (b"let\n a\x00", "syntax-nul", "a.layer:2:3", "NUL"),
        (b" " * (SIZE_LIMIT + 1), "syntax-too-large", "a.layer:1:1", "1,048,576"),
        (b"\xed\xa0\x80", "syntax-not-utf8", "a.layer:1:1", "0xed"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(data: bytes, code: str, place: str, word: str) -> None:
    """Issue 2.4: bytes that are not UTF-8, a file of 50 MB."""
    with pytest.raises(EnvdslError) as caught:
        decode("a.layer", data)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == code
    assert str(diagnostic.span) == place
    assert word in diagnostic.message
    assert diagnostic.hint


def test_text_that_never_was_bytes_is_bounded_too() -> None:
    with pytest.raises(EnvdslError) as caught:
        parse_expression(source(" " * (SIZE_LIMIT + 1)))
    assert caught.value.code == "syntax-too-large"

"""Credentials never get anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.redaction import public_url, redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("at https://bob:secret@host/simple/ now", "at https://host/simple/ now"),
        ("https://token@host/", "https://host/"),
        ("https://a%40b:p%40ss@host:8080/x", "https://host:8080/x"),
        ("https://user:p@ss@host/x", "https://host/x"),
        ("two http://a:b@h1/ and git+ssh://c:d@h2/", "two http://h1/ and git+ssh://h2/"),
        ("HTTPS://Bob:Secret@Host/", "HTTPS://Host/"),
        ("Authorization: Basic Ym9iOnNlY3JldA==", "Authorization: Basic ****"),
        ("authorization=Bearer abc.def", "authorization=Bearer ****"),
        ("https://h/x?token=abc&v=1", "https://h/x?token=****&v=1"),
        ("/x.whl?X-Amz-Signature=abc&X-Amz-Credential=def", "/x.whl?X-Amz-Signature=****&X-Amz-Credential=****"),
        ("nothing: user@example.org wrote numpy@1.0", "nothing: user@example.org wrote numpy@1.0"),
    ],
)
def test_credentials_are_taken_out_of_text(text: str, redacted: str) -> None:
    assert redact(text) == redacted
    assert redact(redacted) == redacted


def test_known_secrets_are_masked_as_they_are_and_encoded() -> None:
    assert redact("saw p@ss/word and p%40ss%2Fword", ["p@ss/word", "", "abc"]) == "saw **** and ****"


def test_a_public_url_has_no_userinfo_no_fragment_and_no_signed_query() -> None:
    assert public_url("https://bob:secret@h:1/a/b.whl?v=1#sha256=00") == "https://h:1/a/b.whl?v=1"
    assert public_url("https://h/b.whl?X-Amz-Signature=abc&v=1") == "https://h/b.whl"


@given(st.text(st.characters(exclude_characters="/?#\"'<>@ ", exclude_categories=["Z", "C"]), min_size=1))
def test_no_password_survives_in_a_url(password: str) -> None:
    text = f"failed: https://user:XX{password}XX@host/simple"
    assert redact(text) == "failed: https://host/simple"


def test_an_access_token_is_masked_wherever_it_stands() -> None:
    """Issue 4.9: no token in logs."""
    token = f"envdsl_a_{'0123456789abcdef' * 4}"
    assert redact(f"header {token!r} and {token}, twice") == "header 'envdsl_a_****' and envdsl_a_****, twice"
    assert redact("envdsl_a_short") == "envdsl_a_short"

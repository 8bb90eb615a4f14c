"""Issue 4.7: the approval card on a terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envdsl.cli.card import plain, render
from envdsl.state.records import Decision, Status
from tests.app.control.test_card import EXTENSION, HOSTILE, NOW, PLOT, PROPOSAL, make, request, wheel


def test_the_card_is_read_without_being_rendered() -> None:
    text = render(make(request()))
    assert text.startswith("Request req_1: plot\n\n  session   s, of alice\n")
    for words in (
        "  because   to draw\n",
        "  status    needs a person\n",
        "Why a person decides\n  - plot 1.0",
        "Approve: a layer on top of what the session has\n"
        "  wheels    2 wheels that the session lacks, 2 MB together\n"
        "  comes     colours 3.2, plot 1.0\n"
        f"  digest    {'d' * 64}\n",
        "  package  version    size  age      licence     required by\n",
        f"  plot     1.0      1.5 MB  40 days  MIT         the request\n    sha256 {'a' * 64}\n"
        "    known vulnerability: GHSA-1 CVE-1 (HIGH), fixed in 1.1\n",
        "Deny\n  Nothing changes; whoever asked hears of it.\n",
    ):
        assert words in text, text
    assert "numpy" not in text
    assert not {"\\", "|", "*", "`", "#"} & set(text)


def test_a_card_tells_what_became_of_the_request() -> None:
    decision = Decision("alice", "approve", "d" * 64, NOW, "fine by me")
    problem = {"code": "intake-size", "message": "the wheel is too large"}
    text = render(make(request(status=Status.FAILED, decision=decision, problem=problem)))
    assert "  status    failed\n  decided   approve, by alice: fine by me\n  problem   the wheel is too large\n" in text
    assert "It is being resolved" in render(make(request(None)))


def test_nothing_that_a_stranger_writes_moves_the_cursor_or_makes_a_line() -> None:
    """Issue 4.7: hostile names and reasons."""
    bad = wheel(HOSTILE, HOSTILE, licence=HOSTILE, required_by=(HOSTILE,), sha256=HOSTILE, uploaded=True)
    proposal = replace(PROPOSAL, extension=replace(EXTENSION, digest=HOSTILE, wheels=(bad, PLOT), note=HOSTILE))
    text = render(make(request(proposal, reason=HOSTILE, requester=HOSTILE, session=HOSTILE, requirements=(HOSTILE,))))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\r" not in text
    assert not [line for line in text.splitlines() if line.startswith(("#", "---", "1. one", "- two", "> quote"))]
    assert "\\u{1b}[31m" in text


@given(st.text())
def test_text_is_one_line_that_can_be_shown(text: str) -> None:
    shown = plain(text)
    assert len(shown.splitlines()) <= 1
    assert all(character.isprintable() or not character.isascii() for character in shown)


@pytest.mark.parametrize("text", ["rich>=13", "a b", "ü 好"])
def test_what_is_harmless_stays_as_it_is(text: str) -> None:
    assert plain(text) == text

"""Issue 4.7: the approval card as JSON and Markdown."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from envdsl.app.control.card import Card, card, difference
from envdsl.app.control.card_markdown import escape
from envdsl.errors import EnvdslError
from envdsl.policy import encoding
from envdsl.policy.catalog import Catalog
from envdsl.policy.classify import classify
from envdsl.policy.proposal import Choice, Plan, Problem, ProblemKind, Proposal, ProposedWheel, Vulnerability
from envdsl.state.records import Decision, RequestRecord, Status

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOSTILE = (
    "# Title\n\n<script>alert(1)</script> [click](https://evil.example) ![x](y) | a | `code` ~~~ **bold** @admin #1 "
    "https://evil.example www.evil.example \u202egnp.exe \x1b[31m\r\n---\n1. one\n- two\n> quote &amp; $x$ a@b.example"
)


def wheel(name: str, version: str, **more: Any) -> ProposedWheel:
    facts: dict[str, Any] = {"filename": f"{name}-{version}-py3-none-any.whl", "sha256": "a" * 64, "size": 1_500_000}
    return ProposedWheel(name, version, **(facts | more))


PLOT = wheel(
    "plot",
    "1.0",
    licence="MIT",
    released=NOW - timedelta(days=40, hours=3),
    vulnerabilities=(Vulnerability("GHSA-1", ("CVE-1",), "code execution", "HIGH", ("1.1",)),),
)
COLOURS = wheel("colours", "3.2", required_by=("plot",), size=500_000)
EXTENSION = Plan("x", "d" * 64, "lock", (COLOURS, PLOT, wheel("numpy", "2.1")))
PROPOSAL = Proposal("s", ("plot",), (), {"numpy": "2.1", "learn": "1.0"}, EXTENSION)
ISOLATED = Plan("iso", "e" * 64, "lock", (wheel("numpy", "1.26"), PLOT), "It leaves something out.")


def request(proposal: Proposal | None = PROPOSAL, **more: Any) -> RequestRecord:
    facts: dict[str, Any] = {
        "id": "req_1",
        "store": "0" * 32,
        "session": "s",
        "requester": "agent:s",
        "reason": "to draw",
        "requirements": ("plot",),
        "uploads": (),
        "fingerprint": "f",
        "status": Status.PENDING,
        "classification": encoding.to_json(classify(Catalog(), proposal, now=NOW)) if proposal else None,
        "proposal": {**encoding.to_json(proposal), "binding": "b"} if proposal else None,
        "digest": "d" * 64,
        "created": NOW,
        "updated": NOW,
        "expires": NOW + timedelta(days=7),
    }
    empty = dict.fromkeys(("decision", "layer", "problem", "worker", "lease"))
    return RequestRecord(**({**empty, "attempts": 0} | facts | more))


def make(record: RequestRecord) -> Card:
    plane: Any = SimpleNamespace(owner_of=lambda session: "alice", now=lambda: NOW)
    return card(plane, record)


def test_the_card_says_all_that_somebody_who_decides_needs() -> None:
    """Issue 4.7: who, what, why, every wheel with its facts, the difference, choices, the digest."""
    value = json.loads(json.dumps(make(request()).to_json()))
    assert (value["requester"], value["owner"], value["reason"]) == ("agent:s", "alice", "to draw")
    assert (value["verdict"], value["choices"]) == ("needs-person", ["approve", "deny"])
    assert [reason["code"] for reason in value["reasons"]] == [
        "policy-vulnerability",
        "policy-unlisted",
        "policy-unlisted-dependency",
    ]
    approve, deny = value["offers"]
    assert deny == {"choice": "deny", "digest": None}
    assert (approve["digest"], approve["kind"], approve["size"]) == ("d" * 64, "x", 2_000_000)
    assert approve["difference"] == {"added": ["colours 3.2", "plot 1.0"], "changed": [], "removed": []}
    plot = approve["wheels"][1]
    assert (plot["name"], plot["size"], plot["licence"], plot["age-days"]) == ("plot", 1_500_000, "MIT", 40)
    assert (plot["sha256"], plot["new"]) == ("a" * 64, True)
    assert plot["vulnerabilities"][0]["aliases"] == ["CVE-1"]
    assert [item["new"] for item in approve["wheels"]] == [True, True, False]
    assert approve["wheels"][0]["required-by"] == ["plot"]


def test_the_markdown_says_the_same() -> None:
    text = make(request()).to_markdown()
    assert text.startswith("# Request req\\_1: plot\n")
    for words in (
        "- **Session:** s, of alice",
        "- **Because:** to draw",
        "2 wheels that the session lacks, 2 MB together.",
        f"The decision names the digest `{'d' * 64}`.",
        "- **Comes:** colours 3.2, plot 1.0",
        "| plot | 1.0 | 1.5 MB | MIT | 40 days | the request | GHSA-1 CVE-1 (HIGH), fixed in 1.1 | ",
        f"| colours | 3.2 | 500 kB | not stated | unknown | plot |  | `{'a' * 64}` |",
        "## Deny",
    ):
        assert words in text, words
    assert "numpy" not in text


def test_many_reasons_of_one_kind_are_one_line_for_the_rest() -> None:
    many = tuple(wheel(f"part{number}", "1", required_by=("plot",)) for number in range(9))
    text = make(request(replace(PROPOSAL, extension=replace(EXTENSION, wheels=(PLOT, *many))))).to_markdown()
    assert text.count("is not listed") == 4
    assert "- and so for 6 more: part3, part4, part5, part6, part7, part8" in text


def test_the_card_of_a_session_that_is_gone_can_still_be_shown() -> None:
    def gone(session: str) -> str:
        raise EnvdslError.of("session-unknown", "there is no session 's'")

    plane: Any = SimpleNamespace(owner_of=gone, now=lambda: NOW)
    made = card(plane, request())
    assert made.to_json()["owner"] is None
    assert "- **Session:** s, which is gone" in made.to_markdown()


def test_an_isolated_plan_shows_what_the_session_loses() -> None:
    """Issue 4.7: the difference to what the session has."""
    problem = Problem(ProblemKind.CONTRADICTS_BASE, "plot needs numpy<2", ("numpy",), "numpy==2.1")
    made = make(request(replace(PROPOSAL, extension=None, isolated=ISOLATED, problem=problem)))
    assert made.choices == (Choice.ISOLATE, Choice.DENY)
    assert difference(PROPOSAL.present, ISOLATED).removed == ("learn 1.0",)
    text = made.to_markdown()
    assert "- **Changes:** numpy 2.1 -&gt; 1.26" in text
    assert "- **Goes:** learn 1.0" in text
    assert "**It leaves something out.**" in text
    assert made.to_json()["offers"][0]["digest"] == "e" * 64


def test_before_it_is_resolved_a_card_says_so() -> None:
    made = make(request(None))
    assert made.to_json()["verdict"] is None
    assert "It is being resolved" in made.to_markdown()


def test_after_the_decision_a_card_offers_no_choice() -> None:
    decision = Decision("alice", "approve", "d" * 64, NOW, "fine | by me")
    made = make(request(status=Status.APPROVED, decision=decision))
    assert made.to_json()["choices"] == []
    assert made.to_json()["decision"]["by"] == "alice"
    assert [offer["choice"] for offer in made.to_json()["offers"]] == ["approve"]
    assert "- **Decided:** approve, by alice: fine \\| by me" in made.to_markdown()


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text))


def shown(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", rendered(text))).strip()


def test_nothing_that_a_stranger_writes_shapes_the_card() -> None:
    """Issue 4.7: Markdown escapes hostile names and reasons."""
    bad = wheel(HOSTILE, HOSTILE, licence=HOSTILE, required_by=(HOSTILE,), sha256=HOSTILE, uploaded=True)
    plan = Plan("x", HOSTILE, "lock", (bad,), HOSTILE)
    proposal = replace(PROPOSAL, extension=plan, requirements=("plot",))
    hostile = request(proposal, reason=HOSTILE, requester=HOSTILE, session=HOSTILE, requirements=(HOSTILE,))
    hostile = replace(hostile, uploads=({"filename": HOSTILE, "sha256": HOSTILE},))
    text = make(hostile).to_markdown()
    page = rendered(text)
    assert not re.search(r"<(script|a|img|pre|blockquote|ol|s|hr)\b", page), page
    assert page.count("<h1") == 1
    assert len(re.findall("<h2", page)) == 3
    assert page.count("<tr") == 2
    assert page.count("<td") == 8
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert not re.search(r"https?://|www\.|(?<![\\#;&])#\d|@", text)


@given(st.text(max_size=200))
def test_what_is_escaped_is_shown_as_it_is(text: str) -> None:
    visible = "".join(c for c in text if c.isprintable() or c.isspace())
    assert shown(f"x{escape(visible)}y") == f"x{' '.join(visible.split())}y"
    page = rendered(f"- {escape(visible)}\n- end")
    assert page.count("<li>") == 2
    assert shown(page) == f"{' '.join(visible.split())}\nend".strip()


@given(st.text("-+=.)(#1a:/w>|~ `*_\n", max_size=12))
def test_nor_does_what_looks_like_markdown_become_any(text: str) -> None:
    assert re.findall(r"<(\w+)", rendered(f"- {escape(text)}\n")) in (["ul", "li"], ["ul", "li", "p"])
    assert re.findall(r"<(\w+)", rendered(f"**x:** {escape(text)}\n")) == ["p", "strong"]


@pytest.mark.parametrize("character", ["\u202e", "\u200b", "\x00", "\x1b", "\ue000"])
def test_what_can_not_be_seen_is_shown_as_its_number(character: str) -> None:
    assert shown(escape(f"a{character}b")) == f"a\\u{{{ord(character):x}}}b"

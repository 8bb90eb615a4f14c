"""What python_env says, as JSON and as text."""

from __future__ import annotations

from envdsl.app.control.answers import Installed, Refusal, RequestAnswer, StatusAnswer, to_json, to_text

REFUSED = RequestAnswer(
    id="req-1",
    session="s",
    status="refused",
    requirements=("evil",),
    packages=(),
    imports=(),
    reasons=(Refusal("policy-denied", "evil is denied: it is evil.", "evil", "use good"),),
    decided_by="rule",
    next="Ask for something else.",
)


def test_json_has_kebab_case_keys_and_nothing_that_is_empty() -> None:
    """Issue 4.6: answers are short and structured."""
    assert to_json(REFUSED) == {
        "id": "req-1",
        "session": "s",
        "status": "refused",
        "requirements": ("evil",),
        "reasons": (
            {
                "code": "policy-denied",
                "message": "evil is denied: it is evil.",
                "package": "evil",
                "instead": "use good",
            },
        ),
        "decided-by": "rule",
        "next": "Ask for something else.",
    }


def test_text_says_why_and_what_to_do_instead() -> None:
    """Issue 4.6: what was refused and why, and what to do instead."""
    assert to_text(REFUSED) == (
        "req-1: evil: refused, decided by rule.\n"
        "  evil is denied: it is evil. Instead: use good\n"
        "  Ask for something else."
    )


def test_import_names_are_said_where_they_differ_from_the_distribution() -> None:
    """Issue 4.6: how to import what is installed."""
    status = StatusAnswer(
        session="s",
        python="3.12",
        layers=("office",),
        installed=(
            Installed("numpy", "2.1", ("numpy",), "office"),
            Installed("pillow", "11.0", ("PIL",), "office"),
            Installed("stubs", "1", (), "office"),
        ),
        requests=(REFUSED,),
        next="Ask for what is lacking.",
    )
    assert "evil is denied" not in to_text(status), "what has ended takes one line"
    assert to_text(status).splitlines()[:3] == [
        "Session s: Python 3.12, layers office.",
        "Installed (3): numpy 2.1, pillow 11.0 (import PIL), stubs 1.",
        "req-1: evil: refused, decided by rule.",
    ]

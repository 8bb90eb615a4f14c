"""Hints for callers without a command line."""

from __future__ import annotations

import pytest

from envdsl.app.control import hints
from envdsl.app.control.answers import Refusal, RequestAnswer

WAYS = {"app-known": "look at the list"}


@pytest.mark.parametrize(
    ("code", "hint", "said"),
    [
        ("app-known", "`envdsl ls`", "look at the list"),
        ("app-other", "`envdsl build` puts it there", "this takes somebody on the host: `envdsl build` puts it there"),
        ("app-other", "say it with --name", "this takes somebody on the host: say it with --name"),
        ("app-other", "envdsl-core is another package", "envdsl-core is another package"),
        ("app-other", "ask for less", "ask for less"),
        ("app-other", None, None),
    ],
)
def test_a_command_is_named_as_what_the_host_can_do(code: str, hint: str | None, said: str | None) -> None:
    assert hints.elsewhere(code, hint, WAYS) == said


def test_reasons_of_an_answer_have_such_hints_too() -> None:
    reason = Refusal("app-known", "it is not there", instead="`envdsl ls`")
    answer = RequestAnswer("req-1", "s", "failed", ("foo",), (), (), (reason,), None, "Ask again.")
    assert hints.in_request(answer, WAYS).reasons[0].instead == "look at the list"
    assert hints.in_request(answer, {}).reasons[0].instead == "this takes somebody on the host: `envdsl ls`"

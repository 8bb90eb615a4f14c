"""Tokens: who makes them, what their bearers are, when they end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from envdsl.app import sessions
from envdsl.app.control import binding, tokens
from envdsl.errors import EnvdslError, ExitStatus
from envdsl.policy.access import Principal, Role
from tests.app.control.bench import ADMIN, Bench, agent, owner


def test_the_bearer_of_a_token_is_who_it_was_made_for(bench: Bench) -> None:
    """Issue 4.9: scoped to one session, an owner, an administrator, reading."""
    bench.session("s")
    expected = {
        Role.AGENT: Principal(Role.AGENT, "agent:s", "s"),
        Role.OWNER: Principal(Role.OWNER, "alice"),
        Role.ADMINISTRATOR: Principal(Role.ADMINISTRATOR, "alice"),
        Role.READER: Principal(Role.READER, "alice"),
    }
    for role, principal in expected.items():
        session = "s" if role is Role.AGENT else None
        text, record = tokens.create(bench.plane, ADMIN, role=role, name="alice", session=session)
        assert tokens.principal(record) == principal
        found = tokens.find(bench.plane, text)
        assert found is not None
        assert tokens.principal(found) == principal
        checked = tokens.valid(bench.plane, record.id)
        assert checked is not None
        assert tokens.principal(checked) == principal


def test_a_token_ends_and_says_how(bench: Bench) -> None:
    """Issue 4.9: expiring, revocable."""
    text, record = tokens.create(bench.plane, ADMIN, role=Role.READER, name="n", expires=timedelta(days=7))
    other, second = tokens.create(bench.plane, ADMIN, role=Role.READER, name="m")
    assert [tokens.status(bench.plane, item) for item in (record, second)] == ["valid", "valid"]
    bench.clock.forward(days=8)
    assert tokens.find(bench.plane, text) is None
    assert tokens.status(bench.plane, record) == "expired"
    assert tokens.find(bench.plane, other) is not None
    assert tokens.status(bench.plane, tokens.revoke(bench.plane, ADMIN, second.id)) == "revoked"
    assert tokens.find(bench.plane, other) is None
    assert tokens.valid(bench.plane, second.id) is None


def test_an_agents_token_opens_no_later_session_of_the_same_name(bench: Bench) -> None:
    """Issue 4.9: scoped to one session, which may have been somebody else's."""
    bench.session("s")
    bench.session("t")
    of_s, of_t = (tokens.create(bench.plane, ADMIN, role=Role.AGENT, name="a", session=name)[0] for name in "st")
    sessions.remove(bench.project, "s")
    binding.removed(bench.plane, ADMIN, "s")
    bench.session("s")
    assert tokens.find(bench.plane, of_s) is None
    assert tokens.find(bench.plane, of_t) is not None
    assert [event.action for event in bench.events()].count("token.revoked") == 1


def test_a_use_is_written_down_at_most_once_a_minute(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    text, record = tokens.create(bench.plane, ADMIN, role=Role.READER, name="n")

    def used() -> object:
        return tokens.listing(bench.plane, ADMIN)[0].used

    assert used() is None
    tokens.find(bench.plane, text)
    first = used()
    assert first is not None
    tokens.find(bench.plane, text)
    tokens.valid(bench.plane, record.id)
    assert used() == first
    bench.clock.forward(minutes=1)
    tokens.valid(bench.plane, record.id)
    assert used() != first


def test_a_use_that_cannot_be_written_down_keeps_nobody_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _ = tokens.create(bench.plane, ADMIN, role=Role.READER, name="n")

    def busy() -> object:
        raise EnvdslError.of("state-busy", "others write")

    monkeypatch.setattr(bench.plane.state, "transaction", busy)
    assert tokens.find(bench.plane, text) is not None


@pytest.mark.parametrize("who", [agent("s"), owner("alice"), Principal(Role.READER, "monitoring")])
def test_only_administrators_manage_tokens(bench: Bench, who: Principal) -> None:
    bench.session("s")
    _, record = tokens.create(bench.plane, ADMIN, role=Role.READER, name="n")
    for act in (
        lambda: tokens.create(bench.plane, who, role=Role.AGENT, name="n", session="s"),
        lambda: tokens.listing(bench.plane, who),
        lambda: tokens.revoke(bench.plane, who, record.id),
    ):
        with pytest.raises(EnvdslError) as raised:
            act()
        assert (raised.value.code, raised.value.exit_status) == ("app-forbidden", ExitStatus.REFUSED)
    assert tokens.status(bench.plane, tokens.listing(bench.plane, ADMIN)[0]) == "valid"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"role": Role.AGENT, "name": "n"}, "app-token-session"),
        ({"role": Role.OWNER, "name": "n", "session": "s"}, "app-token-session"),
        ({"role": Role.AGENT, "name": "n", "session": "missing"}, "session-unknown"),
        ({"role": Role.READER, "name": " "}, "app-token-name"),
        ({"role": Role.READER, "name": "a\nb"}, "app-token-name"),
        ({"role": Role.READER, "name": "n" * 101}, "app-token-name"),
        ({"role": Role.READER, "name": "n", "expires": timedelta(0)}, "app-token-expires"),
    ],
)
def test_a_token_without_sense_is_refused(bench: Bench, fields: dict[str, object], code: str) -> None:
    bench.session("s")
    with pytest.raises(EnvdslError) as raised:
        tokens.create(bench.plane, ADMIN, **fields)  # type: ignore[arg-type]
    assert (raised.value.code, raised.value.exit_status) == (code, ExitStatus.USAGE)
    assert tokens.listing(bench.plane, ADMIN) == []

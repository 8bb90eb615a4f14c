"""Sessions that are alike share what a request resolves to, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from envdsl.app.control import proposing
from envdsl.state.records import Status
from tests.app.control.bench import Bench
from tests.wheels import make_wheel


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions for which something was really resolved."""
    found: list[str] = []
    real: Callable[..., object] = proposing.propose

    def counting(plane: object, session: object, *more: object) -> object:
        found.append(session.session)  # type: ignore[attr-defined]
        return real(plane, session, *more)

    monkeypatch.setattr(proposing, "propose", counting)
    return found


def test_many_sessions_that_ask_for_the_same_are_resolved_once(light_bench: Bench, resolved: list[str]) -> None:
    """Issue 4.10: many sessions asking at once."""
    bench = light_bench
    names = [f"s{number}" for number in range(5)]
    for name in names:
        bench.session(name)
        bench.ask(name, "tool")
    bench.settle()
    assert resolved == ["s0"]
    for name in names:
        assert bench.env(name).status(name).requests[0].status == "ready"
        (proposal,) = {str(request.proposal["session"]) for request in _requests(bench, name)}
        assert proposal == name


def test_another_binding_catalog_or_need_is_resolved_for_itself(light_bench: Bench, resolved: list[str]) -> None:
    bench = light_bench
    bench.session("a")
    bench.session("b", "core", "extra")
    bench.session("c")
    bench.session("d")
    assert bench.settled("a", "foo").status is Status.READY
    assert bench.settled("b", "foo").status is Status.READY
    assert bench.settled("c", "foo==1").status is Status.READY
    bench.catalog('[deny]\nfoo = "no"\n')
    assert bench.settled("d", "foo").status is Status.REFUSED
    assert resolved == ["a", "b", "c", "d"]


def test_what_cannot_be_resolved_is_looked_for_again(light_bench: Bench, resolved: list[str]) -> None:
    bench = light_bench
    bench.session("s")
    assert bench.settled("s", "later").status is Status.REFUSED
    make_wheel(bench.root / "wheels", "later", "1")
    bench.catalog('[allow]\npackages = ["later"]\n')
    assert bench.settled("s", "later").status is Status.READY
    assert resolved == ["s", "s"]


def _requests(bench: Bench, session: str) -> list[object]:
    with bench.plane.state.reading() as tx:
        return tx.requests.list(bench.plane.store_id, sessions=[session])  # type: ignore[return-value]

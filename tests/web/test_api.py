"""What the API does. That each answer is what the document says, the clients of these tests check themselves."""

from __future__ import annotations

import re
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from envdsl.app.control.plane import ControlPlane
from envdsl.config import WebhookSetting
from envdsl.policy.access import Role
from tests.web.conftest import House, Serve, Service, Token
from tests.wheels import make_wheel

API = "/api/v1"


@pytest.fixture
def session(house: House) -> str:
    """A session that this test may change."""
    name = f"s-{uuid.uuid4().hex[:8]}"
    house.envdsl("session", "create", name, "--layer", "core")
    return name


@pytest.fixture
def owned(session: str, plane: ControlPlane) -> str:
    """The same, Alice's."""
    with plane.state.transaction() as tx:
        tx.sessions.give(plane.store_id, session, "alice", actor="root")
    return session


@pytest.fixture
def working(serve: Serve) -> Service:
    """A service with a worker."""
    return serve(workers=1)


@pytest.fixture
def catalog(plane: ControlPlane, tmp_path: Path) -> Path:
    """A catalog of this test's own, to be written."""
    file, config = tmp_path / "catalog.toml", plane.project.config
    plane.project.config = replace(config, service=replace(config.service, catalog=str(file)))
    return file


def ok(response: httpx.Response) -> Any:
    assert response.status_code < 400, response.text
    return response.json()


def problem(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


# python_env


def test_status_says_what_can_be_imported(service: Service, token: Token) -> None:
    answer = ok(service.client(token(Role.AGENT, session="hers")).get(f"{API}/sessions/hers/status"))
    assert [(item["name"], item["version"]) for item in answer["installed"]] == [("bar", "1.0")]
    assert "requests" not in answer, "nothing empty is told"


def test_what_the_catalog_allows_is_there_when_the_answer_comes(working: Service, token: Token, owned: str) -> None:
    """Issue 4.6: request and wait over HTTP; Issue 4.8: the worker runs inside the service."""
    agent = working.client(token(Role.AGENT, session=owned))
    asked = agent.post(f"{API}/sessions/{owned}/requests", params={"wait": 30}, json={"requirements": ["foo==1"]})
    answer = ok(asked)
    assert asked.status_code == 202
    assert (answer["status"], answer["packages"], answer["decided-by"]) == ("ready", ["foo 1"], "rule")
    installed = {item["name"] for item in ok(agent.get(f"{API}/sessions/{owned}/status"))["installed"]}
    assert installed == {"foo", "bar"}
    history = ok(agent.get(f"{API}/sessions/{owned}/history"))["bindings"]
    assert [item["cause"] for item in history] == ["request", "create"]

    owner = working.client(token(Role.OWNER, "alice"))
    undone = ok(owner.post(f"{API}/sessions/{owned}/undo"))  # no body has to be sent where nothing has to be said
    assert undone["packages"] == [{"name": "foo", "before": "1", "after": None}]
    assert problem(agent.post(f"{API}/sessions/{owned}/undo", json={})) == (403, "web-forbidden")


def test_what_nobody_listed_waits_for_its_owner_who_decides_over_the_digest_that_was_shown(
    working: Service, token: Token, owned: str
) -> None:
    """Issue 4.7: who may decide, and over what."""
    agent, owner = working.client(token(Role.AGENT, session=owned)), working.client(token(Role.OWNER, "alice"))
    body = {"requirements": ["baz"], "reason": "to try", "key": "once"}
    answer = ok(agent.post(f"{API}/sessions/{owned}/requests", params={"wait": 30}, json=body))
    assert answer["status"] == "pending"
    again = ok(agent.post(f"{API}/sessions/{owned}/requests", json=body))
    assert again["id"] == answer["id"], "asking again is the same request"

    request = f"{API}/requests/{answer['id']}"
    [waiting] = ok(owner.get(f"{API}/requests", params={"status": "pending", "session": owned}))["requests"]
    assert (waiting["id"], waiting["verdict"], waiting["reason"]) == (answer["id"], "needs-person", "to try")
    assert {"approve", "deny"} <= set(waiting["choices"])
    assert "proposal" not in waiting

    decision = {"choice": "approve", "digest": waiting["digest"], "comment": "fine"}
    assert problem(agent.post(f"{request}/decision", json=decision)) == (403, "web-forbidden")
    other = owner.post(f"{request}/decision", json={**decision, "digest": "0" * 64})
    assert problem(other) == (409, "app-digest-other")
    assert problem(owner.post(f"{request}/decision", json={"choice": "approve"})) == (400, "app-digest-missing")
    decided = ok(owner.post(f"{request}/decision", json=decision))
    assert (decided["status"], decided["decision"]["by"]) == ("approved", "alice")
    assert problem(owner.post(f"{request}/decision", json={"choice": "deny"})) == (409, "state-conflict")

    ready = ok(agent.get(f"{API}/sessions/{owned}/requests/{answer['id']}", params={"wait": 30}))
    assert (ready["status"], ready["decided-by"], ready["imports"]) == ("ready", "alice", ["baz"])
    assert ok(owner.get(request))["layer"].startswith("x-")


def test_waiting_ends_with_the_time_and_holds_nobody_else_up(service: Service, token: Token) -> None:
    agent = service.client(token(Role.AGENT, session="hers"))
    asked = ok(agent.post(f"{API}/sessions/hers/requests", json={"requirements": ["foo"]}))
    began = time.monotonic()
    answer = ok(agent.get(f"{API}/sessions/hers/requests/{asked['id']}", params={"wait": 0.3}))
    assert answer["status"] == "pending"
    assert 0.25 < time.monotonic() - began < 5
    assert problem(agent.get(f"{API}/sessions/hers/requests/{asked['id']}", params={"wait": 3600}))[0] == 400
    assert ok(agent.post(f"{API}/sessions/hers/requests/{asked['id']}/cancel"))["status"] == "cancelled"
    assert problem(agent.post(f"{API}/sessions/hers/requests/{asked['id']}/cancel")) == (409, "state-conflict")


def test_a_wheel_of_ones_own_is_checked_and_a_person_decides(
    working: Service, token: Token, owned: str, tmp_path: Path
) -> None:
    """Issue 4.2: uploaded .whl files."""
    wheel = make_wheel(tmp_path, "mine", "1.0")
    agent = working.client(token(Role.AGENT, session=owned))
    place = f"{API}/sessions/{owned}/uploads"
    raw = ok(agent.post(place, params={"filename": wheel.name}, content=wheel.read_bytes()))
    form = ok(agent.post(place, files={"file": (wheel.name, wheel.open("rb"))}))
    assert raw["upload"] == form["upload"]
    assert (raw["report"]["name"], raw["report"]["imports"]) == ("mine", ["mine"])

    body = {"requirements": [], "uploads": [raw["upload"]]}
    answer = ok(agent.post(f"{API}/sessions/{owned}/requests", params={"wait": 30}, json=body))
    assert answer["status"] == "pending", "never by rule"

    unknown = {**raw["upload"], "sha256": "0" * 64}
    response = agent.post(f"{API}/sessions/{owned}/requests", json={"uploads": [unknown]})
    assert problem(response) == (404, "app-upload-unknown")


def test_a_session_has_sent_enough_that_nobody_asked_for(
    service: Service, token: Token, owned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envdsl.app.control.uploads.MOST_UNUSED", 1)
    agent = service.client(token(Role.AGENT, session=owned))
    place = f"{API}/sessions/{owned}/uploads"
    for version, status in (("7.1", 201), ("7.2", 429)):
        wheel = make_wheel(tmp_path, "heap", version)
        response = agent.post(place, params={"filename": wheel.name}, content=wheel.read_bytes())
        assert response.status_code == status
    assert problem(response) == (429, "app-too-many-uploads")


@pytest.mark.parametrize("name", ["../x-1-py3-none-any.whl", "a/b-1-py3-none-any.whl", "x.tar.gz", "x\x00.whl", ""])
def test_names_of_wheels_that_lead_elsewhere_are_refused(
    service: Service, token: Token, name: str, tmp_path: Path
) -> None:
    """Issue 4.9: safe file names."""
    client = service.client(token(Role.OWNER, "alice"))
    response = client.post(f"{API}/uploads", params={"filename": name}, content=b"x")
    assert response.status_code == 400, response.text


def test_a_wheel_that_a_build_would_refuse_is_refused_with_the_reason(service: Service, token: Token) -> None:
    client = service.client(token(Role.OWNER, "alice"))
    response = client.post(f"{API}/uploads", params={"filename": "x-1-py3-none-any.whl"}, content=b"no zip")
    assert response.status_code == 422
    assert response.json()["code"].startswith("intake-")
    assert problem(client.post(f"{API}/uploads", content=b"x")) == (400, "web-invalid-upload")


def test_uploads_have_a_limit_of_their_own(serve: Serve, token: Token, tmp_path: Path) -> None:
    """Issue 4.9: upload limits."""
    service = serve(max_body=1000, max_upload=5000)
    client = service.client(token(Role.OWNER, "alice"))
    wheel = make_wheel(tmp_path, "mine", "1.0", files={"mine.py": "x" * 3000}, compression=0)
    assert ok(client.post(f"{API}/uploads", params={"filename": wheel.name}, content=wheel.read_bytes()))
    for content in (b"x" * 6000, (b"x" * 1000 for _ in range(6))):
        response = client.post(f"{API}/uploads", params={"filename": wheel.name}, content=content)
        assert problem(response) == (413, "web-body-too-large")


# Sessions


def test_everybody_is_shown_what_is_theirs(service: Service, token: Token) -> None:
    def seen(role: Role, name: str = "x", session: str | None = None) -> set[str]:
        answer = ok(service.client(token(role, name, session)).get(f"{API}/sessions"))
        return {item["name"] for item in answer["sessions"]}

    assert seen(Role.AGENT, session="hers") == {"hers"}
    assert seen(Role.OWNER, "alice") == {"hers"}
    assert seen(Role.OWNER, "carol") == set()
    assert seen(Role.READER) >= {"hers", "his"}
    assert seen(Role.ADMINISTRATOR) >= {"hers", "his"}


def test_sessions_are_listed_by_the_page(service: Service, token: Token) -> None:
    reader = service.client(token(Role.READER))
    names: list[str] = []
    while True:
        after = {"after": names[-1]} if names else {}
        answer = ok(reader.get(f"{API}/sessions", params={"limit": 1, **after}))
        names += [item["name"] for item in answer["sessions"]]
        if not answer["more"]:
            break
    assert names == sorted(set(names))
    assert {"hers", "his"} <= set(names)


def test_a_session_shows_its_layers_and_packages(service: Service, token: Token) -> None:
    answer = ok(service.client(token(Role.READER)).get(f"{API}/sessions/hers"))
    assert (answer["name"], answer["owner"]) == ("hers", "alice")
    assert [(layer["name"], layer["kind"], layer["packages"]) for layer in answer["layers"]] == [("core", "base", 1)]
    assert answer["installed"][0]["name"] == "bar"


def test_a_rebase_says_beforehand_what_it_would_change(service: Service, token: Token, owned: str) -> None:
    owner = service.client(token(Role.OWNER, "alice"))
    body = {"add": ["one"], "dry-run": True}
    answer = ok(owner.post(f"{API}/sessions/{owned}/rebase", json=body))
    assert answer["packages"] == [{"name": "foo", "before": None, "after": "1"}]
    assert len(ok(owner.get(f"{API}/sessions/{owned}"))["layers"]) == 1, "nothing has changed"
    other = owner.post(f"{API}/sessions/{owned}/rebase", json={"add": ["one"], "digest": "0" * 64})
    assert problem(other) == (409, "app-rebase-other")
    assert len(ok(owner.get(f"{API}/sessions/{owned}"))["layers"]) == 1, "nothing has changed"
    changed = ok(owner.post(f"{API}/sessions/{owned}/rebase", json={"add": ["one"], "digest": answer["digest"]}))
    assert changed["digest"] == answer["digest"]
    assert changed["changes"] == answer["changes"]
    assert len(ok(owner.get(f"{API}/sessions/{owned}"))["layers"]) == 2


def test_a_workspace_is_not_to_be_chosen_over_the_network(service: Service, token: Token, owned: str) -> None:
    """A session's owner could read any directory of the host through it."""
    owner = service.client(token(Role.OWNER, "alice"))
    response = owner.post(f"{API}/sessions/{owned}/rebase", json={"workspace": "/"})
    assert problem(response) == (422, "web-invalid-body")


def test_a_session_can_be_sealed(service: Service, token: Token, owned: str) -> None:
    """Issue 4.4: one signed-off JSON."""
    seal = ok(service.client(token(Role.OWNER, "alice")).post(f"{API}/sessions/{owned}/seal"))
    assert (seal["session"], seal["by"]) == (owned, "alice")
    assert seal["signature"]


# Layers, store, catalog


def test_layers_tell_who_uses_them_as_far_as_the_caller_may_know(service: Service, token: Token) -> None:
    reader, alice = service.client(token(Role.READER)), service.client(token(Role.OWNER, "alice"))
    core = next(layer for layer in ok(reader.get(f"{API}/layers"))["layers"] if "core" in layer["names"])
    assert {"hers", "his"} <= set(core["sessions"])
    contents = ok(reader.get(f"{API}/layers/{core['id']}"))
    assert [package["name"] for package in contents["packages"]] == ["bar"]
    users = ok(alice.get(f"{API}/layers/{core['id']}/users"))
    assert "hers" in users["sessions"]
    assert "his" not in users["sessions"]
    assert users["others"] >= 1
    assert not any("his" in root for root in users["held-by"])
    assert problem(reader.get(f"{API}/layers/x-{'0' * 32}")) == (404, "app-unknown-layer")


def test_garbage_is_shown_before_it_goes(service: Service, token: Token) -> None:
    admin = service.client(token(Role.ADMINISTRATOR, "root"))
    preview = ok(admin.get(f"{API}/gc", params={"older-than": 86400}))
    assert preview["dry-run"] is True
    assert ok(admin.post(f"{API}/gc", json={"older-than": 86400}))["dry-run"] is False


def test_the_catalog_explains_itself(service: Service, token: Token) -> None:
    reader = service.client(token(Role.READER))
    assert ok(reader.get(f"{API}/catalog"))["rules"]
    explained = ok(reader.get(f"{API}/catalog/FOO", params={"version": "1"}))
    assert (explained["package"], explained["treatment"], explained["certain"]) == ("foo", "allow", True)
    assert ok(reader.get(f"{API}/catalog/baz", params={"session": "hers"}))["treatment"] == "ask"


def test_the_catalog_is_given_as_data_without_the_text_of_its_file(
    service: Service, token: Token, catalog: Path
) -> None:
    catalog.write_text(
        '# a remark\n[allow]\npackages = ["foo>=1"]\n[deny]\nevil = "it phones home"\n'
        '[limits]\nminimum-age = "7 days"\nmax-wheel-size = "2 MB"\n[groups]\nweb = ["bar"]\n[[session]]\n'
        'pattern = "his*"\nlimits = { max-wheel-size = "none" }\n'
    )
    reader = service.client(token(Role.READER))
    answer = reader.get(f"{API}/catalog")
    assert "a remark" not in answer.text
    found, rules = ok(answer), ok(answer)["rules"]
    assert rules["allow"] == [{"entry": "foo>=1", "group": None, "reason": None, "place": f"{catalog}:3:13"}]
    assert [(entry["entry"], entry["reason"]) for entry in rules["deny"]] == [("evil", "it phones home")]
    assert (rules["minimum-age"], rules["max-wheel-size"]) == (7 * 86400, 2_000_000)
    assert "max-closure-size" not in rules
    assert [entry["entry"] for entry in found["groups"]["web"]] == ["bar"]
    (override,) = found["sessions"]
    assert (override["pattern"], override["rules"]["max-wheel-size"]) == ("his*", None)
    his = ok(reader.get(f"{API}/catalog", params={"session": "his"}))
    assert (his["session"], his["rules"]["max-wheel-size"], his["sessions"]) == ("his", None, [])
    explained = reader.get(f"{API}/catalog/bar")
    assert "a remark" not in explained.text
    assert ok(explained)["limits"]["minimum-age-hours"] == 168
    assert [entry["group"] for entry in ok(explained)["available"]] == ["web"]


# Audit, tokens, health


def test_the_audit_log_is_read_newest_first_and_verified(service: Service, token: Token) -> None:
    reader = service.client(token(Role.READER))
    events = ok(reader.get(f"{API}/audit", params={"limit": 2}))["events"]
    assert [event["action"] for event in events] == ["token.created", "session.owned"]
    older = ok(reader.get(f"{API}/audit", params={"before": events[-1]["number"]}))["events"]
    assert all(event["number"] < events[-1]["number"] for event in older)
    assert ok(reader.get(f"{API}/audit/verification"))["sound"] is True


def test_a_token_is_shown_once_and_works_until_it_is_revoked(service: Service, token: Token) -> None:
    admin = service.client(token(Role.ADMINISTRATOR, "root"))
    body = {"role": "agent", "name": "bot", "session": "his", "lifetime": 3600}
    made = ok(admin.post(f"{API}/tokens", json=body))
    assert ok(service.client(made["token"]).get(f"{API}/me"))["session"] == "his"
    listing = admin.get(f"{API}/tokens")
    assert made["token"] not in listing.text
    assert made["record"]["id"] in {item["id"] for item in ok(listing)["tokens"]}
    assert ok(admin.delete(f"{API}/tokens/{made['record']['id']}"))["revoked"]
    assert service.client(made["token"]).get(f"{API}/me").status_code == 401
    assert problem(admin.delete(f"{API}/tokens/tok-nothing")) == (404, "state-unknown-token")
    assert problem(admin.post(f"{API}/tokens", json={**body, "session": "nowhere"})) == (404, "session-unknown")


def test_health_says_what_does_not_work(serve: Serve, token: Token) -> None:
    """Issue 4.10: health."""
    idle = serve(workers=0)
    answer = ok(idle.client(token(Role.READER)).get(f"{API}/health"))
    checks = {check["name"]: check for check in answer["checks"]}
    assert set(checks) == {"database", "store", "sandbox", "workers", "catalog", "webhook"}
    assert checks["database"]["sound"]
    assert (answer["sound"], checks["workers"]["sound"]) == (False, False)
    assert "envdsl worker" in checks["workers"]["hint"]


def test_health_says_where_the_catalog_has_its_first_mistake(service: Service, token: Token, catalog: Path) -> None:
    reader = service.client(token(Role.READER))

    def check() -> Any:
        return next(item for item in ok(reader.get(f"{API}/health"))["checks"] if item["name"] == "catalog")

    assert check()["sound"], "without one, a person decides"
    catalog.write_text("[allow]\npackages = []\n")
    assert check()["sound"]
    catalog.write_text("[allow]\npackages = []\n[alow]\n[denny]\n")
    found = check()
    assert not found["sound"]
    assert found["detail"].startswith(f"{catalog}:3:2: ")
    assert "alow" in found["detail"]
    assert "1 more" in found["detail"]
    assert "envdsl catalog check" in found["hint"]


def test_health_and_metrics_say_what_the_webhook_was_not_told(
    service: Service, plane: ControlPlane, token: Token, tmp_path: Path
) -> None:
    reader, secret, config = service.client(token(Role.READER)), tmp_path / "secret", plane.project.config

    def check() -> tuple[bool, str]:
        checks = ok(reader.get(f"{API}/health"))["checks"]
        found = next(item for item in checks if item["name"] == "webhook")
        return found["sound"], found["detail"]

    assert check() == (True, "none is set")
    setting = WebhookSetting("http://127.0.0.1:1/hook", secret)
    plane.project.config = replace(config, service=replace(config.service, webhook=setting))
    sound, detail = check()
    assert (sound, str(secret) in detail) == (False, True), "the secret file is not there"
    secret.write_text("correct horse battery staple\n")
    assert check() == (True, "0 to deliver")
    with plane.state.transaction() as tx:
        event = tx.webhooks.put(plane.store_id, "request.waiting", {})
    assert check()[0], "a new one is no failure"
    with plane.state.transaction() as tx:
        tx.webhooks.retry(event.id, plane.now(), "it answered 503")
    sound, detail = check()
    assert (sound, detail.startswith("1 to deliver, the oldest for ")) == (False, True)
    assert "1 failed" in detail
    text = reader.get("/metrics").text
    assert 'envdsl_webhook_undelivered{state="failing"} 1.0' in text
    assert 'envdsl_webhook_undelivered{state="new"} 0.0' in text
    assert re.search(r"^envdsl_webhook_oldest_seconds [0-9.e-]+$", text, re.M)


def test_a_service_that_cannot_sign_says_so_when_it_starts(
    serve: Serve, plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(plane.project.reporter, "warn", lambda found: warnings.append(found.message))
    setting, config = WebhookSetting("http://127.0.0.1:1/hook", tmp_path / "nowhere"), plane.project.config
    plane.project.config = replace(config, service=replace(config.service, webhook=setting))
    serve(workers=1)
    assert any("nowhere cannot be read" in warning for warning in warnings)


def test_health_is_sound_with_a_worker(working: Service, token: Token) -> None:
    reader, end = working.client(token(Role.READER)), time.monotonic() + 20
    while not (answer := ok(reader.get(f"{API}/health")))["sound"] and time.monotonic() < end:
        time.sleep(0.1)
    assert answer["sound"], answer

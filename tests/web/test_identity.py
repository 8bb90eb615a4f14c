"""Who is asking."""

from __future__ import annotations

import os
import re
import socket
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from envdsl.app.control import tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Role
from envdsl.web.forgery import FIELD, HEADER
from envdsl.web.signing_in import local_path
from tests.web.conftest import ADMINISTRATOR, Serve, Service, Token

ME = "/api/v1/me"


def test_the_kernel_says_who_is_at_the_unix_socket(service: Service, plane: ControlPlane) -> None:
    """Issue 4.9: peer credentials on a Unix socket are the default without configuration."""
    answer = service.local().get(ME)
    expected = plane.principal_of_user(os.getuid())
    assert answer.json() == {"name": expected.name, "role": expected.role.value, "session": None}


def test_on_tcp_nobody_is_known_without_a_token(service: Service) -> None:
    answer = service.client().get(ME)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "web-unauthenticated"


def test_a_client_cannot_say_which_user_it_is(service: Service) -> None:
    """Nothing of a request's bytes reaches the place where the uid of the socket's peer stands."""
    forged = {"peer_uid": "0", "peer-uid": "0", "X-Peer-Uid": "0", "Remote-User": "root", "X-Forwarded-User": "root"}
    assert service.client().get(ME, headers=forged, params={"peer_uid": 0}).status_code in (400, 401)
    assert service.client().get(ME, headers=forged).status_code == 401


def test_a_token_goes_before_the_user_of_the_socket(service: Service, token: Token) -> None:
    """What carries less authority is never given more."""
    text = token(Role.AGENT, session="hers")
    answer = service.local().get(ME, headers={"Authorization": f"Bearer {text}"})
    assert answer.json() == {"name": "agent:hers", "role": "agent", "session": "hers"}


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto"]
)
def test_a_proxy_at_the_socket_lends_nobody_its_user(service: Service, header: str) -> None:
    assert service.local().get(ME, headers={header: "192.0.2.7"}).status_code == 401


def test_peer_credentials_can_be_switched_off(serve: Serve) -> None:
    assert serve(trust_peer=False).local().get(ME).status_code == 401


def test_tokens_that_are_none_are_refused_even_at_the_socket(service: Service) -> None:
    for value in ("Bearer envdsl_d_" + "0" * 64, "Bearer", "Basic cm9vdDo=", "envdsl"):
        answer = service.local().get(ME, headers={"Authorization": value})
        assert (answer.status_code, answer.json()["code"]) == (401, "web-token-invalid"), value


def test_revoked_and_expired_tokens_open_nothing(service: Service, plane: ControlPlane, token: Token) -> None:
    short = token(Role.READER, "short", milliseconds=1)
    text, record = tokens.create(plane, ADMINISTRATOR, role=Role.READER, name="gone")
    client = service.client(text)
    assert client.get(ME).status_code == 200
    tokens.revoke(plane, ADMINISTRATOR, record.id)
    assert client.get(ME).status_code == 401, "a revoked token is refused by the next request"
    assert service.client(short).get(ME).status_code == 401


def test_invalid_tokens_are_slowed_down_by_address_and_valid_ones_never(serve: Serve, token: Token) -> None:
    from envdsl.web.settings import Rate

    service = serve(failures=Rate(per_second=0.01, burst=3))
    wrong = service.client("envdsl_d_" + "1" * 64)
    assert [wrong.get(ME).status_code for _ in range(4)] == [401, 401, 401, 429]
    answer = wrong.get(ME)
    assert int(answer.headers["retry-after"]) > 1
    assert service.client().get(ME, headers={"Authorization": "Basic cm9vdDo="}).status_code == 429
    right = service.client(token(Role.READER))
    assert right.get(ME).status_code == 200, "on loopback everybody shares an address"
    assert sign_in(service.client(), token(Role.READER, "browser")).headers["location"] == "/"
    assert wrong.get(ME).status_code == 429
    assert service.local().get(ME).status_code == 200, "other addresses are not concerned"


def test_too_many_requests_of_one_principal_are_refused_and_of_others_not(serve: Serve, token: Token) -> None:
    from envdsl.web.settings import Rate

    service = serve(requests=Rate(per_second=0.01, burst=3))
    one, other = (service.client(token(Role.READER, name)) for name in ("one", "other"))
    assert [one.get(ME).status_code for _ in range(4)] == [200, 200, 200, 429]
    assert other.get(ME).status_code == 200


# Browsers


def sign_in(client: httpx.Client, token: str, **more: str) -> httpx.Response:
    return client.post("/login", data={"token": token, **more}, headers={"Origin": str(client.base_url).rstrip("/")})


def test_a_browser_trades_a_token_for_a_cookie_that_scripts_and_other_sites_cannot_use(
    service: Service, token: Token
) -> None:
    client = service.client()
    answer = sign_in(client, token(Role.OWNER, "alice"), next="/requests?status=pending")
    assert (answer.status_code, answer.headers["location"]) == (303, "/requests?status=pending")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "envdsl_" not in cookie, "the cookie is not the token"
    assert client.get(ME).json()["name"] == "alice"


def test_behind_tls_the_cookie_is_bound_to_the_host_and_to_tls(serve: Serve, token: Token) -> None:
    answer = sign_in(serve(https=True).client(), token(Role.READER))
    assert re.match(r"__Host-envdsl=[^;]+; .*Secure", answer.headers["set-cookie"])
    assert "max-age" in answer.headers["strict-transport-security"]


def test_a_wrong_token_signs_nobody_in_and_is_not_sent_back(service: Service) -> None:
    client = service.client()
    wrong = "envdsl_d_" + "2" * 64
    answer = sign_in(client, wrong, next="/layers")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?failed=web-token-invalid&next=/layers"
    assert "set-cookie" not in answer.headers
    assert client.get(ME).status_code == 401


def test_a_login_ends_when_its_token_is_revoked(service: Service, plane: ControlPlane) -> None:
    text, record = tokens.create(plane, ADMINISTRATOR, role=Role.READER, name="reader")
    client = service.client()
    sign_in(client, text)
    assert client.get(ME).status_code == 200
    tokens.revoke(plane, ADMINISTRATOR, record.id)
    assert client.get(ME).status_code == 401


def test_a_login_ends_by_logout_by_idleness_and_by_age(serve: Serve, token: Token) -> None:
    service = serve(login_lifetime=100, login_idle=50)
    now = [0.0]
    service.app.state.logins._clock = lambda: now[0]
    text = token(Role.READER)

    def signed_in() -> httpx.Client:
        client = service.client()
        assert sign_in(client, text).status_code == 303
        return client

    idle, busy, leaving = signed_in(), signed_in(), signed_in()
    for now[0] in (40, 80):
        assert busy.get(ME).status_code == 200
    assert idle.get(ME).status_code == 401
    now[0] = 101
    assert busy.get(ME).status_code == 401

    leaving = signed_in()
    cookie = leaving.cookies["envdsl"]
    csrf = service.app.state.logins.find(cookie).csrf
    assert leaving.post("/logout", headers={HEADER: csrf}).headers["location"] == "/login"
    assert service.client(cookies={"envdsl": cookie}).get(ME).status_code == 401, "the cookie is worth nothing now"


def test_cookies_are_kept_as_digests(service: Service, token: Token) -> None:
    client = service.client()
    sign_in(client, token(Role.READER))
    assert client.cookies["envdsl"] not in repr(service.app.state.logins.__dict__)


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil.example", "", "x", "/a\\b"]
)
def test_after_a_login_nobody_is_sent_elsewhere(wanted: str) -> None:
    assert local_path(wanted) == "/"


# Forged requests


@pytest.fixture
def signed_in(service: Service, token: Token) -> httpx.Client:
    client = service.client()
    sign_in(client, token(Role.ADMINISTRATOR, "root"))
    return client


def csrf(service: Service, client: httpx.Client) -> str:
    return str(service.app.state.logins.find(client.cookies["envdsl"]).csrf)


def test_a_cookie_alone_changes_nothing(service: Service, signed_in: httpx.Client) -> None:
    """Issue 4.9: CSRF protection."""
    body = {"role": "reader", "name": "x"}
    refused = signed_in.post("/api/v1/tokens", json=body)
    assert (refused.status_code, refused.json()["code"]) == (403, "web-forged")
    assert signed_in.post("/api/v1/tokens", json=body, headers={HEADER: "guess"}).status_code == 403
    made = signed_in.post("/api/v1/tokens", json=body, headers={HEADER: csrf(service, signed_in)})
    assert made.status_code == 201


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_what_another_site_sends_is_refused_even_with_the_right_token(
    service: Service, signed_in: httpx.Client, headers: dict[str, str]
) -> None:
    body = {"role": "reader", "name": "x"}
    answer = signed_in.post("/api/v1/tokens", json=body, headers={**headers, HEADER: csrf(service, signed_in)})
    assert (answer.status_code, answer.json()["code"]) == (403, "web-forged")


def test_nobody_is_signed_in_by_another_site(service: Service, token: Token) -> None:
    """Login CSRF: a victim who works in the attacker's account gives away what it does there."""
    data = {"token": token(Role.READER)}
    answer = service.client().post("/login", data=data, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_form_carries_the_token_as_its_first_field(service: Service, signed_in: httpx.Client) -> None:
    value = csrf(service, signed_in)
    late = signed_in.post("/logout", data={"other": "1", FIELD: value}, headers={"Accept": "text/html"})
    assert late.status_code == 403
    assert signed_in.post("/logout", data={FIELD: value, "other": "1"}).status_code == 303


def test_a_browser_behind_a_forwarded_socket_needs_the_token_and_a_program_does_not(service: Service) -> None:
    """`ssh -L 8080:envdsl.sock` gives every page in that browser the user's authority."""
    body = {"role": "reader", "name": "x"}
    local = service.local()
    assert local.post("/api/v1/tokens", json=body).status_code == 201
    for headers in ({"Origin": "http://envdsl"}, {"Sec-Fetch-Site": "same-origin"}):
        assert local.post("/api/v1/tokens", json=body, headers=headers).status_code == 403
    foreign = {"Origin": "https://evil.example"}
    assert local.post("/api/v1/tokens", json=body, headers=foreign).status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "[::1",
        "localhost@evil.example",
        "me@localhost",
        "localhost/static/?",
    ],
)
def test_a_name_that_was_rebound_to_this_machine_is_refused(service: Service, token: Token, host: str) -> None:
    answer = service.client(token(Role.READER)).get(ME, headers={"Host": host})
    assert answer.status_code in (400, 421), host


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8750", "127.0.0.1", "[::1]:99", "envdsl"])
def test_names_of_this_machine_are_accepted(service: Service, token: Token, host: str) -> None:
    assert service.client(token(Role.READER)).get(ME, headers={"Host": host}).status_code == 200


def test_a_socket_that_was_left_behind_is_replaced_and_one_in_use_is_not(tmp_path: Path) -> None:
    from envdsl.errors import EnvdslError
    from envdsl.web import listening

    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listening.listen_unix(path):
        assert path.stat().st_mode & 0o777 == 0o660
        with pytest.raises(EnvdslError) as caught:
            listening.listen_unix(path)
        assert caught.value.code == "web-socket-in-use"
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvdslError) as caught:
        listening.listen_unix(tmp_path / "file")
    assert caught.value.code == "web-socket"
    assert (tmp_path / "file").exists()


def test_the_use_of_a_token_is_written_down_apart_from_what_it_is_used_for(
    service: Service, plane: ControlPlane
) -> None:
    text, record = tokens.create(plane, ADMINISTRATOR, role=Role.READER, name="r", expires=timedelta(hours=1))
    with plane.state.transaction():  # somebody else writes: a reader waits for nobody
        assert service.client(text).get(ME).status_code == 200
    service.app.state.uses.write()
    [used] = [item for item in tokens.listing(plane, ADMINISTRATOR) if item.id == record.id]
    assert used.used is not None

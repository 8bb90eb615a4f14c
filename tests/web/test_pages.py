"""The pages as HTML: what holds of every one of them, without a browser."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from envdsl.app import sessions
from envdsl.app.control import asking, tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Principal, Role
from envdsl.web import pages
from envdsl.web.pages.routes import PAGES, home
from tests.web.conftest import ADMINISTRATOR, Service, Token

STATIC = Path(pages.__path__[0]).parent / "static"
AGENT = Principal(Role.AGENT, "agent:hers", "hers")


class Forms(HTMLParser):
    """The forms of a page: method, action, names of fields in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append((values.get("method", "get"), values["action"], []))
        elif tag in ("input", "select", "textarea", "button") and "name" in values:
            self.found[-1][2].append(values["name"])


@pytest.fixture
def administrator(service: Service, token: Token) -> httpx.Client:
    return service.client(token(Role.ADMINISTRATOR, "root"))


@pytest.fixture
def signed_in(service: Service, token: Token) -> Iterator[httpx.Client]:
    client = service.client()
    client.post("/login", data={"token": token(Role.ADMINISTRATOR, "root"), "next": "/"})
    return client


def paths(plane: ControlPlane) -> list[str]:
    record = asking.request(plane, AGENT, "hers", ["baz"])
    layer = plane.project.store.paths("layer")[0].path.rpartition("/")[2]
    filled = {"request": record.id, "session": "hers", "layer": layer}
    return [page.path.format(**filled) for page in PAGES if page.method == "GET" and page.view is not home]


def test_the_first_field_of_every_form_that_changes_something_proves_that_we_made_it(
    plane: ControlPlane, signed_in: httpx.Client
) -> None:
    count = 0
    for path in paths(plane):
        forms = Forms()
        forms.feed(signed_in.get(path).text)
        for method, action, names in forms.found:
            if method == "post":
                assert names[0] == "csrf", f"{path}: {action}"
                count += 1
    assert count > 20


def test_every_form_leads_to_a_route_of_its_method(plane: ControlPlane, signed_in: httpx.Client) -> None:
    routes = [(page.method, re.compile(re.sub(r"{\w+}", "[^/]+", page.path))) for page in PAGES]
    routes += [("POST", re.compile("/logout")), ("POST", re.compile("/preferences"))]
    for path in paths(plane):
        forms = Forms()
        forms.feed(signed_in.get(path).text)
        for method, action, _ in forms.found:
            assert any(m == method.upper() and p.fullmatch(action) for m, p in routes), f"{path}: {method} {action}"


def test_what_people_and_agents_wrote_is_text_and_never_markup(
    plane: ControlPlane, administrator: httpx.Client
) -> None:
    record = asking.request(plane, AGENT, "hers", ["baz"], reason='<img src=x onerror="alert(1)">')
    text = administrator.get(f"/requests/{record.id}").text
    assert "<img" not in text
    assert "&lt;img src=x onerror=" in text
    assert "<script>" not in administrator.get("/requests?session=%3Cscript%3E").text
    assert "<script>" not in administrator.get("/catalog?package=%3Cscript%3E&version=%3Cscript%3E").text


def test_a_message_after_a_redirect_is_one_of_ours(administrator: httpx.Client) -> None:
    assert "Approved. It will be built now." in administrator.get("/?done=approved").text
    assert "Call+this+number" not in (text := administrator.get("/?done=Call+this+number").text)
    assert "Call this number" not in text


def test_a_request_whose_session_is_gone_can_still_be_read(plane: ControlPlane, administrator: httpx.Client) -> None:
    sessions.create(plane.project, "brief", ["core"], None)
    record = asking.request(plane, Principal(Role.AGENT, "agent:brief", "brief"), "brief", ["baz"])
    sessions.remove(plane.project, "brief")
    answer = administrator.get(f"/requests/{record.id}")
    assert answer.status_code == 200
    assert "baz" in answer.text
    assert "Decide" not in answer.text


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/health", "/"),
        ("/requests/some-id/decision", "/requests/some-id"),
        ("/sessions/hers/rebase", "/sessions/hers"),
        ("/audit/verify", "/audit"),
        ("/tokens/some-id/revoke", "/tokens"),
        ("/upload/request", "/upload"),
    ],
)
def test_an_answer_to_a_form_that_is_loaded_again_leads_to_where_the_form_was(
    administrator: httpx.Client, path: str, place: str
) -> None:
    answer = administrator.get(path)
    assert (answer.status_code, answer.headers["location"]) == (303, place)


def test_many_sessions_are_shown_by_the_hundred_and_found_by_their_names(
    plane: ControlPlane, administrator: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envdsl.web.pages.sessions._PAGE", 1)
    first = administrator.get("/sessions").text
    assert 'href="/sessions/hers"' in first
    assert 'href="/sessions/his"' not in first
    after = re.search(r'href="(/sessions\?[^"]+)"', first)
    assert after is not None
    assert 'href="/sessions/his"' in administrator.get(after[1].replace("&amp;", "&")).text
    assert 'href="/sessions/his"' in administrator.get("/sessions?name=is").text


def test_a_page_that_looks_again_gets_nothing_until_the_state_has_changed(
    plane: ControlPlane, administrator: httpx.Client
) -> None:
    record = asking.request(plane, AGENT, "hers", ["baz"])
    assert administrator.get(f"/requests/{record.id}?seen=resolving").status_code == 204
    asking.cancel(plane, ADMINISTRATOR, record.id)
    changed = administrator.get(f"/requests/{record.id}?seen=resolving")
    assert changed.status_code == 200
    assert "It was taken back." in changed.text


def test_an_error_is_a_page_in_the_visitors_language(administrator: httpx.Client) -> None:
    answer = administrator.get("/layers/x-none", headers={"Accept-Language": "zh-CN"})
    assert answer.status_code == 404
    assert answer.headers["content-language"] == "zh-Hans"
    assert "找不到页面" in answer.text
    assert 'lang="en"' in answer.text  # the core's own words


def test_a_defect_is_a_page_that_tells_nothing_of_it(
    administrator: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ValueError("a secret of the machine")

    monkeypatch.setattr("envdsl.app.control.inventory.layers", fails)
    answer = administrator.get("/layers")
    assert answer.status_code == 500
    assert "A defect of envdsl" in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert "secret" not in answer.text


def test_a_language_that_was_chosen_goes_before_the_browsers(service: Service) -> None:
    client = service.client()
    answer = client.post("/preferences", data={"language": "zh", "back": "/login"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "httponly" in answer.headers["set-cookie"].lower()
    assert "登录 envdsl" in client.get("/login", headers={"Accept-Language": "en"}).text


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", ""])
def test_preferences_send_nobody_elsewhere(service: Service, back: str) -> None:
    answer = service.client().post("/preferences", data={"theme": "dark", "back": back})
    assert answer.headers["location"] == "/"


def test_preferences_take_no_other_values(service: Service) -> None:
    answer = service.client().post("/preferences", data={"theme": "neon", "language": "xx", "back": "/login"})
    assert "set-cookie" not in answer.headers


def test_the_token_that_was_made_stands_in_the_answer_alone(administrator: httpx.Client, plane: ControlPlane) -> None:
    made = administrator.post("/tokens", data={"role": "reader", "name": "carol", "days": "1"})
    text = re.search(r"envdsl_r_[0-9a-f]{64}", made.text)
    assert text is not None
    assert made.headers["cache-control"] == "no-store"
    assert tokens.find(plane, text[0]) is not None
    assert text[0] not in administrator.get("/tokens").text


@pytest.mark.parametrize("days", ["0", "-1", "soon", "1.5", "99999"])
def test_a_number_of_days_that_is_none_makes_no_token(administrator: httpx.Client, days: str) -> None:
    answer = administrator.post("/tokens", data={"role": "reader", "name": "carol", "days": days})
    assert answer.status_code == 422
    assert "carol" in answer.text


def test_a_form_that_is_not_ours_is_refused_with_a_page(plane: ControlPlane, administrator: httpx.Client) -> None:
    record = asking.request(plane, AGENT, "hers", ["baz"])
    answer = administrator.post(f"/requests/{record.id}/decision", data={"choice": "explode"})
    assert answer.status_code == 400
    assert "approve, deny, isolate" in answer.text


def test_an_upload_without_a_file_is_told_so(administrator: httpx.Client) -> None:
    assert administrator.post("/upload", data={"csrf": ""}).status_code == 422


def test_files_of_the_pages_are_kept_for_a_while_and_are_what_they_say(service: Service) -> None:
    client = service.client()
    for name, kind in (("envdsl.css", "text/css"), ("envdsl.js", "javascript"), ("icon.svg", "image/svg+xml")):
        answer = client.get(f"/static/{name}")
        assert answer.status_code == 200
        assert kind in answer.headers["content-type"]
        assert "max-age" in answer.headers["cache-control"]
    assert client.get("/static/../pages/routes.py").status_code == 404


@pytest.mark.parametrize("directory", [STATIC / "vendor", Path(__file__).parent / "browser" / "vendor"])
def test_what_others_wrote_is_as_they_published_it(directory: Path) -> None:
    readme = (directory / "README").read_text()
    scripts = list(directory.glob("*.js"))
    assert scripts
    for script in scripts:
        assert script.name in readme
        assert hashlib.sha256(script.read_bytes()).hexdigest() in readme
    assert list(directory.glob("*LICENSE*"))


def test_the_layout_loads_the_script_that_is_there() -> None:
    layout = (STATIC.parent / "templates" / "layout.html").read_text()
    for name in re.findall(r'(?:src|href)="/static/([^"]+)"', layout):
        assert (STATIC / name).is_file(), name


def test_an_owner_learns_from_a_layer_how_many_others_use_it_and_not_who(
    service: Service, token: Token, plane: ControlPlane
) -> None:
    """Issue 4.9: another session is not seen."""
    base = str(sessions.show(plane.project, "his").manifest.foundation.id)
    client = service.client(token(Role.OWNER, "alice"))
    for path in ("/layers", f"/layers/{base}"):
        text = client.get(path).text
        assert "/sessions/hers" in text
        assert "/sessions/his" not in text
        assert "session his" not in text
        assert re.search(r"and \d+ more", text), "other tests may have made sessions here, too"

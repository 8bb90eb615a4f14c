"""A real Chromium, a real service, and people who use the one to look at the other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envdsl.policy.access import Role
from tests.cli.conftest import pristine_store
from tests.lock.index import serve as serve_index
from tests.web.browser import scene as scenes
from tests.web.browser.scene import Master, Scene

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

__all__ = ["pristine_store"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if CHROMIUM is None and not os.environ.get("ENVDSL_CI"):
        here = Path(__file__).parent
        for item in items:
            if item.path.is_relative_to(here):
                item.add_marker(pytest.mark.skip(reason="NO CHROMIUM ON THIS MACHINE: the admin page is not tested"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def master(pristine_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Master]:
    directory = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch, serve_index(directory / "index") as index:
        patch.setenv("UV_CACHE_DIR", str(directory / "uv"))
        for name in ("ENVDSL_STORE", "ENVDSL_DATABASE"):
            patch.delenv(name, raising=False)
        yield scenes.build(directory, pristine_store, index)


@pytest.fixture
def scene(master: Master, tmp_path: Path) -> Iterator[Scene]:
    with scenes.opened(master, tmp_path) as opened:
        yield opened


@dataclass
class Person:
    """Somebody at a browser. ``faults`` is what no page may have: errors in the console (violations of the security
    policy are among them), scripts that fail, requests that fail."""

    page: Any
    url: str
    faults: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)

    def go(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}", wait_until="load")

    def sign_in(self, token: str) -> None:
        self.go("/login")
        self.page.get_by_label("Token").or_(self.page.get_by_label("令牌")).fill(token)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.url}/")

    def click(self, name: str, role: str = "button") -> None:
        self.page.get_by_role(role, name=name, exact=True).click()

    def open(self, name: str) -> None:
        """Unfold what stands behind a summary."""
        self.page.locator("summary", has_text=name).first.click()

    def reads(self, text: str, *, seconds: float = 30) -> None:
        """Wait until the page says ``text``."""
        sync_api.expect(self.page.locator("main")).to_contain_text(text, timeout=seconds * 1000)

    def sees_no(self, name: str) -> None:
        sync_api.expect(self.page.get_by_role("button", name=name)).to_have_count(0)

    def _console(self, message: Any) -> None:
        # A page that says why it refuses comes with a status of 4xx, which Chromium writes to the console.
        if message.type in ("error", "warning") and "the server responded with a status of 4" not in message.text:
            self.faults.append(f"console: {message.text}")

    def _failed(self, request: Any) -> None:
        if "ERR_ABORTED" not in str(request.failure):  # the person went on before an icon was there
            self.faults.append(f"request: {request.url} {request.failure}")

    def _response(self, response: Any) -> None:
        if response.status >= 500 or (response.status == 404 and "/static/" in response.url):
            self.faults.append(f"response: {response.url} {response.status}")


Enter = Callable[..., Person]


@pytest.fixture
def enter(browser: Any, scene: Scene) -> Iterator[Enter]:
    """Somebody signs in, as an administrator unless a role is given. Whatever a page does wrong fails the test."""
    people: list[Person] = []
    with ExitStack() as stack:

        def make(
            role: Role | None = Role.ADMINISTRATOR,
            name: str = "root",
            session: str | None = None,
            *,
            language: str = "en-GB",
            viewport: dict[str, int] = DESKTOP,
            **more: Any,
        ) -> Person:
            context = browser.new_context(locale=language, viewport=viewport, **more)
            stack.callback(context.close)
            person = Person(context.new_page(), scene.url)
            person.watch()
            people.append(person)
            if role is not None:
                person.sign_in(scene.token(role, name, session))
            return person

        yield make
        faults = [fault for person in people for fault in person.faults]
    assert faults == []


@pytest.fixture
def person(enter: Enter) -> Person:
    return enter()

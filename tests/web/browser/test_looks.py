"""Issue 4.8: how every page looks and reads: to axe, on a phone, on paper, without scripts. One scene for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.web.browser import scene as scenes
from tests.web.browser.conftest import DESKTOP, PHONE, Enter, Person
from tests.web.browser.scene import Master, Scene

AXE = Path(__file__).parent / "vendor" / "axe-4.14.1.min.js"
# What depends on colours alone is asked again in the dark; the rest of a page is the same there.
RULES = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "dark": ["color-contrast"],
}


def furnished(scene: Scene) -> list[str]:
    """The addresses of all pages, each with something on it."""
    waiting, ready = scene.ask("report-7", "graphs", reason="a report"), scene.ask("lab-2", "colours")
    isolated = scene.ask("lab-2", "arrays<2")
    return [
        "/",
        "/requests?state=all",
        f"/requests/{waiting.id}",
        f"/requests/{isolated.id}",
        f"/requests/{ready.id}",
        "/sessions",
        "/sessions/report-7",
        "/layers",
        f"/layers/{ready.layer}",
        "/catalog?package=telnet",
        "/upload",
        "/gc",
        "/audit",
        "/tokens",
        "/nothing-here",
    ]


@pytest.fixture(scope="module")
def scene(master: Master, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scenes.opened(master, tmp_path_factory.mktemp("looks")) as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(scene: Scene) -> list[str]:
    return furnished(scene)


def violations(page: Any, rules: list[str]) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("rules => axe.run(document, { runOnly: rules })", rules)
    return [
        f"{page.url} {item['id']}: {item['help']}: {node['html'][:200]}"
        for item in found["violations"]
        for node in item["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_fault_that_axe_finds(pages: list[str], enter: Enter, scheme: str) -> None:
    person, phone = (
        enter(viewport=viewport, color_scheme=scheme, language=language)
        for viewport, language in ((DESKTOP, "en-GB"), (PHONE, "zh-CN"))
    )
    found: list[str] = []
    for path in pages:
        for somebody in (person, phone):
            somebody.go(path)
            somebody.page.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true })")
            found += violations(somebody.page, RULES[scheme])
    stranger = enter(None, color_scheme=scheme)
    stranger.go("/login?failed=web-token-invalid")
    assert found + violations(stranger.page, RULES[scheme]) == []


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
def test_no_page_is_wider_than_a_phone(pages: list[str], enter: Enter, language: str) -> None:
    person = enter(viewport=PHONE, language=language)
    wide = []
    for path in pages:
        person.go(path)
        person.page.evaluate("document.querySelectorAll('details').forEach(item => { item.open = true })")
        width = person.page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE["width"]:
            wide.append(f"{path}: {width}")
    assert wide == []


def test_on_paper_there_is_the_card_alone(pages: list[str], person: Person) -> None:
    person.go(pages[2])
    person.page.emulate_media(media="print")
    for text in ("Why a person has to decide", "GPL-3.0-only", "a report"):
        expect(person.page.get_by_text(text).first).to_be_visible()
    for gone in ("nav", "button", "textarea", ".skip"):
        for item in person.page.locator(gone).all():
            expect(item).to_be_hidden()


def test_without_scripts_everything_can_be_read(pages: list[str], enter: Enter) -> None:
    person = enter(java_script_enabled=False)
    for path in pages[:-1]:
        person.go(path)
        expect(person.page.locator("h1")).to_be_visible()
    person.go("/layers")
    person.reads("office")

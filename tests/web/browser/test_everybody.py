"""Issue 4.8: for everybody. Both languages, a phone's menu, a keyboard, a screen reader, no script."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from envdsl.policy.access import Role
from tests.web.browser.conftest import PHONE, Enter, Person
from tests.web.browser.scene import Scene


def test_the_menu_of_a_phone_opens_leads_on_and_closes(scene: Scene, enter: Enter) -> None:
    person = enter(viewport=PHONE)
    menu = person.page.get_by_role("navigation")
    expect(menu).to_be_hidden()
    person.click("Menu")
    expect(menu).to_be_visible()
    person.page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    person.click("Menu")
    person.click("Sessions", "link")
    person.reads("3 sessions")
    expect(menu).to_be_hidden()


def test_the_language_follows_the_browser_until_somebody_chooses(scene: Scene, enter: Enter) -> None:
    person = enter(language="zh-CN")
    person.go("/sessions/report-7")
    person.reads("当前绑定")
    assert person.page.locator("html").get_attribute("lang") == "zh-Hans"
    person.click("English")
    person.reads("Bound to")
    assert person.page.url.endswith("/sessions/report-7")
    person.go("/layers")
    person.reads("3 layers")
    assert person.page.locator("html").get_attribute("lang") == "en"


def test_the_language_is_changed_where_a_form_has_led(scene: Scene, person: Person) -> None:
    person.go("/sessions")
    person.page.get_by_label("Session", exact=True).fill("lab")
    person.click("Show")
    person.reads("1 session")
    person.click("lab-2", "link")
    person.click("Preview a rebase…")
    person.reads("Nothing would change")
    person.click("中文")
    person.reads("当前绑定")
    assert person.page.url.endswith("/sessions/lab-2")


def test_a_person_who_reads_chinese_decides_in_chinese(scene: Scene, enter: Enter) -> None:
    record = scene.ask("report-7", "graphs")
    person = enter(language="zh-CN")
    person.go(f"/requests/{record.id}")
    for text in ("为什么需要人来决定", "许可证不在目录中", "将要构建的扩展层", "graphs 的依赖"):
        person.reads(text)
    person.click("批准")
    person.reads("已批准，即将开始构建。")
    person.reads("该会话的下一条命令就能用到它。", seconds=90)


def test_colours_follow_the_browser_until_somebody_chooses(scene: Scene, enter: Enter) -> None:
    person = enter(color_scheme="dark")

    def ground() -> str:
        return str(person.page.evaluate("getComputedStyle(document.body).backgroundColor"))

    dark = ground()
    person.click("Light")
    person.page.wait_for_load_state()
    assert ground() == "rgb(250, 250, 248)"
    person.click("Dark")
    person.page.wait_for_load_state()
    assert ground() == dark == "rgb(20, 23, 26)"


def focused(person: Person) -> str:
    return str(person.page.evaluate("document.activeElement.innerText || document.activeElement.id"))


def tab_to(person: Person, name: str) -> None:
    for _ in range(60):
        person.page.keyboard.press("Tab")
        if focused(person).strip() == name:
            outline = person.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", f"nobody sees that {name} has the focus"
            return
    pytest.fail(f"no way to {name!r} by the keyboard")


def test_a_keyboard_is_enough(scene: Scene, person: Person) -> None:
    scene.ask("report-7", "graphs")
    person.go("/")
    person.page.keyboard.press("Tab")
    assert focused(person) == "Skip to content"
    person.page.keyboard.press("Enter")
    assert focused(person).startswith("Overview")
    tab_to(person, "graphs")
    person.page.keyboard.press("Enter")
    person.reads("Why a person has to decide")
    tab_to(person, "comment")
    person.page.keyboard.type("by keyboard")
    tab_to(person, "Approve")
    person.page.keyboard.press("Space")
    person.reads("Approved. It will be built now.")
    expect(person.page.locator("#main")).to_be_focused()
    person.reads("by keyboard")


def test_what_changes_is_said_aloud(scene: Scene, person: Person) -> None:
    scene.ask("report-7", "graphs")
    person.go("/requests")
    person.click("graphs", "link")
    person.click("Approve")
    live = person.page.locator("#live")
    expect(live).to_contain_text("Approved. It will be built now.")
    expect(live).to_contain_text("ready", timeout=90_000)


def test_without_scripts_a_person_decides_rebases_and_collects(scene: Scene, enter: Enter) -> None:
    record = scene.ask("report-7", "graphs")
    person = enter(java_script_enabled=False)
    person.go(f"/requests/{record.id}")
    person.click("Approve")
    person.reads("Approved. It will be built now.")
    person.go("/sessions/lab-2")
    person.page.get_by_label("New base").select_option("bureau")
    person.click("Preview a rebase…")
    person.click("Rebase now")
    person.reads("The session is bound anew.")
    person.go("/gc")
    person.click("Preview")
    person.reads("What would go")
    person.click("中文")
    person.reads("清理")


def test_a_visit_that_is_over_leads_to_the_form_and_back(scene: Scene, enter: Enter) -> None:
    person = enter(Role.READER, "dave")
    person.page.context.clear_cookies()
    person.go("/layers")
    person.reads("Sign in to envdsl")
    person.page.get_by_label("Token").fill(scene.token(Role.READER, "dave"))
    person.click("Sign in")
    person.reads("3 layers")

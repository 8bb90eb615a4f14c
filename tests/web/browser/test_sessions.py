"""Issue 4.8: sessions and their bindings, rebase with preview, undo, seal."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import expect

from envdsl.policy.access import Role
from tests.web.browser.conftest import Enter, Person
from tests.web.browser.scene import Scene


def test_a_rebase_is_shown_first_and_happens_on_the_second_click(scene: Scene, person: Person) -> None:
    before = scene.installed("lab-2")
    person.go("/sessions/lab-2")
    person.page.get_by_label("New base").select_option("bureau")
    person.click("Preview a rebase…")
    person.reads("Nothing has happened yet.")
    person.reads("letters")
    assert scene.installed("lab-2") == before
    expect(person.page).to_have_title("Rebase lab-2 · envdsl")
    person.click("Rebase now")
    person.reads("The session is bound anew.")
    person.reads("bureau")
    assert scene.installed("lab-2")["letters"] == "0.9"
    person.open("Undo the last change…")
    person.click("Undo now")
    person.reads("The session has what it had before.")
    assert scene.installed("lab-2") == before
    expect(person.page.locator("ol.line > li")).to_have_count(3)


def test_a_rebase_that_changes_nothing_says_so(scene: Scene, person: Person) -> None:
    person.go("/sessions/report-7")
    person.click("Preview a rebase…")
    person.reads("Nothing would change: the session has what is current.")
    person.sees_no("Rebase now")
    person.click("Back", "link")
    person.reads("Bound to")


def test_a_rebase_that_fails_says_why_and_changes_nothing(scene: Scene, person: Person) -> None:
    before = scene.installed("report-7")
    person.go("/sessions/report-7")
    person.page.get_by_label("New base").select_option("bureau")
    person.click("Preview a rebase…")
    person.reads("Nothing has changed for the session.")
    assert scene.installed("report-7") == before


def test_a_seal_is_downloaded_as_one_signed_document(scene: Scene, person: Person, tmp_path: Path) -> None:
    person.go("/sessions/report-7")
    with person.page.expect_download() as download:
        person.click("Download the seal")
    assert download.value.suggested_filename == "seal-report-7.json"
    download.value.save_as(tmp_path / "seal.json")
    sealed = json.loads((tmp_path / "seal.json").read_text())
    assert sealed["session"] == "report-7"
    assert sealed["signature"]


def test_a_session_shows_its_packages_and_leads_to_its_layers(scene: Scene, person: Person) -> None:
    person.go("/sessions")
    person.reads("3 sessions")
    person.click("report-7", "link")
    person.open("packages can be imported")
    person.reads("charts 3.0.1")
    person.page.get_by_role("link", name="plots").first.click()
    person.reads("What is in it")
    person.reads("Charts as SVG")
    person.reads("MIT")


def test_an_owner_sees_only_sessions_of_their_own(scene: Scene, enter: Enter) -> None:
    alice = enter(Role.OWNER, "alice")
    alice.go("/sessions")
    alice.reads("2 sessions")
    alice.go("/sessions/audit-1")
    alice.reads("There is nothing here")


def test_an_agent_sees_its_own_session_and_changes_no_binding(scene: Scene, enter: Enter) -> None:
    agent = enter(Role.AGENT, "agent", "report-7")
    agent.go("/sessions")
    agent.reads("1 session")
    agent.click("report-7", "link")
    agent.reads("Ask for packages")
    for name in ("Preview a rebase…", "Download the seal"):
        agent.sees_no(name)

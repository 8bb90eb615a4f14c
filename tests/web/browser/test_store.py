"""Issue 4.8: layers, gc with preview, wheel upload with the intake report, catalog, audit log, tokens, health."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from playwright.sync_api import expect

from envdsl.policy.access import Role
from tests.web.browser.conftest import Enter, Person
from tests.web.browser.scene import Scene
from tests.wheels import make_wheel


def test_garbage_is_shown_first_and_goes_on_the_second_click(scene: Scene, person: Person) -> None:
    record = scene.ask("lab-2", "colours")
    rubbish = scene.project.store.layout.layers / "x-left-by-somebody"
    rubbish.mkdir()
    person.go("/gc")
    person.click("Preview")
    person.reads("1 path would go")
    person.reads("layers/x-left-by-somebody")
    assert rubbish.is_dir()
    person.click("Remove 1 path")
    person.reads("1 path is gone")
    assert not rubbish.exists()
    person.go(f"/layers/{record.layer}")
    person.reads("colours")


def test_a_number_that_is_none_is_told_at_its_field(scene: Scene, person: Person) -> None:
    person.go("/gc")
    field = person.page.get_by_label("Only what nobody has needed for so many days")
    field.fill("soon")
    person.click("Preview")
    person.reads("Write a whole number, or nothing.")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("soon")


def test_a_layer_tells_what_is_in_it_and_who_uses_it(scene: Scene, person: Person) -> None:
    person.go("/layers")
    person.reads("3 layers")
    person.click("office", "link")
    for text in ("documents", "BSD-3-Clause", "Tables and frames", "report-7", "audit-1"):
        person.reads(text)
    person.page.locator("summary", has_text="keep it from being cleaned up").click()
    person.reads("session report-7")


def test_an_unknown_layer_is_a_page_that_says_so(scene: Scene, person: Person) -> None:
    person.go("/layers/x-nothing")
    person.reads("There is nothing here")


def test_a_wheel_is_checked_and_asked_for(scene: Scene, person: Person, tmp_path: Path) -> None:
    metadata = "License-Expression: MIT\nSummary: Our own tool\n"
    entry = {"tool": "tool:main"}
    wheel = make_wheel(tmp_path, "tool", "5.1", requires=["arrays"], entry_points=entry, extra_metadata=metadata)
    person.go("/upload")
    person.page.get_by_label("Wheel").set_input_files(wheel)
    person.click("Check it")
    person.reads("It passes all checks")
    for text in ("tool 5.1", "Our own tool", "MIT", "arrays"):
        person.reads(text)
    person.page.get_by_label("Session", exact=True).select_option("lab-2")
    person.page.get_by_label("What it is for").fill("our own")
    person.click("Ask")
    person.reads("The request is in the queue.")
    expect(person.page.locator('nav a[href="/requests"]')).to_have_attribute("aria-current", "true")
    person.reads("Uploaded wheel", seconds=60)
    person.click("Approve")
    person.reads("The session’s next command can use it.", seconds=90)
    assert scene.installed("lab-2")["tool"] == "5.1"


def test_a_wheel_that_a_build_would_refuse_is_refused_with_the_reason(
    scene: Scene, person: Person, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "evil", "1.0")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("../outside.py", "")
    person.go("/upload")
    person.page.get_by_label("Wheel").set_input_files(wheel)
    person.click("Check it")
    person.reads("Refused: evil-1.0-py3-none-any.whl")
    person.reads("../outside.py")


def test_the_catalog_is_read_and_explains_a_package(scene: Scene, person: Person) -> None:
    person.go("/catalog")
    for text in ("documents", "sends passwords in the clear", "10 MB", "lab-*"):
        person.reads(text)
    person.page.get_by_label("Package").fill("Samples")
    person.click("Explain")
    person.reads("samples – a person decides")
    person.page.get_by_label("Session (optional)").fill("lab-2")
    person.click("Explain")
    person.reads("samples – allowed")


def test_mistakes_in_the_catalog_are_shown_where_they_are(scene: Scene, person: Person) -> None:
    scene.project.config.catalog.write_text("[allow]\npackages = 7\n")
    person.go("/catalog")
    person.reads("must be an array of strings")
    person.reads("catalog.toml:2")


def test_the_audit_log_is_paged_and_verified(scene: Scene, person: Person) -> None:
    store = scene.plane.store_id
    with scene.plane.state.transaction() as tx:
        for number in range(60):
            data = {"store": store, "number": number}
            tx.audit.append(actor="root", action="test.noted", session="lab-2", data=data)
    person.go("/audit")
    person.reads("50 events, the newest first")
    person.click("Older ones", "link")
    person.reads("Session given to its owner")
    person.click("Verify the chain")
    person.reads("The chain holds: all")
    person.page.get_by_label("Session", exact=True).fill("audit-1")
    person.click("Show")
    person.reads("1 event, the newest first")


def test_a_token_is_shown_once_opens_what_it_is_for_and_is_revoked(scene: Scene, enter: Enter, person: Person) -> None:
    person.go("/tokens")
    person.page.get_by_label("For", exact=True).select_option("Reader")
    person.page.get_by_label("Name", exact=True).fill("carol")
    person.click("Make the token")
    person.reads("This is the only time that it is shown.")
    secret = person.page.locator(".secret").inner_text()
    assert re.fullmatch(r"envdsl_r_\S+", secret)
    person.go("/tokens")
    assert secret not in person.page.content()
    carol = enter(None)
    carol.sign_in(secret)
    carol.reads("Nothing waits for you.")
    person.page.locator("tr", has_text="carol").get_by_text("Revoke…").click()
    person.click("Revoke carol")
    person.reads("The token opens nothing any more.")
    carol.go("/layers")
    carol.reads("Sign in to envdsl")


def test_a_token_without_its_session_is_refused_with_the_form_as_it_was(scene: Scene, person: Person) -> None:
    person.go("/tokens")
    person.page.get_by_label("Name", exact=True).fill("agent 7")
    person.click("Make the token")
    person.reads("an agent's token opens one session")
    expect(person.page.get_by_label("Name", exact=True)).to_have_value("agent 7")


def test_all_checks_are_run_on_demand(scene: Scene, person: Person) -> None:
    person.go("/")
    person.reads("valid paths")
    person.click("Run all checks")
    person.reads("All checks were run just now", seconds=120)
    person.reads("session report-7")


def test_a_token_that_is_none_is_refused_and_signing_out_ends_the_visit(scene: Scene, enter: Enter) -> None:
    stranger = enter(None)
    stranger.go("/audit")
    stranger.reads("Sign in to envdsl")
    stranger.page.get_by_label("Token").fill("envdsl_d_0000")
    stranger.click("Sign in")
    stranger.reads("The token is unknown, expired or revoked.")
    stranger.page.get_by_label("Token").fill(scene.token(Role.ADMINISTRATOR, "root"))
    stranger.click("Sign in")
    stranger.reads("Audit log")
    stranger.click("Sign out")
    stranger.reads("Sign in to envdsl")
    stranger.go("/")
    stranger.reads("Sign in to envdsl")

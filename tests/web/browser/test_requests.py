"""Issue 4.8: a person sees a request, reads its card and decides, all by clicks."""

from __future__ import annotations

from playwright.sync_api import expect

from envdsl.app.control import deciding
from envdsl.policy.access import Role
from envdsl.policy.proposal import Choice
from tests.web.browser.conftest import Enter, Person
from tests.web.browser.scene import ADMINISTRATOR, Scene


def test_a_person_approves_what_an_agent_asked_for_and_watches_it_become_ready(scene: Scene, person: Person) -> None:
    scene.ask("report-7", "graphs>=1", reason="Draw the network")
    person.go("/")
    person.reads("1 request waits for a person")
    person.click("graphs>=1", "link")
    for text in (
        "agent:report-7",
        "Draw the network",
        "Licence not in the catalog",
        "GPL-3.0-only",
        "needed by graphs",
    ):
        person.reads(text)
    person.page.get_by_label("Comment").fill("fine for a report")
    person.click("Approve")
    person.reads("Approved. It will be built now.")
    person.reads("The session’s next command can use it.", seconds=90)
    person.reads("fine for a report")
    assert scene.installed("report-7")["graphs"] == "1.4"
    person.click("report-7", "link")
    person.reads("A request became ready")


def test_a_person_isolates_what_contradicts_the_base(scene: Scene, person: Person) -> None:
    scene.ask("lab-2", "arrays<2")
    person.go("/requests")
    person.click("arrays<2", "link")
    person.reads("Contradicts the session’s base")
    person.reads("The isolated layer that would be built")
    person.sees_no("Approve")
    person.click("Isolate")
    person.reads("The session’s next command can use it.", seconds=90)
    assert scene.installed("lab-2")["arrays"] == "1.9"
    assert scene.installed("audit-1")["arrays"] == "2.1"


def test_a_person_denies_and_the_session_keeps_what_it_has(scene: Scene, person: Person) -> None:
    before = scene.installed("report-7")
    scene.ask("report-7", "graphs")
    person.go("/requests")
    person.click("graphs", "link")
    person.page.get_by_label("Comment").fill("use charts")
    person.click("Deny")
    person.reads("A person decided against it.")
    person.reads("use charts")
    person.sees_no("Approve")
    assert scene.installed("report-7") == before


def test_what_the_rules_refuse_is_explained_and_offers_nothing(scene: Scene, person: Person) -> None:
    scene.ask("lab-2", "telnet")
    person.go("/requests?state=refused")
    person.click("telnet", "link")
    person.reads("Why it is refused")
    person.reads("sends passwords in the clear")
    for name in ("Approve", "Isolate", "Deny"):
        person.sees_no(name)


def test_who_decides_on_something_decided_is_told_who_was_quicker(scene: Scene, person: Person) -> None:
    record = scene.ask("report-7", "graphs")
    person.go(f"/requests/{record.id}")
    deciding.decide(scene.plane, ADMINISTRATOR, record.id, Choice.DENY)
    person.click("Approve")
    person.reads("Somebody was quicker")
    person.reads("decided by root")


def test_the_queue_is_filtered(scene: Scene, person: Person) -> None:
    scene.ask("report-7", "graphs")
    scene.ask("lab-2", "telnet")
    person.go("/requests")
    person.reads("1 request, the newest first")
    person.page.get_by_label("State").select_option("All")
    person.click("Show")
    person.reads("2 requests, the newest first")
    person.page.get_by_role("searchbox").or_(person.page.get_by_label("Session")).fill("lab-2")
    person.click("Show")
    person.reads("1 request, the newest first")
    person.reads("telnet")
    assert "session=lab-2" in person.page.url


def test_a_request_is_taken_back(scene: Scene, person: Person) -> None:
    record = scene.ask("report-7", "graphs")
    person.go(f"/requests/{record.id}")
    person.open("Take the request back")
    person.click("Yes, take it back")
    person.reads("The request was taken back.")


def test_a_person_asks_in_a_session_and_sees_it_sorted(scene: Scene, person: Person) -> None:
    person.go("/sessions/lab-2")
    person.open("Ask for packages")
    person.page.get_by_label("Packages, one a line").fill("graphs\nnot a requirement !")
    person.click("Ask")
    person.reads("is not a requirement")
    field = person.page.get_by_label("Packages, one a line")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("graphs\nnot a requirement !")
    field.fill("graphs")
    person.click("Ask")
    person.reads("The request is in the queue.")
    person.reads("Why a person has to decide", seconds=60)


def test_what_proved_useful_becomes_part_of_the_project(scene: Scene, person: Person) -> None:
    record = scene.ask("lab-2", "colours")
    person.go(f"/requests/{record.id}")
    person.reads("Everything is allowed by the catalog.")
    person.open("Make it part of the project")
    person.page.get_by_label("Name of the layer").fill("palette")
    person.click("Write the files")
    person.reads("The layer file and its lock are written.")
    assert (scene.project.config.root / "layers.d" / "pylock.palette.toml").is_file()


def test_the_owner_of_a_session_decides_and_sees_no_other(scene: Scene, enter: Enter) -> None:
    mine, other = scene.ask("report-7", "graphs"), scene.ask("audit-1", "graphs")
    alice = enter(Role.OWNER, "alice")
    alice.go("/requests")
    alice.reads("1 request, the newest first")
    alice.go(f"/requests/{other.id}")
    alice.reads("There is nothing here")
    alice.go(f"/requests/{mine.id}")
    alice.click("Approve")
    alice.reads("Approved. It will be built now.")


def test_a_reader_reads_and_is_offered_nothing_to_do(scene: Scene, enter: Enter) -> None:
    record = scene.ask("report-7", "graphs")
    reader = enter(Role.READER, "auditor")
    reader.go(f"/requests/{record.id}")
    reader.reads("Licence not in the catalog")
    for name in ("Approve", "Isolate", "Deny", "Yes, take it back"):
        reader.sees_no(name)
    for path in ("/gc", "/tokens", "/upload"):
        expect(reader.page.get_by_role("navigation").locator(f'a[href="{path}"]')).to_have_count(0)
        reader.go(path)
        reader.reads("Not allowed")

"""Announcements: signed, repeated until they are taken, without a secret in sight; to a real server on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from envdsl.app.control import asking, webhooks
from envdsl.config import ServiceSetting, WebhookSetting
from envdsl.errors import EnvdslError
from envdsl.state.records import Status, WebhookRecord
from tests.app.control.bench import ADMIN, Bench

SECRET = b"a secret of thirty-two bytes....."


@dataclass
class Receiver:
    """What came; ``answers`` are the statuses to give, the last one for ever."""

    port: int
    answers: list[int] = field(default_factory=lambda: [200])
    deliveries: list[tuple[dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.deliveries.append((headers, body))
            status = found.answers.pop(0) if len(found.answers) > 1 else found.answers[0]
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", f"http://127.0.0.1:{found.port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def subscribed(bench: Bench, receiver: Receiver, path: str = "hook-s3cr3t") -> Bench:
    secret = bench.root / "secret"
    secret.write_text(f"whsec_{base64.b64encode(SECRET).decode()}\n")
    service = ServiceSetting(webhook=WebhookSetting(f"http://127.0.0.1:{receiver.port}/{path}", secret))
    bench.project.config = replace(bench.project.config, service=service)
    return bench


def verified(headers: dict[str, str], body: bytes) -> bool:
    """As a receiver does it, after the text of the specification."""
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    expected = base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(item, f"v1,{expected}") for item in headers["webhook-signature"].split())


def outbox(bench: Bench) -> list[WebhookRecord]:
    from sqlalchemy import select

    from envdsl.state.tables import webhooks as table

    with bench.plane.state.reading() as tx:
        return [WebhookRecord(**row._mapping) for row in tx.read(select(table).order_by(table.c.id))]


def test_a_request_that_waits_for_a_person_is_announced_with_its_card(bench: Bench, receiver: Receiver) -> None:
    """Issue 4.7: a webhook (signed, retried) announces cards."""
    subscribed(bench, receiver).session("s")
    record = bench.settled("s", "unlisted", reason="to see")
    assert bench.get(record.id).status is Status.PENDING
    ((headers, body),) = receiver.deliveries
    assert verified(headers, body)
    assert not verified(headers, body.replace(b"unlisted", b"whatever"))
    document = json.loads(body)
    assert document["type"] == "request.waiting"
    assert document["data"]["request"] == record.id
    assert document["data"]["card"]["id"] == record.id
    assert headers["webhook-id"].startswith("evt-")
    assert abs(int(headers["webhook-timestamp"]) - bench.clock().timestamp()) < 60
    bench.settle()
    assert len(receiver.deliveries) == 1


def test_what_is_not_taken_is_delivered_again_later_under_the_same_id(bench: Bench, receiver: Receiver) -> None:
    """Issue 4.7: retried."""
    receiver.answers = [500, 302, 200]
    subscribed(bench, receiver).session("s")
    bench.settled("s", "unlisted")
    assert len(receiver.deliveries) == 1
    bench.settle()
    assert len(receiver.deliveries) == 1
    for count in (2, 3):
        bench.clock.forward(minutes=2)
        bench.settle()
        assert len(receiver.deliveries) == count
    assert len({headers["webhook-id"] for headers, _ in receiver.deliveries}) == 1
    assert all(verified(headers, body) for headers, body in receiver.deliveries)
    (event,) = outbox(bench)
    assert (event.due, event.problem, event.attempts) == (None, None, 3)
    assert event.delivered is not None


def test_who_asks_and_cancels_all_the_time_does_not_ring_all_the_time(
    light_bench: Bench, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = subscribed(light_bench, receiver)
    monkeypatch.setattr(webhooks, "MOST_ANNOUNCED", 2)

    def ring(session: str) -> int:
        asking.cancel(bench.plane, ADMIN, bench.settled(session, "unlisted").id)
        return len(outbox(bench))

    bench.session("s")
    bench.session("t")
    assert [ring("s") for _ in range(4)] == [1, 2, 2, 2]
    assert ring("t") == 3, "others are heard"
    bench.clock.forward(hours=1, minutes=1)
    assert ring("s") == 4


def test_a_receiver_that_is_gone_is_told_nothing_more(light_bench: Bench, receiver: Receiver) -> None:
    receiver.answers = [410]
    subscribed(light_bench, receiver).session("s")
    light_bench.settled("s", "unlisted")
    light_bench.clock.forward(days=3)
    light_bench.settle()
    assert len(receiver.deliveries) == 1
    (event,) = outbox(light_bench)
    assert (event.due, event.delivered, event.problem) == (None, None, "it answered 410")


def test_it_is_given_up_after_about_two_days(light_bench: Bench, receiver: Receiver) -> None:
    receiver.answers = [503]
    bench = subscribed(light_bench, receiver)
    with bench.plane.state.transaction() as tx:
        tx.webhooks.put(bench.plane.store_id, "request.waiting", {"request": "req-1"})
    hours = 0
    while outbox(bench)[0].due is not None and hours < 200:
        webhooks.deliver_due(bench.plane)
        bench.clock.forward(hours=8)
        hours += 8
    assert 24 < hours < 200
    assert outbox(bench)[0].problem == "it answered 503"


def test_no_secret_gets_into_messages_rows_or_logs(
    light_bench: Bench, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4.9: no credential in logs."""
    bench = subscribed(light_bench, receiver)
    warnings: list[str] = []
    monkeypatch.setattr(bench.project.reporter, "warn", lambda found: warnings.append(found.message))
    receiver.answers = [500]
    bench.session("s")
    bench.settled("s", "unlisted")
    setting = bench.project.config.service.webhook
    assert setting is not None
    dead = replace(bench.project.config.service, webhook=replace(setting, url="http://127.0.0.1:1/hook-s3cr3t"))
    bench.project.config = replace(bench.project.config, service=dead)
    bench.clock.forward(hours=1)
    bench.settle()
    assert len(warnings) == 2, "each delivery that fails is a warning"
    everything = " ".join(
        [*warnings, *(str(event) for event in outbox(bench)), *(str(event) for event in bench.events())]
    )
    for secret in ("hook-s3cr3t", SECRET.decode(), base64.b64encode(SECRET).decode()):
        assert secret not in everything


@pytest.mark.parametrize("content", [None, "", "short", "whsec_!!!", "whsec_c2hvcnQ="])
def test_a_secret_that_is_none_stops_no_request(light_bench: Bench, receiver: Receiver, content: str | None) -> None:
    bench = subscribed(light_bench, receiver)
    setting = bench.project.config.service.webhook
    assert setting is not None
    setting.secret_file.unlink() if content is None else setting.secret_file.write_text(content)
    bench.session("s")
    assert bench.settled("s", "unlisted").status is Status.PENDING
    assert receiver.deliveries == []
    (event,) = outbox(bench)
    assert event.due is not None
    assert "secret file" in str(event.problem)


def test_a_secret_that_is_none_is_warned_of_at_the_start(
    light_bench: Bench, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    monkeypatch.setattr(light_bench.project.reporter, "warn", lambda found: warnings.append(found.message))
    webhooks.warn_of_secret(light_bench.plane)  # none is set
    bench = subscribed(light_bench, receiver)
    webhooks.warn_of_secret(bench.plane)
    assert warnings == []
    (bench.root / "secret").unlink()
    webhooks.warn_of_secret(bench.plane)
    (warning,) = warnings
    assert str(bench.root / "secret") in warning


def test_a_secret_may_be_any_text_that_is_long_enough(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("correct horse battery staple\n")
    assert webhooks.read_secret(file) == b"correct horse battery staple"
    file.write_text("too short")
    with pytest.raises(EnvdslError) as caught:
        webhooks.read_secret(file)
    assert "too short" not in str(caught.value)


def test_the_pauses_grow_to_six_hours() -> None:
    assert [round(webhooks.delay(1).total_seconds()) in range(4, 7)] == [True]
    assert webhooks.delay(2) > webhooks.delay(1)
    assert webhooks.delay(20).total_seconds() <= 6 * 3600 * 1.2

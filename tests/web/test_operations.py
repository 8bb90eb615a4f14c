"""The service as those see it who run it: started, watched, loaded, stopped."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from envdsl.app.control import tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.policy.access import Role
from envdsl.state.records import Status
from envdsl.web import serving
from envdsl.web.listening import Address
from tests import loops
from tests.web.conftest import ADMINISTRATOR, SETTINGS, House, Serve, Token, wait_until

API = "/api/v1"


class Process:
    """``envdsl serve`` as a process of its own."""

    def __init__(self, house: House, directory: Path, *options: str) -> None:
        self.socket = directory / "s"
        self.log = directory / "log"
        command = [sys.executable, "-m", "envdsl", "serve", "--socket", str(self.socket), *options]
        environment = os.environ | {
            "ENVDSL_STORE": str(house.store),
            "ENVDSL_DATABASE": f"sqlite:///{directory}/state.db",
            "ENVDSL_PROJECT": str(house.root),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stderr=log, stdout=subprocess.PIPE)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url="http://envdsl", transport=httpx.HTTPTransport(uds=str(self.socket)), timeout=30)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            with self.client() as client:
                return client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def process(house: House, directory: Path, *options: str) -> Iterator[Process]:
    started = Process(house, directory, *options)
    try:
        wait_until(started.answers, 60)
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


def test_envdsl_serve_needs_no_configuration_logs_json_and_stops_in_peace(house: House, tmp_path: Path) -> None:
    """Issue 4.8, 4.10: `envdsl serve`, structured logs, graceful stop."""
    with process(house, tmp_path) as running:
        with running.client() as client:
            assert client.get(f"{API}/me").json()["role"] == "administrator"
            assert client.get("/healthz").json() == {"status": "ok"}
            body = {"requirements": ["nowhere-to-be-had"]}
            asked = client.post(f"{API}/sessions/hers/requests", params={"wait": 25}, json=body)
            assert asked.json()["status"] == "refused", asked.text
        running.process.send_signal(signal.SIGTERM)
        out, _ = running.process.communicate(timeout=30)
        assert running.process.returncode == 0
        assert out == b"", "stdout is for results"
        assert not running.socket.exists()
        messages = [line["message"] for line in running.lines()]  # a worker was at work, too, and said nothing but JSON
        assert messages.index("listening") < messages.index("request")
        assert messages[-1] == "stopped"
        assert "request" in messages


def test_it_says_that_it_listens_once_it_answers(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever starts it waits for that line, and connects."""
    made: list[serving.Server] = []

    class Kept(serving.Server):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    def ready(places: list[str]) -> None:
        told.append((places, made[0].started))
        asyncio.get_running_loop().call_soon(setattr, made[0], "should_exit", True)

    told: list[tuple[list[str], bool]] = []
    monkeypatch.setattr(serving, "Server", Kept)
    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    for name in ("envdsl", "uvicorn"):  # a test before this one may have configured them
        caplog.set_level(logging.INFO, name)
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    with ThreadPoolExecutor(1) as pool:  # the browser of other tests keeps an event loop running in this thread
        pool.submit(serving.serve, plane, unix=tmp_path / "s", settings=SETTINGS, ready=ready).result()
    assert told == [([f"unix:{tmp_path / 's'}"], True)]
    assert caplog.messages.index("Application startup complete.") < caplog.messages.index("listening")


def test_a_stop_lets_requests_end_and_tells_those_who_wait(house: House, tmp_path: Path) -> None:
    with process(house, tmp_path, "--workers", "0") as running, running.client() as client:
        asked = client.post(f"{API}/sessions/hers/requests", json={"requirements": ["baz"]}).json()
        got: list[httpx.Response] = []
        place = f"{API}/sessions/hers/requests/{asked['id']}"
        waiting = threading.Thread(target=lambda: got.append(client.get(place, params={"wait": 60})))
        waiting.start()
        time.sleep(0.5)
        began = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        waiting.join(20)
        running.process.communicate(timeout=20)
        assert time.monotonic() - began < 15
        assert (got[0].status_code, got[0].json()["status"]) == (200, "pending")


def test_two_services_do_not_take_each_others_socket(house: House, tmp_path: Path) -> None:
    with process(house, tmp_path) as running:
        second = Process(house, tmp_path)
        second.process.communicate(timeout=60)
        assert second.process.returncode == 4
        assert "web-socket-in-use" in second.log.read_text()
        assert running.answers()


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "10.1.2.3:0"])
def test_other_machines_are_not_let_in_without_a_proxy(house: House, tmp_path: Path, listen: str) -> None:
    refused = Process(house, tmp_path, "--listen", listen)
    refused.process.communicate(timeout=60)
    assert refused.process.returncode == 2
    assert "web-listen-exposed" in refused.log.read_text()


@pytest.mark.parametrize(
    ("text", "host", "loopback"),
    [
        ("127.0.0.1:80", "127.0.0.1", True),
        ("127.9.9.9:80", "127.9.9.9", True),
        ("[::1]:80", "::1", True),
        ("localhost:80", "localhost", True),
        ("10.0.0.1:80", "10.0.0.1", False),
        ("envs.example:80", "envs.example", False),
    ],
)
def test_addresses_of_this_machine_are_told_from_others(text: str, host: str, loopback: bool) -> None:
    found = Address.parse(text)
    assert (found.host, found.port, found.is_loopback) == (host, 80, loopback)


@pytest.mark.parametrize("text", ["", "80", ":80", "host", "host:", "host:x", "host:99999", "host:-1"])
def test_what_is_no_address_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Address.parse(text)


def test_metrics_count_requests_by_status_and_route_and_time_the_work(serve: Serve, token: Token) -> None:
    """Issue 4.10: Prometheus metrics."""
    service = serve(workers=1)
    reader, agent = service.client(token(Role.READER)), service.client(token(Role.AGENT, session="hers"))
    agent.get(f"{API}/sessions/hers/status")
    agent.get(f"{API}/sessions/his/status")
    asked = agent.post(f"{API}/sessions/hers/requests", params={"wait": 40}, json={"requirements": ["baz"]}).json()
    agent.post(f"{API}/sessions/hers/requests/{asked['id']}/cancel")
    text = reader.get("/metrics").text
    status = f'method="GET",route="{API}/sessions/{{session}}/status"'
    for line in (
        f'envdsl_http_requests_total{{{status},status="200"}} 1.0',
        f'envdsl_http_requests_total{{{status},status="404"}} 1.0',
        f"envdsl_http_request_seconds_count{{{status}}} 2.0",
        'envdsl_requests{status="cancelled"} 1.0',
        'envdsl_worker_seconds_count{work="resolve"} 1.0',
        "envdsl_queue_length 0.0",
        "envdsl_waiting_for_person 0.0",
        "envdsl_workers 1.0",
    ):
        assert line in text
    assert "hers" not in text, "labels name nothing whose number is not bounded"
    wild = reader.request("PROPFIND", "/nowhere/at/all").status_code
    assert wild >= 400
    assert 'method="other",route="(none)"' in reader.get("/metrics").text


def test_200_sessions_ask_at_once_and_nothing_is_lost_or_built_twice(
    house: House, serve: Serve, plane: ControlPlane
) -> None:
    """Issue 4.10: under a load of 200 sessions asking at once, no request is lost or built twice.

    The sessions are directories with the manifest of one that was made: what is under test here is the queue, which
    workers empty without resolving anything. How quick `status` is meanwhile, `benchmarks/` measures.
    """
    names = [f"load-{number}" for number in range(200)]
    for name in names:
        copy_session(house, "hers", name)
    texts = {name: tokens.create(plane, ADMINISTRATOR, role=Role.AGENT, name=name, session=name)[0] for name in names}
    service = serve(workers=0)
    answers = loops.run(load, service.url, texts)

    assert Counter(answer["status"] for answer in answers) == {"pending": 200}
    identifiers = {answer["id"] for answer in answers}
    assert len(identifiers) == 200, "each session has a request, twice asked for or not"
    with plane.state.reading() as tx:
        assert tx.requests.counts(plane.store_id)[Status.PENDING] == 200
        created = [event for event in tx.audit.range() if event.action == "request.created"]
        assert len(created) == 200
        assert tx.audit.verify() is None

    taken: list[str] = []

    def work(name: str) -> None:
        while True:
            with plane.state.transaction() as tx:
                record = tx.requests.claim(name, 60, plane.store_id)
                if record is None:
                    return
                taken.append(record.id)
                tx.requests.transition(record.id, [Status.PENDING], Status.REFUSED, actor=name, holder=name)

    workers = [threading.Thread(target=work, args=(f"worker-{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == sorted(identifiers), "each was taken up, and once"


async def load(url: str, texts: dict[str, str]) -> list[dict[str, Any]]:
    """Each session asks, looks at its status, and asks again, all at once."""
    answers: list[dict[str, Any]] = []

    async def one(client: httpx.AsyncClient, session: str) -> None:
        headers = {"Authorization": f"Bearer {texts[session]}"}
        place = f"{API}/sessions/{session}"
        body = {"requirements": ["foo"], "reason": "load"}
        asked = await client.post(f"{place}/requests", json=body, headers=headers)
        assert asked.status_code == 202, asked.text
        status = await client.get(f"{place}/status", headers=headers)
        assert [item["id"] for item in status.json()["requests"]] == [asked.json()["id"]]
        again = await client.post(f"{place}/requests", json=body, headers=headers)
        assert again.json()["id"] == asked.json()["id"]
        answers.append(again.json())

    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with (
        httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client,
        anyio.create_task_group() as group,
    ):
        for session in texts:
            group.start_soon(one, client, session)
    return answers


def test_sessions_that_ask_for_the_same_at_once_get_one_layer_that_is_built_once(
    house: House, serve: Serve, plane: ControlPlane, token: Token
) -> None:
    """Issue 4.3, 4.10: several workers at once; the same need is one layer."""
    names = [f"same-{number}" for number in range(6)]
    for name in names:
        house.envdsl("session", "create", name, "--layer", "core")
    service = serve(workers=2)
    answers: dict[str, Any] = {}

    def ask(name: str) -> None:
        client = service.client(token(Role.AGENT, name, name))
        body = {"requirements": ["foo==2"]}
        answers[name] = client.post(f"{API}/sessions/{name}/requests", params={"wait": 55}, json=body).json()

    threads = [threading.Thread(target=ask, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer["status"] for answer in answers.values()} == {"ready"}
    with plane.state.reading() as tx:
        records = tx.requests.list(plane.store_id)
        actions = Counter((event.action, event.subject) for event in tx.audit.range())
    assert len({record.layer for record in records}) == 1
    for record in records:
        assert actions["request.building", record.id] == 1
        assert actions["binding.request", record.id] == 1


def copy_session(house: House, source: str, name: str) -> None:
    directory = house.store / "sessions" / name
    directory.mkdir()
    for file in ("manifest.json", "run", "bwrap.args"):
        text = (house.store / "sessions" / source / file).read_bytes()
        changed = re.sub(rb"(?<=[/\"])" + source.encode() + rb"(?=[/\"])", name.encode(), text)
        (directory / file).write_bytes(changed)

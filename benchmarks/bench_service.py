"""``status`` of sessions over HTTP while two hundred of them ask at once, and a worker resolves and builds.

All sessions ask in the first moment; from then on each looks at its status every two seconds, on another connection.
What is measured is each look, from the first byte sent to the last byte received; the client is this process, the
service another one. What the service's own log says of the same looks stands beside it: the rest is the client's.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.harness import Row
from benchmarks.scratch import ENVDSL, Scratch
from envdsl.app.control import tokens
from envdsl.app.control.plane import ControlPlane
from envdsl.app.project import Project
from envdsl.policy.access import Principal, Role
from envdsl.reporter import Reporter
from tests.wheels import make_wheel

STATUS = "`status` of 200 sessions that ask at once, 99th percentile"

_SESSIONS = 200
_PERIOD = 2.0  # seconds between two looks of one session
_LIMIT = 0.05  # seconds
_SETTLED = 3.0  # seconds after which both processes have imported what they need
_PACKAGES = 30  # of the base, as many as `office` has
_PYTHON = f"3.{sys.version_info.minor}"


def status(scratch: Scratch) -> Row:
    root = scratch.directory("service")
    texts = _prepared(scratch, root)
    with _serving(scratch, root) as port:
        looks, asked = asyncio.run(_load(port, texts, seconds=6 if scratch.quick else 30))
    percentile = _percentile(looks)
    own = _logged(root / "log")
    return Row(
        work=STATUS,
        against="50 ms",
        at_most=1.0,
        ratio=percentile / _LIMIT,
        ours=percentile,
        theirs=_LIMIT,
        note=f"{len(looks)} looks, median {statistics.median(looks) * 1000:.0f} ms; by the service's own log "
        f"{_percentile(own) * 1000:.0f} ms, median {statistics.median(own) * 1000:.0f} ms; the last answer to who "
        f"asked came after {max(asked):.1f} s; SQLite, one service with its worker",
        load=os.getloadavg()[0],
    )


def _percentile(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def _logged(log: Path) -> list[float]:
    """How long each look took by the service's log, in seconds: from the headers to the end of the answer."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["ms"] / 1000 for line in lines if line.get("route", "").endswith("/status")]


def _prepared(scratch: Scratch, root: Path) -> dict[str, str]:
    """A project with sessions on one base, and a token for each."""
    (root / "layers.d").mkdir()
    names = [f"part{number}" for number in range(_PACKAGES)]
    for name in (*names, "wanted"):
        make_wheel(root / "wheels", name, "1.0")
    packages = " ".join(f'"{name}"' for name in names)
    (root / "layers.d" / "all.layer").write_text(f'base core {{ python = "{_PYTHON}"; packages = [ {packages} ]; }}\n')
    (root / "layers.d" / "catalog.toml").write_text(
        '[allow]\npackages = ["wanted"]\n[limits]\nunknown-age = "allow"\n[licences]\nunknown = "allow"\n'
    )
    (root / "envdsl.toml").write_text('[[index]]\nname = "local"\nurl = "wheels"\nformat = "flat"\ndefault = true\n')
    for command in (["python", "install", _PYTHON, "--offline"], ["lock"], ["build"]):
        _envdsl(scratch, root, *command)
    _envdsl(scratch, root, "session", "create", "s-0", "--layer", "core")
    sessions = root / "store" / "sessions"
    for number in range(1, _SESSIONS):
        # What `session create` would write, two hundred times quicker: the same but for the name.
        (sessions / f"s-{number}").mkdir()
        for file in ("manifest.json", "bwrap.args", "run"):
            text = (sessions / "s-0" / file).read_bytes()
            (sessions / f"s-{number}" / file).write_bytes(re.sub(rb"\bs-0\b", f"s-{number}".encode(), text))
    return _tokens(root)


def _tokens(root: Path) -> dict[str, str]:
    maker = Principal(Role.ADMINISTRATOR, "benchmark")
    project = Project.find(root, store=root / "store", reporter=Reporter())
    with ControlPlane.open(project) as plane:
        texts = {
            session: tokens.create(plane, maker, role=Role.AGENT, name=session, session=session)[0]
            for session in (f"s-{number}" for number in range(_SESSIONS))
        }
    project.close()
    return texts


def _envdsl(scratch: Scratch, root: Path, *arguments: str) -> None:
    command = [ENVDSL, *arguments, "--project", str(root), "--store", str(root / "store"), "-q"]
    subprocess.run(command, env=scratch.environment, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _serving(scratch: Scratch, root: Path) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    place = ["--project", str(root), "--store", str(root / "store")]
    with (root / "log").open("wb") as log:
        command = [ENVDSL, "serve", *place, "--listen", f"127.0.0.1:{port}"]
        process = subprocess.Popen(command, env=scratch.environment, stderr=log)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        time.sleep(_SETTLED)
        yield port
    finally:
        process.terminate()
        process.wait(60)


async def _load(port: int, texts: dict[str, str], *, seconds: float) -> tuple[list[float], list[float]]:
    """How long each look at a status took, and each answer to who asked, in seconds."""
    looks: list[float] = []
    asked: list[float] = []
    chance = random.Random(7)
    end = time.perf_counter() + seconds

    async def ask(session: str, text: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = json.dumps({"requirements": ["wanted"], "reason": "load"})
        asked.append(await _exchange(reader, writer, "POST", f"/api/v1/sessions/{session}/requests", text, body))
        writer.close()

    async def look(session: str, text: str, phase: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.sleep(phase)
        while time.perf_counter() < end:
            took = await _exchange(reader, writer, "GET", f"/api/v1/sessions/{session}/status", text)
            looks.append(took)
            await asyncio.sleep(max(0.0, _PERIOD - took))
        writer.close()

    async with asyncio.TaskGroup() as group:
        for session, text in texts.items():
            group.create_task(ask(session, text))
            group.create_task(look(session, text, chance.uniform(0, _PERIOD)))
    return looks, asked


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, path: str, token: str, body: str = ""
) -> float:
    """One request and its answer; seconds. As little of a client as there can be: it runs beside the service."""
    head = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    began = time.perf_counter()
    writer.write("\r\n".join([*head, "", body]).encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", answer)
    assert length is not None, answer
    content = await reader.readexactly(int(length[1]))
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")), content
    return time.perf_counter() - began


LINES = {STATUS: status}

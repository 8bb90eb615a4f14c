"""A real PostgreSQL server for tests, and the fixture that runs a test on both databases.

One server for each process of pytest, started when a test first asks for it: in a directory of its own, reachable
through a Unix socket in it and in no other way, without the flushing that only a power cut would miss. Each test gets
a database of its own. The server ends with the tests, and with this process however that ends.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

_BINARIES = ("/usr/lib/postgresql", "/usr/local/pgsql/bin", "/usr/pgsql")
_ROOM = 2 << 30  # bytes
_USER = "envdsl"
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "120",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}


class Server:
    """A running server. ``database`` makes an empty database and gives its URL."""

    def __init__(self, socket: Path, process: subprocess.Popen[bytes], log: Path) -> None:
        self.socket = socket
        self.process = process
        self._log = log

    def database(self) -> str:
        name = f"test_{secrets.token_hex(6)}"
        with contextlib.closing(self._connect("postgres")) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected to it."""
        name = url.partition("@/")[2].partition("?")[0]
        with contextlib.closing(self._connect("postgres")) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://{_USER}@/{name}?host={self.socket}"

    def wait(self) -> None:
        """Until it answers."""
        import psycopg

        for _ in range(600):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(psycopg.OperationalError):
                self._connect("postgres").close()
                return
            time.sleep(0.05)
        raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text()}")

    def _connect(self, name: str):  # type: ignore[no-untyped-def]
        import psycopg

        return psycopg.connect(host=str(self.socket), user=_USER, dbname=name, autocommit=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server; the test is skipped where PostgreSQL is not installed."""
    binaries = _find()
    if binaries is None:
        if os.environ.get("ENVDSL_CI"):
            pytest.fail("PostgreSQL is not installed, and has to be here: apt install postgresql")
        pytest.skip("PostgreSQL is not installed: this test ran on SQLite alone (apt install postgresql)")
    root = Path(tempfile.mkdtemp(prefix="envdsl-pg-", dir=_memory()))  # a socket's path has to be short
    server = None
    try:
        prefix = _as_other_user(root)
        data, log = root / "data", root / "log"
        quiet = ["--no-sync", "--no-instructions", "--locale=C", "--encoding=UTF8", "--auth=trust"]
        subprocess.run(
            [*prefix, binaries / "initdb", *quiet, f"--username={_USER}", f"--pgdata={data}"],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [*prefix, binaries / "postgres", "-D", data, "-k", root, *settings]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, cwd="/")
        server = Server(root, process, log)
        server.wait()
        yield server
    finally:
        if server is not None and server.process.poll() is None:
            server.process.send_signal(signal.SIGINT)  # "fast": connections are ended
            server.process.wait(timeout=60)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an empty database: the test runs once with SQLite and once with PostgreSQL."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/state.db"
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.database()
    yield url
    server.drop(url)


def _memory() -> Path | None:
    """A directory in memory, where there is one with room: a new database is hundreds of files."""
    place = Path("/dev/shm")
    if place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > _ROOM:
        return place
    return None


def _find() -> Path | None:
    """The directory of the server's programs, which distributions keep off the PATH; the newest version."""
    if (found := shutil.which("initdb")) is not None:
        return Path(found).resolve().parent
    places = [place for root in _BINARIES for place in [*Path(root).glob("*/bin"), Path(root), Path(f"{root}/bin")]]
    places = [place for place in places if (place / "initdb").is_file() and (place / "postgres").is_file()]
    return max(places, key=lambda place: [int(part) for part in place.parts if part.isdecimal()], default=None)


def _as_other_user(root: Path) -> list[str]:
    """The words before a command: it ends with this process, and does not run as root, which the server refuses."""
    words = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() == 0:
        shutil.chown(root, "postgres")
        words += ["--reuid=postgres", "--regid=postgres", "--clear-groups"]
    return [*words, "--"]

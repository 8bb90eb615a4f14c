"""Asking for each name only where it belongs, while uv resolves.

uv orders indexes, but it has no rule for names: one that its owner lacks is asked of the next index, and what a
wheel requires is known to uv alone until it asks. So where the configuration gives names to indexes
(``packages``), uv gets one index that answers on loopback while it runs. A page that uv wants is asked for here,
of the owner of its name or of the sources in their order; the first that knows the name has it. Only pages come
through here: they name the files where they are, and uv gets those itself.

An index that fails is none that knows nothing: its error ends the resolution, and nobody else is asked.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envdsl.errors import EnvdslError, ExitStatus
from envdsl.lock.ambient import FIRST_INDEX
from envdsl.lock.index import IndexConfiguration
from envdsl.lock.pages import JSON, Pages
from envdsl.lock.source import IndexSource
from envdsl.model.canonical import canonical_json
from envdsl.model.digest import blake3_hex
from envdsl.transport import Retries

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

_PORT = 21751
_USERNAME = "envdsl"


class Route:
    """The index on loopback. ``url`` and the pair ``credentials`` are for uv, whose cache goes by the URL: it is the
    same whenever the configuration is, unless its port is taken."""

    def __init__(self, configuration: IndexConfiguration, retries: Retries | None = None) -> None:
        self.configuration = configuration
        self.credentials = _USERNAME, secrets.token_urlsafe(32)
        self._pages = Pages(configuration, retries)
        self._failures: list[EnvdslError] = []
        self._asking: dict[str, IndexSource] = {}
        self._digest = blake3_hex(canonical_json(_answers(configuration)))
        # All of 127.0.0.0/8 is this machine: an address for each configuration, so that two hardly ever meet.
        self.host = f"127.{'.'.join(str(1 + byte % 254) for byte in bytes.fromhex(self._digest[:6]))}"
        self.port = _PORT

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/{self._digest[:16]}/simple"

    def check(self, *, gave_up: bool) -> None:
        """Raise the EnvdslError of an index that could not be asked, if there was one since the last call.

        ``gave_up``: uv failed, perhaps as it did not want to wait any longer for an index that is still being asked.
        """
        failures, self._failures = self._failures, []
        if failures:
            raise failures[0]
        if gave_up and (waiting := next(iter(self._asking.values()), None)) is not None:
            raise EnvdslError.of(
                "lock-index-unreachable",
                f"the index {waiting.label} cannot be asked: no answer in time",
                hint="check the network and the index's address, or give it longer with UV_HTTP_TIMEOUT (seconds)",
                exit_status=ExitStatus.ENVIRONMENT,
            )

    def files(self, project: str) -> list[dict[str, Any]] | None:
        """The files of a normalised project (PEP 691), None where nobody who may be asked knows it.

        Flat sources add to what the first index has that knows the name; with another strategy than uv's
        ``first-index``, all indexes add. Raises EnvdslError as :class:`Pages`.
        """
        sources = self.configuration.sources_for(project)
        known, files = False, dict[str, dict[str, Any]]()
        for source in sorted(sources, key=lambda source: not source.flat):
            source.check_directory()
            self._asking[project] = source
            try:
                entries = self._pages.entries(source, project)
            finally:
                self._asking.pop(project, None)
            if entries is None:
                continue
            known = True
            for entry in entries:
                files.setdefault(str(entry["filename"]), entry)
            if not source.flat and self.configuration.strategy == FIRST_INDEX:
                break
        return list(files.values()) if known else None

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body for a request of uv. An index that cannot be asked is a status that uv takes for final."""
        from packaging.utils import canonicalize_name

        prefix, _, project = path.strip("/").rpartition("/")
        if prefix != f"{self._digest[:16]}/simple":
            return 404, b""
        try:
            files = self.files(canonicalize_name(project))
        except EnvdslError as error:
            self._failures.append(error)
            return 400, b""
        if files is None:
            return 404, b""
        page = {"meta": {"api-version": "1.1"}, "name": project, "files": files}
        return 200, json.dumps(page).encode()


def _answers(configuration: IndexConfiguration) -> list[object]:
    """All that the answers of a route depend on, but for what the sources say."""
    asked = configuration.sources
    sources = [[item.url, item.flat, list(item.packages), item in asked] for item in configuration.reachable]
    return [configuration.strategy, sources]


@contextmanager
def routed(configuration: IndexConfiguration, *, offline: bool = False) -> Iterator[Route | None]:
    """The route for uv while the block runs; None where no source has names of its own.

    ``offline``: nothing answers, and uv takes what its cache has from that URL; :func:`flat_wheels` it cannot see.
    """
    if not configuration.owners:
        yield None
        return
    route = Route(configuration)
    if offline:
        yield route
        return
    server = _serve(route)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield route
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def flat_wheels(configuration: IndexConfiguration) -> Iterator[Path]:
    """The wheels of flat directories, but none of a name that belongs to another source."""
    from packaging.utils import canonicalize_name

    for source in configuration.reachable:
        if source.flat and source.directory is not None and source.directory.is_dir():
            for wheel in sorted(source.directory.glob("*.whl")):
                if source in configuration.sources_for(canonicalize_name(wheel.name.split("-")[0])):
                    yield wheel


def _serve(route: Route) -> ThreadingHTTPServer:
    """A server for ``route``, at its own address or, where that is taken, at any: then uv's cache is cold."""
    import base64
    from hmac import compare_digest
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    # Others on this machine could ask, too, and what answers has our credentials.
    expected = f"Basic {base64.b64encode(':'.join(route.credentials).encode()).decode()}".encode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60.0

        def log_message(self, format: str, *args: object) -> None:
            """A face says what goes on; this is inside."""

        def do_GET(self) -> None:
            status, body = 403, b""
            if compare_digest(self.headers.get("Authorization", "").encode(), expected):
                status, body = route.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", JSON)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """uv hangs up on what it no longer wants."""

    try:
        return Server((route.host, route.port), Handler)
    except OSError:
        server = Server(("127.0.0.1", 0), Handler)
        route.host, route.port = "127.0.0.1", server.server_address[1]
        return server

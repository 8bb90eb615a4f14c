"""A package index on loopback for tests: PEP 503, 691, 658 and 700, Basic authentication, and faults on demand."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import threading
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class Index:
    """What is served, and how badly. Change it while it runs; ``requests`` is what was asked for."""

    directory: Path
    url: str = ""
    auth: tuple[str, str] | None = None
    json: bool = True
    hashes: bool = True
    sizes: bool = True
    upload_times: dict[str, str] = field(default_factory=dict)
    default_upload_time: str | None = "2020-01-01T00:00:00Z"
    yanked: dict[str, str] = field(default_factory=dict)
    requires_python: dict[str, str] = field(default_factory=dict)
    project_statuses: dict[str, dict[str, str]] = field(default_factory=dict)
    ranges: bool = True
    drop_after: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    statuses: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    retry_after: str | None = None
    corrupt: set[str] = field(default_factory=set)
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def simple(self) -> str:
        return f"{self.url}/simple"

    @property
    def flat(self) -> str:
        return f"{self.url}/flat"

    def with_userinfo(self, url: str) -> str:
        assert self.auth is not None
        return url.replace("://", f"://{self.auth[0]}:{self.auth[1]}@", 1)

    def downloads(self) -> list[str]:
        """The file names that were asked for, metadata files excluded, in order."""
        return [path.rpartition("/")[2] for _, path, _ in self.requests if path.endswith((".whl", ".tar.gz"))]


def project_of(filename: str) -> str:
    if filename.endswith(".whl"):
        return canonicalize_name(parse_wheel_filename(filename)[0])
    return canonicalize_name(parse_sdist_filename(filename)[0])


@contextmanager
def serve(directory: Path, **settings: object) -> Iterator[Index]:
    """Serve the distributions of ``directory`` (also those that arrive later) until the block ends."""
    directory.mkdir(parents=True, exist_ok=True)
    index = Index(directory, **settings)  # type: ignore[arg-type]
    server = _Server(("127.0.0.1", 0), _handler(index))
    index.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what some tests are about."""


def _handler(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = unquote(self.path.partition("?")[0])
            index.requests.append((self.command, path, dict(self.headers.items())))
            if index.auth is not None:
                expected = base64.b64encode(":".join(index.auth).encode()).decode()
                if self.headers.get("Authorization") != f"Basic {expected}":
                    self._send(401, b"", {"WWW-Authenticate": 'Basic realm="test"'}, body)
                    return
            parts = path.strip("/").split("/")
            name = parts[-1]
            if index.statuses[name]:
                headers = {"Retry-After": index.retry_after} if index.retry_after else {}
                self._send(index.statuses[name].pop(0), b"", headers, body)
            elif parts[0] == "simple" and len(parts) == 2:
                self._project(parts[1], body)
            elif parts[0] == "flat":
                self._html(self._files(), body)
            elif parts[0] == "files" and len(parts) == 2:
                self._file(name, body)
            else:
                self._send(404, b"", {}, body)

        def _files(self, project: str | None = None) -> list[Path]:
            files = sorted(p for p in index.directory.iterdir() if p.name.endswith((".whl", ".tar.gz")))
            return [p for p in files if project is None or project_of(p.name) == canonicalize_name(project)]

        def _project(self, project: str, body: bool) -> None:
            files = self._files(project)
            status = index.project_statuses.get(project)
            if not files and status is None:
                self._send(404, b"", {}, body)
            elif index.json:
                data = {
                    "meta": {"api-version": "1.1"},
                    "name": project,
                    "versions": [],
                    "files": [] if status else [self._entry(p) for p in files],
                    **({"project-status": status} if status else {}),
                }
                drop = index.drop_after[project].pop(0) if body and index.drop_after[project] else None
                self._send(200, json.dumps(data).encode(), {"Content-Type": JSON}, body, drop)
            else:
                self._html(files, body)

        def _entry(self, file: Path) -> dict[str, object]:
            entry: dict[str, object] = {"filename": file.name, "url": f"{index.url}/files/{file.name}", "hashes": {}}
            if index.hashes:
                entry["hashes"] = {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
            if index.sizes:
                entry["size"] = file.stat().st_size
            if uploaded := index.upload_times.get(file.name, index.default_upload_time):
                entry["upload-time"] = uploaded
            if file.name in index.requires_python:
                entry["requires-python"] = index.requires_python[file.name]
            if file.name in index.yanked:
                entry["yanked"] = index.yanked[file.name]
            if file.name.endswith(".whl"):
                entry["core-metadata"] = {"sha256": hashlib.sha256(_metadata(file)).hexdigest()}
            return entry

        def _html(self, files: list[Path], body: bool) -> None:
            links = ""
            for file in files:
                fragment = f"#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}" if index.hashes else ""
                yanked = f' data-yanked="{html.escape(index.yanked[file.name])}"' if file.name in index.yanked else ""
                links += f'<a href="{index.url}/files/{file.name}{fragment}"{yanked}>{file.name}</a>\n'
            page = f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
            self._send(200, page, {"Content-Type": "text/html"}, body)

        def _file(self, name: str, body: bool) -> None:
            metadata = name.endswith(".metadata")
            file = index.directory / name.removesuffix(".metadata")
            if not file.is_file():
                self._send(404, b"", {}, body)
                return
            data = _metadata(file) if metadata else file.read_bytes()
            if name in index.corrupt:
                data = bytes(byte ^ 0xFF for byte in data[:64]) + data[64:]
            start, status, headers = 0, 200, {"Content-Type": "application/octet-stream"}
            if index.ranges:
                headers["Accept-Ranges"] = "bytes"
                requested = self.headers.get("Range", "")
                if requested.startswith("bytes=") and not requested.startswith("bytes=-"):
                    first, _, last = requested.removeprefix("bytes=").partition("-")
                    start, status = int(first), 206
                    end = min(int(last), len(data) - 1) if last else len(data) - 1
                    headers["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
                    data = data[: end + 1]
            drop = index.drop_after[name].pop(0) if body and index.drop_after[name] else None
            self._send(status, data[start:], headers, body, drop)

        def _send(self, status: int, data: bytes, headers: dict[str, str], body: bool, drop: int | None = None) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data if drop is None else data[:drop])
            if drop is not None:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(2)

    return Handler


def _metadata(wheel: Path) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name)


def make_sdist(directory: Path, name: str, version: str) -> Path:
    """A file that is named like an sdist; nothing ever looks inside."""
    directory.mkdir(parents=True, exist_ok=True)
    sdist = directory / f"{name.replace('-', '_')}-{version}.tar.gz"
    sdist.write_bytes(b"not to be built")
    return sdist
